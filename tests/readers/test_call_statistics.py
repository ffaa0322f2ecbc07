"""Call statistics → call paths: sums are kept, shares follow callers, cycles end; and `.prof` files in full."""

import cProfile
import json
import pstats
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wattribute
from wattribute.readers.call_statistics import CallerStatistics, FunctionStatistics, path_times, spans

SECOND = 1_000_000_000


def function(name, self_s, total_s, calls=1, primitive=None):
    return FunctionStatistics("p.py", 1, name, primitive or calls, calls, int(self_s * SECOND), int(total_s * SECOND))


def caller(a, b, total_s, calls=1):
    return CallerStatistics(a, b, calls, calls, 0, int(total_s * SECOND))


def test_a_function_is_shared_out_among_its_callers_by_time():
    """main 1 s calls a (1 s) and b (1 s); both call work, 3 s for a and 1 s for b: 4 s of work are 3 and 1."""
    functions = [function("main", 1, 7), function("a", 1, 4), function("b", 1, 2), function("work", 4, 4, 8)]
    callers = [caller(0, 1, 4), caller(0, 2, 2), caller(1, 3, 3, 6), caller(2, 3, 1, 2)]
    found = {one.path: (one.self_ns / SECOND, one.calls) for one in path_times(functions, callers)}
    assert found == {(0,): (1, 1), (0, 1): (1, 1), (0, 2): (1, 1), (0, 1, 3): (3, 6), (0, 2, 3): (1, 2)}


def test_recursion_and_cycles_end():
    functions = [function("f", 2, 2, 15, 1), function("even", 1, 3, 10), function("odd", 1, 2, 10)]
    callers = [caller(0, 0, 2, 14), caller(1, 2, 2, 10), caller(2, 1, 1, 10)]
    found = path_times(functions, callers)
    assert {path[-1] for path, _, _ in found} == {0, 1, 2}
    assert all(len(set(path)) == len(path) for path, _, _ in found)


@given(st.data())
def test_self_times_are_kept(data):
    count = data.draw(st.integers(1, 7))
    times = data.draw(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=count, max_size=count))
    functions = [FunctionStatistics("p", i, f"f{i}", 1, 2, own, own + more) for i, (own, more) in enumerate(times)]
    numbers = st.integers(0, count - 1)
    edges = data.draw(st.lists(st.tuples(numbers, numbers, st.integers(0, 10**9)), max_size=20))
    found = path_times(functions, [CallerStatistics(a, b, 1, 1, 0, total) for a, b, total in edges])
    for i, one in enumerate(functions):
        assert sum(path.self_ns for path in found if path.path[-1] == i) == one.self_ns
    laid = list(spans(found))
    assert {i for _, _, i in laid} == set(range(count))
    assert max(end for _, end, _ in laid) == sum(one.self_ns for one in functions)


PROGRAM = """
import time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def helper(k): return sum(i * i for i in range(k))
def first(): helper(20000); return fib(12)
def second(): helper(10000)
first(); second(); time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def prof(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prof")
    (folder / "prog.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "cProfile", "-o", "p.prof", "prog.py"], cwd=folder, check=True)
    return folder / "p.prof"


def test_a_prof_file_is_attributed_as_pstats_prints_it(prof):
    stats = pstats.Stats(str(prof)).stats
    found = wattribute.attribute(prof, by="frame,file,line")
    assert found.unit == "s"
    rows = {(row["frame"], row["line"], row["file"]): row for row in found.rows.to_dicts()}
    assert len(rows) == len(stats)
    for (file, line, name), (primitive, calls, own, total, _) in stats.items():
        row = rows[name, line, "built-in" if file == "~" else file]
        assert (row["calls"], row["primitive_calls"]) == (calls, primitive)
        assert row["self_value"] == pytest.approx(own, abs=2e-9)
        assert row["total_value"] == pytest.approx(max(own, total), abs=2e-9)
    assert found.rows["self_value"].sum() == pytest.approx(sum(about[2] for about in stats.values()), rel=1e-6)


def test_by_file_sums_self_time_and_names_built_ins(prof):
    stats = pstats.Stats(str(prof)).stats
    rows = dict(wattribute.attribute(prof, by="file").rows.select("file", "self_value").iter_rows())
    for file in {key[0] for key in stats}:
        own = sum(about[2] for key, about in stats.items() if key[0] == file)
        assert rows["built-in" if file == "~" else file] == pytest.approx(own, abs=1e-6)


def test_callers_can_be_asked_for(prof):
    stats = pstats.Stats(str(prof)).stats
    query = "select caller, calls from callers where callee = 'helper' order by caller"
    assert wattribute.sql(prof, query).rows() == [("first", 1), ("second", 1)]
    calls = wattribute.sql(prof, "select calls, primitive_calls from functions where name = 'fib'").rows()
    ((primitive, total, *_),) = [about for key, about in stats.items() if key[2] == "fib"]
    assert calls == [(total, primitive)] == [(465, 1)]


def test_the_call_graph_has_counts_and_percentages(prof, tmp_path):
    from wattribute.views import plot

    text = plot.write("callgraph", [prof], tmp_path / "g.dot").read_text()
    assert "465×" in text  # fib
    assert " %" in text
    first, second = (
        next(line for line in text.splitlines() if f'label="{name}\\n' in line) for name in ("first", "fib")
    )
    numbers = [line.split()[0] for line in (first, second)]
    edge = next(line for line in text.splitlines() if line.startswith(f"  {numbers[0]} -> {numbers[1]}"))
    assert "· 1×" in edge


def drawn(chart):
    return json.dumps(chart.to_dict())


@pytest.mark.parametrize("kind", ["flame", "icicle", "sunburst", "callgraph"])
def test_a_root_keeps_what_it_called(prof, kind):
    from wattribute.errors import OptionError
    from wattribute.views import plot

    whole, part = (drawn(plot.draw(kind, [prof], looks=looks)) for looks in ({}, {"root": "first"}))
    assert '"second"' in whole
    assert '"second"' not in part
    assert '"helper"' in part
    with pytest.raises(OptionError, match="did you mean 'first'"):
        plot.draw(kind, [prof], looks={"root": "frist"})


def test_statistics_of_a_profile_in_this_process(tmp_path):
    profile = cProfile.Profile()
    profile.runcall(sorted, range(10))
    profile.dump_stats(tmp_path / "x.prof")
    found = wattribute.attribute(tmp_path / "x.prof")
    assert found.rows["calls"].sum() >= 1


def test_functions_of_one_name_in_several_places_stay_apart(tmp_path):
    """``parse`` of the program is not that of a module; pstats tells them by file and line, too."""
    (tmp_path / "q.py").write_text("def parse(text): return text\n")
    (tmp_path / "p.py").write_text(
        "import q\ndef parse(): return [i for i in range(9)]\ndef other(): return sorted([i for i in range(5)])\n"
        "def parse_all():\n    for _ in range(3): parse()\n    other()\n    q.parse('a+')\nparse_all()\n"
    )
    subprocess.run([sys.executable, "-m", "cProfile", "-o", "p.prof", "p.py"], cwd=tmp_path, check=True)
    rows = wattribute.attribute(tmp_path / "p.prof", by="frame").rows
    known = dict(rows.select("frame", "calls").iter_rows())
    stats = pstats.Stats(str(tmp_path / "p.prof")).stats
    assert len(known) == len(stats)
    assert sum(known.values()) == sum(about[1] for about in stats.values())
    assert known["parse (p.py:2)"] == 3
    assert known["parse_all"] == 1  # a name of its own stays as it is
    assert known["parse (q.py:1)"] == 1
