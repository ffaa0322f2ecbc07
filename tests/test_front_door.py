"""The front door: what is promised is there, sorted, and cheap to open."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import wattribute
from wattribute.files import replacing
from wattribute.testing.recordings import RecordingBuilder


def test_all_is_sorted_and_every_name_is_there():
    assert wattribute.__all__ == sorted(wattribute.__all__)
    for name in wattribute.__all__:
        assert getattr(wattribute, name) is not None


def test_importing_loads_nothing_heavy():
    heavy = ["numpy", "polars", "pyarrow", "rich", "argparse", "altair"]
    code = f"import sys, wattribute; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_help_loads_no_verb():
    code = "import sys; from wattribute.cli import VERBS, program_parser; program_parser().print_help()"
    code += "; print([name for name in sys.modules if name.partition('wattribute.cli.')[2] in VERBS or name == 'rich'])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "  zones " in printed
    assert printed.endswith("[]\n")


def test_the_last_line_of_the_demo_is_a_command_that_works(tmp_path):
    """As ``make demo`` runs it: the program of a virtual environment in the folder, which is on no one's PATH."""
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    demo = [".venv/bin/wattribute", "demo", "-o", "demo"]
    path = os.pathsep.join(each for each in os.get_exec_path() if each != str(Path(sys.executable).parent))
    done = subprocess.run(demo, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("power.png", "flame.png", "report.html", "page.html", "live.watt/wattribute.json"):
        assert (tmp_path / "demo" / name).stat().st_size
    again = subprocess.run(demo, cwd=tmp_path, capture_output=True, text=True)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "wattribute: demo exists: remove it, or name another folder\n"
    last = done.stdout.splitlines()[-1]
    assert last == ".venv/bin/wattribute view demo/trace"
    with subprocess.Popen(["sh", "-c", f"exec {last}"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        assert process.stdout.readline() == "Ctrl-C ends it.\n"
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0


def two_functions(name="job"):
    """10 s at 10 W: solve 6 s, wait 4 s."""
    made = RecordingBuilder(name=name).thread("solve 0..6, wait 6..10")
    return made.counter("package 0", [0, 100], every=10).recording()


def test_large_values_show_themselves_in_a_few_lines():
    recording = two_functions("\x1b[31mjob")
    assert repr(recording).splitlines()[:2] == ["Recording '\\x1b[31mjob'", "  time: 10 s"]
    assert "metered: package 0 (1 signals)" in repr(recording)
    found = wattribute.attribute(two_functions(), by="frame")
    assert repr(found) == (
        "Attribution of 'job'\n"
        "  books: 100 J measured = 100 J attributed + 0 J idle\n"
        "  devices: package 0\n"
        "  rows: 2 by frame\n"
        "  frame  self J\n"
        "  solve  60\n"
        "  wait   40"
    )
    (signal,) = two_functions().signals
    guessed = wattribute.attribute(replace(two_functions(), signals=(replace(signal, estimated=True),)))
    assert "books: 100 J estimated = 100 J attributed" in repr(guessed)
    ensemble = wattribute.Ensemble.of({"<a>": two_functions()}, {"<a>": {"nodes": 4}})
    assert repr(ensemble) == "Ensemble of 1 runs\n  run  nodes\n  <a>  4"
    assert "&lt;a&gt;" in ensemble._repr_html_()
    assert "<td style='text-align:left'>solve</td>" in found._repr_html_()


def test_the_energy_of_a_recording_is_that_of_its_ledger():
    assert two_functions().energy_j == 100
    assert RecordingBuilder().thread("a 0..1").recording().energy_j is None
    run = replace(two_functions(), metadata={"run": {"start_ticks": 2, "end_ticks": 7}})  # the command's life
    assert run.energy_j == wattribute.attribute(run, by="device").devices["measured_j"].sum() == 50


@pytest.mark.parametrize(
    "call",
    [
        lambda recording: wattribute.load(""),
        lambda recording: wattribute.save(recording, ""),
        lambda recording: wattribute.write_page(recording, ""),
    ],
    ids=["load", "save", "write_page"],
)
def test_an_empty_path_is_an_error(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(wattribute.errors.OptionError, match="an empty path"):
        call(RecordingBuilder(1).host("n").process("p").recording())
    assert not list(tmp_path.iterdir())


def test_a_dash_is_standard_output_as_a_path_too(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    with replacing(Path("-")) as file:
        file.write(b"written")
    assert capfdbinary.readouterr().out == b"written"
    assert not list(tmp_path.iterdir())


def test_paths_are_taken_where_recordings_are(tmp_path):
    path = tmp_path / "a.watt"
    wattribute.save(two_functions(), path)
    wattribute.save(path, tmp_path / "b.watt")
    assert wattribute.describe(path)["name"] == "job"
    assert wattribute.emissions(path, intensity=360.0).co2e_g == pytest.approx(100 / 3.6e6 * 360)
    merged = wattribute.merge([path, str(tmp_path / "b.watt")], align="start")
    assert len(merged.processes) == 2
    assert wattribute.Ensemble.of({"a": path}).attribute(by="frame").rows["self_j"].to_list() == [60, 40]
    assert len(wattribute.sql(path, "select * from spans")) == 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: wattribute.run(["true"], **{"outptu": "x"}),
            r"unknown keyword of run\(\) 'outptu'; did you mean 'output'",
        ),
        (
            lambda: wattribute.record(**{"foo": 1}),
            r"keyword of record\(\) 'foo'; known: interval_s, meters, output, overwrite",
        ),
        (lambda: wattribute.attribute(two_functions(), zzz=1), "unknown option 'zzz'; known: begin, bounds, by"),
        (lambda: wattribute.attribute(two_functions(), by="function"), "did you mean 'frame'"),
        (lambda: wattribute.merge("a.watt"), "takes a list"),
    ],
)
def test_wrong_words_are_answered(call, says):
    with pytest.raises(ValueError, match=says):
        call()
