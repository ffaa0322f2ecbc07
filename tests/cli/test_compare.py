"""The verbs ``compare``, ``export``, ``sql`` and ``attribute`` over several runs, as a user types them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import wattribute
from tests.comparison.made import run
from wattribute.cli import main, verb_parser
from wattribute.cli.compare import fraction


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight runs of two programs: b is 20 % slower in dgemm."""
    where = tmp_path_factory.mktemp("runs")
    for i in range(4):
        wattribute.save(run(i), where / f"a{i}.watt")
        wattribute.save(run(20 + i, factor=1.2), where / f"b{i}.watt")
    return where


class Done(NamedTuple):
    stdout: str
    stderr: str


@pytest.fixture
def call(monkeypatch, capsys):
    """The command line in this process; gives what it printed."""

    def run_it(folder, *arguments, code=0):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["wattribute", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        done = Done(*capsys.readouterr())
        assert (left.value.code or 0) == code, done
        return done

    return run_it


def test_compare_in_words_and_json(call, folder):
    done = call(
        folder, "compare", "a0.watt", "a1.watt", "a2.watt", "a3.watt", "--vs", *(f"b{i}.watt" for i in range(4))
    )
    assert "of the increase is dgemm" in done.stdout
    assert "A: 4 runs, B: 4 runs" in done.stdout
    done = call(folder, "compare", "a*.watt", "--vs", "b*.watt", "--by", "path", "--format", "json")
    found = json.loads(done.stdout)
    assert found["runs"] == {"a": ["a0", "a1", "a2", "a3"], "b": ["b0", "b1", "b2", "b3"]}
    assert found["rows"][0]["path"] == "main → dgemm"
    assert found["rows"][0]["changed"] is True
    assert found["whole"]["change"] > 0.05


def test_fail_above_has_its_own_exit_code(call, folder):
    done = call(folder, "compare", "a*.watt", "--vs", "b*.watt", "--fail-above", "5%", code=3)
    assert done.stdout.splitlines()[-1].startswith("failed: B against A: +")
    done = call(folder, "compare", "a1.watt", "--vs", "b1.watt", "--fail-above", "99%", "--strict", code=3)
    assert "a single run cannot show" in done.stdout.splitlines()[-1]
    call(folder, "compare", "a*.watt", "--vs", "b*.watt", "--fail-above", "50%")
    call(folder, "compare", "b*.watt", "--vs", "a*.watt", "--fail-above", "0.05")
    done = call(folder, "compare", "a*.watt", "--vs", "b*.watt", "--fail-above", "5", code=1)
    assert done.stderr == "wattribute: --fail-above 5: say it with a per cent sign, for example 5%\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["compare", "a*.watt", "--vs"], 2, "--vs"),
        (["compare", "a*.watt"], 2, "--vs"),
        (["compare", "a*.watt", "--vs", "z*.watt"], 1, "z*.watt: no file or folder matches this pattern"),
        (["compare", "a*.watt", "--vs", "b*.watt", "--by", "fram"], 1, "did you mean 'frame'"),
        (["compare", "a*.watt", "--vs", "b*.watt", "--metric", "nothing"], 1, "nothing"),
        (["compare", "a*.watt", "--vs", "b*.watt", "--confidence", "95"], 1, "0.95 is usual"),
        (["export", "a0.watt", "--to", "perfeto"], 1, "did you mean 'perfetto'"),
        (["export", "a0.watt", "a1.watt", "--to", "speedscope"], 1, "one run"),
        (["export", "a0.watt", "--to", "folded", "-o", "no/such/folder"], 1, "cannot be written"),
        (["export", "a0.watt", "a1.watt", "--to", "extrap"], 1, "name what differs"),
        (["sql", "a0.watt", "select * from span"], 1, "did you mean 'spans'"),
        (["sql", "none.watt", "select * from spans"], 1, "no such file"),
        (["sql", "a0.watt", "drop table spans"], 1, "recordings are read-only"),
        (["sql", "show tables"], 1, "the recording comes before the query: wattribute sql PATH QUERY"),
        (["attribute", "a0.watt", "a1.watt", "--spans", "x.parquet"], 1, "one run"),
        (["attribute", "a0.watt", "--spans", "no/such/x.parquet"], 1, "no/such/x.parquet: cannot be written"),
        (["merge", "a0.watt", "./a0.watt", "-o", "x.watt"], 1, "a0.watt is named twice"),
        (["atribute", "a0.watt"], 2, "unknown verb 'atribute'; did you mean 'attribute'"),
    ],
)
def test_wrong_words_are_one_clear_line(call, folder, arguments, code, says):
    done = call(folder, *arguments, code=code)
    assert says in done.stderr
    if code == 1:
        assert done.stderr.count("\n") == 1


def test_export_names_its_file_after_the_recording(call, folder, tmp_path):
    for name, ending in (("perfetto", ".perfetto-trace"), ("speedscope", ".speedscope.json"), ("folded", ".folded")):
        done = call(tmp_path, "export", folder / "a0.watt", "--to", name)
        assert done.stderr == f"wrote a0{ending}\n"
        assert (tmp_path / f"a0{ending}").stat().st_size > 100
    call(tmp_path, "export", folder / "a0.watt", folder / "b0.watt", "--to", "csv", "-o", "both", "--repeats", "drop")
    lines = (tmp_path / "both" / "calls.csv").read_text().splitlines()
    assert len(lines) == 9
    call(tmp_path, "export", folder / "a*.watt", "--to", "extrap", "--metadata", r"a(?P<size>\d)", "-o", "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["parameters"] == ["size"]


def test_export_to_standard_output_even_when_it_is_a_file(folder, tmp_path):
    command = [sys.executable, "-m", "wattribute", "export", str(folder / "a0.watt"), "--to", "folded", "-o", "-"]
    command += ["--until", "0.1", "--frame", "main"]
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
    names = [line.rsplit(" ", 1)[0] for line in (tmp_path / "out").read_text().splitlines()]
    assert names == ["package 0;main", "package 0;(idle)"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.startswith(b"package 0;main ")


def test_a_link_stays_a_link(call, folder, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    call(tmp_path, "export", folder / "a0.watt", "--to", "folded", "-o", "link")
    assert (tmp_path / "link").is_symlink()
    assert "dgemm" in (tmp_path / "real").read_text()


def test_sql_prints_tables_csv_and_json(call, folder):
    query = "select frame, calls from attribution order by frame"
    assert "dgemm" in call(folder, "sql", "a0.watt", query).stdout
    assert call(folder, "sql", "a0.watt", query, "--format", "csv").stdout.startswith("frame,calls\ncopy,1\n")
    found = json.loads(call(folder, "sql", "a0.watt", query, "--format", "json", "--dialect", "duckdb").stdout)
    assert found[0] == {"frame": "copy", "calls": 1}


def test_attribute_takes_several_runs(call, folder):
    done = call(folder, "attribute", "a0.watt", "b0.watt", "--by", "run,frame", "--format", "json")
    found = json.loads(done.stdout)
    assert {(row["run"], row["frame"]) for row in found["rows"]} >= {("a0", "dgemm"), ("b0", "dgemm")}
    assert [device["run"] for device in found["devices"]] == ["a0", "b0"]
    assert "b0" in call(folder, "attribute", "a0.watt", "b0.watt").stdout


def test_a_run_that_cannot_be_used_does_not_stop_the_others(call, folder, tmp_path):
    (tmp_path / "broken.watt").mkdir()
    done = call(folder, "compare", "a0.watt", "a1.watt", tmp_path / "broken.watt", "--vs", "b0.watt", "b1.watt")
    assert "broken is left out" in done.stdout
    assert "A: 2 runs, B: 2 runs" in done.stdout


def test_vs_takes_all_words_up_to_the_next_option():
    parse = verb_parser("compare").parse
    for words in ("a1 a2 --vs b1 b2 --top 3", "--vs b1 b2 --top 3 a1 a2", "a1 --vs b1 --top 3 --vs b2 -- a2"):
        arguments = parse(words.split())
        assert (arguments.a, arguments.vs, arguments.top) == (["a1", "a2"], ["b1", "b2"], 3)


def test_fractions():
    assert fraction("5%") == fraction("5 %") == fraction("0.05") == 0.05
    assert fraction("150%") == 1.5


def test_sql_lists_its_tables(call, folder):
    for words in (["sql", "a0.watt", "show tables", "--format", "json"], ["sql", "a0.watt", "--format", "json"]):
        tables = {row["table"]: row["columns"] for row in json.loads(call(folder, *words).stdout)}
        assert set(tables) == {"attribution", "devices", "frames", "locations", "readings", "signals", "spans"}
    assert tables["spans"] == "location, frame, start_ns, end_ns, depth, parent"
    described = (Path(__file__).parents[2] / "docs" / "compare-and-export.md").read_text("utf-8")
    for name, columns in tables.items():
        line = next(line for line in described.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{column}`" in line for column in columns.split(", "))
