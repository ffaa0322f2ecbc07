"""SQL over the tables, in both dialects."""

import pytest

import wattribute
from tests.comparison.made import run
from wattribute import WattributeError

DIALECTS = ["polars", "duckdb"]


@pytest.fixture(params=DIALECTS)
def ask(request):
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return lambda query, **options: wattribute.sql(run(2), query, dialect=request.param, **options)


def test_every_table_is_there(ask):
    counts = {"frames": 4, "locations": 1, "signals": 1, "spans": 4, "attribution": 4, "devices": 1}
    for table, rows in counts.items():
        assert len(ask(f"select * from {table}")) == rows
    assert ask("select count(*) as n from readings")["n"].to_list() == [len(run(2).signals[0])]


def test_tables_join(ask):
    found = ask(
        "select f.name, sum(s.end_ns - s.start_ns) as ns from spans s join frames f on s.frame = f.frame "
        "where s.depth > 0 group by f.name order by ns desc"
    )
    assert found["name"].to_list() == ["dgemm", "copy", "wait"]
    rows = {row["frame"]: row["total_ns"] for row in wattribute.attribute(run(2), by="frame").rows.to_dicts()}
    assert found["ns"].to_list() == [rows[name] for name in found["name"]]


def test_a_query_may_begin_with_its_own_tables(ask):
    assert ask("with one as (select 1 as n) select n from one")["n"].to_list() == [1]
    roots = ask("with roots as (select * from spans where depth = 0) select count(*) as n from roots")
    assert roots["n"].to_list() == [1]


def test_attribution_takes_options(ask):
    assert ask("select process, self_j from attribution", by="process")["process"].to_list() == ["rank 0"]


@pytest.mark.parametrize("query", ["select * from span", "select nothing from spans", "selec * from spans", ""])
def test_wrong_queries_are_one_line(ask, query):
    with pytest.raises(WattributeError) as caught:
        ask(query)
    assert "\n" not in str(caught.value)


def test_typos_are_suggested():
    with pytest.raises(WattributeError, match="unknown option 'bye'; did you mean 'by'"):
        wattribute.sql(run(2), "select * from spans", bye="frame")
    with pytest.raises(WattributeError, match="did you mean 'spans'"):
        wattribute.sql(run(2), "select * from span")
    with pytest.raises(WattributeError, match="did you mean 'polars'"):
        wattribute.sql(run(2), "select * from spans", dialect="polar")


@pytest.mark.parametrize(
    "query",
    [
        "select 1; copy devices to '{}/x.csv'",
        "with x as (select 1) insert into devices select * from x",
        "select * from devices; drop view devices",
        "explain analyze copy devices to '{}/x.csv'",
        "select * from devices; set lock_configuration = false",
    ],
)
@pytest.mark.parametrize("dialect", ["polars", "duckdb"])
def test_statements_that_write_are_refused(tmp_path, query, dialect):
    with pytest.raises(WattributeError, match="SQL"):
        wattribute.sql(run(2), query.format(tmp_path), dialect=dialect)
    assert not list(tmp_path.iterdir())


def test_duckdb_reads_no_files(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(WattributeError, match="SQL"):
        wattribute.sql(run(2), f"select * from devices, read_csv('{tmp_path}/secret.csv')", dialect="duckdb")
