"""``wattribute info`` as its users run it."""

import io
import json
import shutil
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from wattribute.cli import main

from ..readers.otf2.archives import rich

CALLS, READINGS = 300, 500


def run(*arguments):
    """The command line in this process: exit code and what it printed."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    argv, sys.argv = sys.argv, ["wattribute", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as left:
        code = left.code or 0
    finally:
        sys.argv = argv
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def info(*arguments):
    done = run("info", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = rich(tmp_path_factory.mktemp("info") / "rich", CALLS, READINGS)
    (folder / "scorep.cfg").write_text(
        "SCOREP_METRIC_PLUGINS='arocm_smi_plugin'\nSCOREP_METRIC_PLUGINS_SEP=','\n"
        "SCOREP_METRIC_AROCM_SMI_PLUGIN='rocm_smi:::energy_count:device=0'\n"
        "SCOREP_METRIC_AROCM_SMI_PLUGIN_INTERVAL_US=1000\nSCOREP_METRIC_PAPI='PAPI_TOT_INS'\nnot a setting\n"
    )
    return folder


def test_json_has_the_promised_fields(archive):
    about = info(archive)
    assert about["events"] == sum(about["events_by_kind"].values()) == 2 * CALLS + READINGS + 12
    assert about["frames"] == 3
    assert about["hosts"] == ["host0", "host1"]
    assert [(p["name"], p["host"]) for p in about["processes"]] == [
        ("MPI Rank 0", "host0"),
        ("MPI Rank 1", "host1"),
        ("HIP Context 0", "host0"),
    ]
    assert [place["kind"] for place in about["locations"]] == ["cpu", "cpu", "gpu", "metric", "cpu"]
    counter = about["signals"][-1]
    assert {key: counter[key] for key in ("name", "kind", "unit", "device", "host", "readings", "interval_ns")} == {
        "name": "A2rocm_smi:::energy_count:device=0",
        "kind": "counter",
        "unit": "J",
        "device": "GPU 0",
        "host": "host0",
        "readings": READINGS,
        "interval_ns": 4,
    }
    assert about["missing"] == []
    assert [problem["kind"] for problem in about["problems"]] == ["declared"]
    assert about["core"] in ("c", "reference")


def test_settings_beside_the_trace_are_shown(archive):
    about = info(archive)
    assert about["plugins"] == [
        {
            "name": "arocm_smi_plugin",
            "metrics": ["rocm_smi:::energy_count:device=0"],
            "intervals": {"SCOREP_METRIC_AROCM_SMI_PLUGIN_INTERVAL_US": "1000"},
        },
        {"name": "papi", "metrics": ["PAPI_TOT_INS"], "intervals": {}},
    ]
    printed = run("info", archive).stdout
    assert "arocm_smi_plugin" in printed
    assert "INTERVAL_US=1000" in printed


@pytest.mark.parametrize(
    ("trace", "plugins", "metrics"),
    [
        ("simple-mi300", ["coretemp_plugin", "arocm_smi_plugin"], 28),
        ("frontier-hpl-partial", ["arocm_smi_plugin"], 8),
        ("ping-pong-papi", ["papi"], 3),
        ("jacobi-mpi-omp-cuda", [], 0),
    ],
)
def test_settings_of_real_traces(shared, trace, plugins, metrics):
    from wattribute.readers.otf2 import scorep

    found = scorep.beside(shared / "traces" / trace)
    assert [plugin["name"] for plugin in found["plugins"]] == plugins
    assert sum(len(plugin["metrics"]) for plugin in found["plugins"]) == metrics
    assert ("SCOREP_ENABLE_TRACING" in found.get("manifest", [])) == (trace not in "jacobi-mpi-omp-cuda")


def test_table_says_the_same(command, archive):
    done = command("info", archive)
    assert done.returncode == 0
    for word in ("host0", "MPI Rank 1", "HIP Context 0", "GPU 0", "energy_count", "4.00 ns", "RmaPut", "core", "! "):
        assert word in done.stdout
    assert "\x1b" not in done.stdout  # no colours into a pipe


def test_missing_files_are_named_and_the_exit_code_is_0(archive, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(archive, folder)
    (folder / "traces" / "1.evt").unlink()
    about = info(folder)
    assert [(one["location"], one["process"], one["events"]) for one in about["missing"]] == [(1, "MPI Rank 1", 4)]
    assert about["events"] == 2 * CALLS + READINGS + 8
    [problem] = [one for one in about["problems"] if one["kind"] == "missing"]
    assert str(folder / "traces" / "1.evt") in problem["message"]


@pytest.mark.parametrize("part", ["traces.otf2", "traces.def", "traces"])
def test_a_part_of_an_archive_means_the_archive(archive, part):
    assert info(archive / part) == info(archive)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere"], 1, "nowhere: no such file or folder"),
        (["."], 1, "unrecognised format"),
        (["{archive}", "--metric", "("], 1, "not a regular expression"),
        (["{archive}", "--metric-kind", "x=watt:W"], 1, "unknown metric kind 'watt'"),
        (["{archive}", "--format", "jsn"], 1, "unknown --format 'jsn'; did you mean 'json'?"),
        (["{archive}", "--frame", "x"], 2, "unknown option '--frame'"),
        (["{archive}", "{archive}"], 2, "unexpected argument"),
        ([], 2, "PATH"),
    ],
)
def test_errors_are_one_line(archive, tmp_path, monkeypatch, arguments, code, says):
    monkeypatch.chdir(tmp_path)
    done = run("info", *(one.format(archive=archive) for one in arguments))
    assert done.returncode == code
    assert says in done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("wattribute: ")
    assert done.stderr.count("\n") == 1


def test_hostile_names_are_text(tmp_path):
    from wattribute.readers.otf2.writer import Writer

    with Writer(tmp_path / "x") as trace:
        host = trace.node("[bold]host[/nope]")
        trace.location("[red]t", trace.process("[link=http://x]p\x1b[31m", host)).enter(
            1, trace.region("<script>[/]alert(1)</script>")
        )
    done = run("info", tmp_path / "x")
    assert done.returncode == 0
    assert "[bold]host[/nope]" in done.stdout
    assert "\x1b" not in done.stdout


def test_signals_that_never_change_are_flagged(shared):
    signals = info(shared / "traces" / "frontier-hpl-partial")["signals"]
    constant = {signal["name"][-8:] for signal in signals if signal["constant"]}
    assert constant == {"device=1", "device=3", "device=5", "device=7"}  # one counter per package of two dies
    signals = {s["name"]: s["constant"] for s in info(shared / "traces" / "simple-mi300")["signals"]}
    assert signals["A2rocm_smi:::memory_busy_percent:device=0"]
    assert not signals["A2rocm_smi:::memory_busy_percent:device=1"]


def test_a_signal_that_ends_early_is_flagged(tmp_path):
    from wattribute.readers.otf2.writer import Writer

    with Writer(tmp_path / "x") as trace:
        host = trace.node("h")
        rank = trace.process("p", host)
        for device, last in enumerate((1000, 400)):  # the second plug-in's buffer was full at 400
            meter = trace.location("", rank, "metric")
            counter = trace.metric_class([trace.member(f"rocm_smi:::energy_count:device={device}")])
            metric = trace.metric_instance(counter, meter.number, "node", host)
            meter.readings(range(0, last, 10), metric, range(0, last, 10))
    [check] = [check for check in info(tmp_path / "x")["checks"] if check["kind"] == "ended-early"]
    assert "device=1" in check["message"]


def test_progress_is_shown_on_a_terminal_when_it_takes_long(archive, monkeypatch):
    from wattribute.cli import progress as module

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for delay, shown in ((0.0, True), (1000.0, False)):
        screen = Terminal()
        monkeypatch.setattr(module, "DELAY_S", delay)
        monkeypatch.setenv("TERM", "xterm")
        with redirect_stderr(screen), module.progress_bar("reading") as progress:
            progress(1, 2)
            time.sleep(0.2)  # the bar starts from a timer
            progress(2, 2)
        assert ("reading" in screen.getvalue()) == shown
    with redirect_stderr(io.StringIO()), module.progress_bar("reading") as progress:
        assert progress is None  # not a terminal


def test_equal_remarks_are_one_line_and_passed_checks_are_no_warnings():
    from wattribute.views.console_info import _remarks

    messages = [f"GPU {i} on n01: the counter never moved" for i in range(39)] + ["a", "a", "the clock: is unsure"]
    lines = [str(line) for line in _remarks(messages, "! ", "yellow")]
    assert lines == [
        "! GPU 0 on n01: the counter never moved (39 of this kind)", "! a (2 times)", "! the clock: is unsure",
    ]  # fmt: skip
    many = [f"{chr(65 + i)}{chr(65 + k)}" for i in range(5) for k in range(10)]
    assert str(_remarks(many, "", "dim")[-1]) == "… and 10 more remarks (--format json lists them)"
