"""Files that the tools themselves make here: the numbers are the tools' own."""

import json
import pstats
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import wattribute
from wattribute.readers import table

PROGRAM = """
import threading, time

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def work():
    for _ in range(3):
        fib(8)
        time.sleep(0.005)

other = threading.Thread(target=work, name="helper")
other.start()
work()
other.join()
"""


def run(folder, *arguments):
    (folder / "prog.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def power_log(path, start_s, seconds, watts=20.0):
    """A log at a constant power, as a table."""
    rows = [(start_s + step * seconds / 10, watts) for step in range(11)]
    pl.DataFrame(rows, schema=["time_s", "cpu_power_w"], orient="row").write_csv(path)
    return path


def test_viztracer_counts_every_call(tmp_path):
    pytest.importorskip("viztracer")
    run(tmp_path, "viztracer", "--quiet", "-o", "viz.json", "prog.py")
    found = wattribute.read(tmp_path / "viz.json")
    assert found.metadata["format"] == "chrome"
    told = [event for event in json.loads((tmp_path / "viz.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert sum(len(found.spans.spans(at)) for at in found.spans.locations()) == len(told)
    assert set(found.locations.name) == {"MainThread", "helper"}
    fib = [row for row, name in enumerate(found.frames.name) if name == "fib"]
    assert found.frames.line[fib[0]] == 4
    assert Path(found.frames.file[fib[0]]).name == "prog.py"
    # a log since boot, as `wattribute run` makes, would join by itself; this one is laid over it
    start_s = found.clock.offset_ticks / 1e9
    log = power_log(tmp_path / "power.csv", 0, found.clock.length_ticks / 1e9)
    rows = wattribute.attribute(tmp_path / "viz.json", signals=log, offset=0.0, of="host")
    book = rows.devices.row(0, named=True)
    assert rows.rows["self_j"].sum() + book["idle_j"] == pytest.approx(book["measured_j"], rel=1e-9)
    assert start_s > 0


def test_pyinstrument_lasts_as_long_as_it_says(tmp_path):
    pytest.importorskip("pyinstrument")
    run(tmp_path, "pyinstrument", "-r", "pyisession", "-o", "s.pyisession", "prog.py")
    session = json.loads((tmp_path / "s.pyisession").read_text())
    found = wattribute.read(tmp_path / "s.pyisession")
    assert found.metadata["format"] == "pyinstrument"
    assert found.clock.epoch_ns == pytest.approx(session["start_time"] * 1e9, abs=1000)
    assert found.clock.length_ticks == pytest.approx(
        1e9 * sum(record[1] for record in session["frame_records"]), abs=1000
    )
    assert "work" in found.frames.name
    assert not any("pyinstrument" in file for file in found.frames.file)
    log = power_log(tmp_path / "power.csv", session["start_time"] - 1, 3)
    rows = wattribute.attribute(tmp_path / "s.pyisession", signals=log).rows
    assert rows["self_j"].sum() == pytest.approx(20 * found.clock.length_ticks / 1e9, rel=0.01)  # 20 W all the time


def test_cprofile_gives_self_time_times_mean_power_as_an_estimate(tmp_path):
    run(tmp_path, "cProfile", "-o", "p.prof", "prog.py")
    stats = pstats.Stats(str(tmp_path / "p.prof")).stats
    found = wattribute.read(tmp_path / "p.prof")
    assert found.metadata["format"] == "cprofile"
    assert len(found.frames) == len(stats)
    places = [(file, line, calls) for file, line, _, calls in found.metadata["calls"]]
    assert sorted(places) == sorted((*key[:2], about[1]) for key, about in stats.items())
    assert len(set(found.frames.name)) == len(stats)
    log = power_log(tmp_path / "power.csv", 0, 100)
    result = wattribute.attribute(tmp_path / "p.prof", signals=log)
    assert result.devices["estimated"].all()
    joules = dict(zip(result.rows["frame"], result.rows["self_j"], strict=True))
    ((_, about),) = [(key, about) for key, about in stats.items() if key[2] == "fib"]
    assert joules["fib"] == pytest.approx(20 * about[2], abs=1e-6)  # 20 W × its self time
    assert sum(joules.values()) == pytest.approx(20 * sum(about[2] for about in stats.values()), rel=1e-5)


def test_our_own_folded_and_speedscope_files_are_read_back_and_share_out_a_logs_energy(tmp_path):
    from wattribute.plugins import outputs

    data = Path(__file__).parent.parent / "data" / "readers"
    found = wattribute.attribute(data / "chrome-pytorch.json", signals=data / "table-readings.csv")
    log = power_log(tmp_path / "power.csv", 0, 5)  # 100 J
    for name, file in (("folded", "x.folded"), ("speedscope", "x.speedscope.json")):
        outputs.get(name).write(found, str(tmp_path / file))
        again = wattribute.attribute(tmp_path / file, signals=log)
        assert again.recording.metadata["format"] == name
        assert again.devices["measured_j"][0] == pytest.approx(100)
        assert again.rows["self_j"].sum() == pytest.approx(100)
        shares = {row["frame"]: row["self_j"] / 100 for row in again.rows.to_dicts()}
        mine = found.rows.group_by("frame").agg(pl.col("self_j").sum())
        whole = found.devices["measured_j"].sum()  # idle is a stack of its own there
        for frame, joules in mine.iter_rows():
            if joules:
                assert shares[frame] == pytest.approx(joules / whole, abs=2e-3)


def test_the_earlier_tools_tables_give_the_traces_joules(shared, tmp_path):
    """The simple trace written as call intervals and metrics, depth from 0 and from 1, gives what the trace gives."""
    trace = wattribute.read(shared / "traces" / "simple-mi300")
    per_s = trace.clock.ticks_per_s
    for depth in (0, 1):
        folder = tmp_path / f"depth{depth}"
        folder.mkdir()
        for location in trace.spans.locations():
            spans, name = trace.spans.spans(location), trace.locations.name[location]
            group = trace.processes.name[int(trace.locations.process[location])]
            lines = [
                f'{name},{group},{d + depth},"{trace.frames.name[f]}",{s:.9f},{e:.9f},{e - s:.9f}'
                for s, e, f, d in zip(spans.start / per_s, spans.end / per_s, spans.frame, spans.depth, strict=True)
            ]
            header = "Thread,Group,Depth,Name,Start Time,End Time,Duration"
            (folder / f"{group}_{location}_callgraph.csv").write_text("\n".join([header, *lines]))
        rows = [
            f'MPI Rank 0,"{signal.name}",{t / per_s:.9f},{v}'
            for signal in trace.signals
            if "energy_count" in signal.name
            for t, v in zip(signal.times.tolist(), signal.values.tolist(), strict=True)
        ]
        (folder / "MPI Rank 0_metrics.csv").write_text("\n".join(["Group,Metric Name,Time,Value", *rows]))
        assert table.detects(folder)
        ours = wattribute.attribute(folder, metric="energy_count").rows.sort("device", "frame")
        theirs = wattribute.attribute(trace, metric="energy_count").rows.sort("device", "frame")
        assert ours["frame"].to_list() == theirs["frame"].to_list()
        assert ours["self_j"].to_list() == pytest.approx(theirs["self_j"].to_list(), rel=1e-6)
        assert ours["calls"].to_list() == theirs["calls"].to_list()


def test_the_folder_one_stands_in_has_a_name(tmp_path, monkeypatch):
    (tmp_path / "power.csv").write_text("time_s,cpu_power_w\n0,1\n1,2\n")
    monkeypatch.chdir(tmp_path)
    assert wattribute.read(".").metadata["name"] == tmp_path.name
