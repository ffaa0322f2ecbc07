"""``wattribute attribute`` as a stranger uses it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import polars as pl
import pytest
from rich.console import Console

from tests.views.stories import streams
from wattribute import attribute, cli, samples, save
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views.console import attribution_tables

REPORT = """\
Device: GPU-0
   Max Recorded Sample for GPU-0: 2237.380365 J
   1843.223168 J, heavy_kernel(float*, float con, 4.735383814001007s
   Total Attributed Metrics for GPU-0:
      1843.223168 J, Metric: A2rocm_smi:::energy_count:device=0
   Idle attribution for GPU-0: 394.157197 J
Device: GPU-1
   Max Recorded Sample for GPU-1: 1874.190017 J
   1119.611771 J, light_kernel(float*, float con, 1.6283328474139287s
   Total Attributed Metrics for GPU-1:
      1119.611771 J, Metric: A2rocm_smi:::energy_count:device=1
   Idle attribution for GPU-1: 754.578246 J
Device: GPU-2
   Max Recorded Sample for GPU-2: 881.594227 J
   Total Attributed Metrics for GPU-2:
      0.000000 J, Metric: A2rocm_smi:::energy_count:device=2
   Idle attribution for GPU-2: 881.594227 J
Device: GPU-3
   Max Recorded Sample for GPU-3: 904.416717 J
   Total Attributed Metrics for GPU-3:
      0.000000 J, Metric: A2rocm_smi:::energy_count:device=3
   Idle attribution for GPU-3: 904.416717 J
"""
DEVICE = {"device", "signal", "host", "of", "measured_j", "attributed_j", "idle_j", "coverage", "counted", "why"}
DEVICE |= {
    "measured_low_j",
    "measured_high_j",
    "measured_hard_low_j",
    "measured_hard_high_j",
    "estimated",
    "gain_error",
}
VALUES = {"self_j", "total_j", "self_low_j", "self_high_j", "total_low_j", "total_high_j"}
VALUES |= {"self_hard_low_j", "self_hard_high_j", "total_hard_low_j", "total_hard_high_j"}
VALUES |= {"self_ns", "total_ns", "covered_ns", "calls", "power_w", "estimated"}


@pytest.fixture
def wattribute(monkeypatch, capsys):
    """Run the command line in this process; its standard output and error."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["wattribute", "attribute", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, errors = capsys.readouterr()
        assert (stopped.value.code or 0) == code, errors
        return out, errors

    return run


@pytest.fixture(scope="module")
def simple(shared):
    return shared / "traces" / "simple-mi300"


def test_the_published_report_literally(wattribute, simple):
    out, _ = wattribute(simple, "--method", "window", "--format", "report")
    assert out == REPORT


def test_json_has_the_promised_fields(wattribute, simple):
    out, _ = wattribute(simple, "--format", "json")
    document = json.loads(out)
    assert set(document) == {"about", "devices", "rows", "problems"}
    assert [set(device) for device in document["devices"] if device["counted"]] == [DEVICE] * 4
    assert all(set(row) == VALUES | {"host", "device", "frame", "of"} for row in document["rows"])
    assert {name: document["about"][name] for name in ("by", "method", "share")} == {
        "by": ["device", "frame"], "method": "linear", "share": "even",
    }  # fmt: skip
    assert document["rows"][0]["self_j"] == pytest.approx(1842.495723400, abs=1e-9)
    assert document["devices"][0]["idle_j"] == pytest.approx(394.884641600, abs=1e-9)
    assert {problem["kind"] for problem in document["problems"]} == {"declared"}
    assert [device["device"] for device in document["devices"] if not device["counted"]] == [
        f"hwmon{i}" for i in range(2, 6)
    ]


def test_table_shows_books_rows_and_idle_devices(wattribute, simple):
    out, _ = wattribute(simple)
    for words in (
        "GPU 3",
        "not counted: hwmon2",
        "2.24 kJ",
        "1.84 kJ",
        "395 J",
        "heavy_kernel",
        "389 W",
        "nobody",
        "31 %",  # 1.84 of the 5.90 kJ that the four GPUs measured
    ):
        assert words in out


def test_rows_in_the_order_that_was_asked_for(wattribute, tmp_path):
    program = tmp_path / "prog.py"
    program.write_text("def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\ndef main(): return f(18)\nmain()\n")
    subprocess.run([sys.executable, "-m", "cProfile", "-o", tmp_path / "prog.prof", program], check=True)

    def first(key):
        out, _ = wattribute(tmp_path / "prog.prof", "--sort", key, "--top", "1", "--format", "csv", "--by", "frame")
        (row,) = pl.read_csv(out.encode())["frame"].to_list()
        return row

    assert (first("calls"), first("self")) == ("f", "f")
    assert "exec" in first("total")
    assert "calls" in wattribute(tmp_path / "prog.prof", "--sort", "calsl", code=1)[1]


def test_bins_are_named_by_where_they_begin(wattribute, tmp_path):
    save(streams(["a", "b"]), tmp_path / "two.watt")
    out, _ = wattribute(tmp_path / "two.watt", "--by", "frame,bin=20ms")
    assert re.search(r"^a +0[.]1 s ", out, re.MULTILINE)


def test_a_table_by_signal_has_shares_per_signal(wattribute, simple):
    out, _ = wattribute(simple, "--metric", "device=0", "--by", "signal", "--statistics", "--top", "3")
    assert "A2rocm_smi:::busy_percent:device=0" in out
    (line,) = [line for line in out.splitlines() if "energy_count:device=0" in line and "82 %" in line]
    assert "1.84 kJ" in line
    assert "… and 1 more" in out


def test_only_a_terminal_leaves_out_devices(wattribute, tmp_path):
    made = RecordingBuilder(10, name="many").host("n").process("p").thread("work 0..100")
    for i in range(120):
        made.counter(f"GPU {i}", [0, 100 + i], [0, 100]).link(f"GPU {i}", 0)
    recording = made.recording()
    save(recording, tmp_path / "many.watt")
    piped, _ = wattribute(tmp_path / "many.watt")
    wattribute(tmp_path / "many.watt", "-o", tmp_path / "table.txt")
    screen = Console(file=io.StringIO(), width=160)
    screen.print(attribution_tables(attribute(recording), limited=True))
    tables = [
        len(re.findall(r"^GPU \d+  n  of host", text, re.MULTILINE))
        for text in (piped, (tmp_path / "table.txt").read_text(encoding="utf-8"), screen.file.getvalue())
    ]
    assert tables == [120, 120, 32]
    assert "… and 88 more devices" in screen.file.getvalue()
    assert "… and 20 more" in screen.file.getvalue()  # in the books
    assert "… and" not in piped


def test_hostile_names_stay_text(wattribute, tmp_path, monkeypatch):
    from wattribute.testing.recordings import small

    recording = small()
    evil = ("[red]main[/]\x1b[31m\n<script>", *recording.frames.name[1:])
    healthy = replace(recording.signals[0], stale=False, wraps_at=None, latency_s=None)
    recording = replace(recording, frames=replace(recording.frames, name=evil), signals=(healthy,))
    save(recording, tmp_path / "evil.watt")
    out, _ = wattribute(tmp_path / "evil.watt", "--of", "host")
    assert "[red]main[/]" in out
    assert "\x1b" not in out
    csv, _ = wattribute(tmp_path / "evil.watt", "--of", "host", "--format", "csv")
    assert "<script>" in csv
    document = json.loads(wattribute(tmp_path / "evil.watt", "--of", "host", "--format", "json")[0])
    assert document["rows"][0]["frame"] == evil[0]


def test_an_estimate_is_marked_over_its_rows_too(wattribute, tmp_path):
    from wattribute.testing.recordings import small

    model = replace(small().signals[0], stale=False, wraps_at=None, latency_s=None, estimated=True)
    save(replace(small(), signals=(model,)), tmp_path / "x.watt")
    out, _ = wattribute(tmp_path / "x.watt", "--of", "host")
    (title,) = [line for line in out.splitlines() if line.endswith("of host")]
    assert title.startswith(f"{model.device} estimated  ")


def test_files_are_written_whole(wattribute, simple, tmp_path):
    wattribute(simple, "--of", "host", "--format", "parquet", "-o", tmp_path / "rows.parquet")
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert len(rows) == 64
    wattribute(simple, "--of", "host", "--by", "path", "--format", "csv", "-o", tmp_path / "rows.csv")
    assert "main;hipMalloc" in (tmp_path / "rows.csv").read_text()
    wattribute(simple, "--spans", tmp_path / "spans.parquet", "-o", tmp_path / "table.txt")
    spans = pl.read_parquet(tmp_path / "spans.parquet")
    assert spans["self_j"].sum() == pytest.approx(1842.495723400 + 1119.269555645, abs=1e-8)
    assert "heavy_kernel" in (tmp_path / "table.txt").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rows.csv",
        "rows.parquet",
        "spans.parquet",
        "table.txt",
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--metric", "energy_cout"], "did you mean 'energy_count'"),
        (["--metric", "("], "not a regular expression"),
        (["--of", "kernel"], "did you mean 'kernels'"),
        (["--by", "devise"], "did you mean 'device'"),
        (["--by", "bin=fast"], "bin=100ms"),
        (["--method", "linaer"], "did you mean 'linear'"),
        (["--share", "evn"], "did you mean 'even'"),
        (["--share", "load"], "--load RE"),
        (["--integrate", "stepp"], "did you mean 'step'"),
        (["--map", "energy"], "SIGNAL_RE -> NAME"),
        (["--map", "energy_count -> HIP Contxt 0"], "did you mean 'HIP Context 0'"),
        (["--topology", "{tmp}/none.toml"], "No such file"),
        (["--from", "yesterday"], "neither seconds nor ISO"),
        (["--from", "2026-01-01"], "no wall clock"),
        (["--from", "5", "--to", "2"], "is empty"),
        (["--metric", "device=0"], "--by signal"),
        (["--format", "parquet"], "-o OUT.parquet"),
        (["-o", "{tmp}/none/table.txt"], "cannot be written"),
        (["--format", "json", "-o", "{tmp}/none/x.json"], "cannot be written"),
        (["--format", "report", "--by", "frame"], "by device and frame"),
    ],
)
def test_a_wrong_option_is_one_clear_line(wattribute, tmp_path, flags, words):
    out, errors = wattribute(samples.path("trace"), *(flag.replace("{tmp}", str(tmp_path)) for flag in flags), code=1)
    assert out == ""
    assert words in errors
    assert errors.startswith("wattribute: ")
    assert errors.count("\n") == 1


def test_views_side_by_side_are_never_added(wattribute, simple):
    out, _ = wattribute(simple, "--of", "kernels", "--of", "host", "--by", "of", "--format", "json")
    document = json.loads(out)
    assert [row["of"] for row in document["rows"]] == ["host", "kernels"]
    assert sum(device["counted"] for device in document["devices"]) == 8
    main = 2237.2858685602 + 1874.1113285168 + 881.5285789454 + 904.3490888183
    assert document["rows"][0]["self_j"] == pytest.approx(main, rel=1e-9)


def test_a_trace_without_energy_says_so(wattribute, shared):
    out, errors = wattribute(shared / "traces" / "mpi-otf2-3")
    assert "no energy was metered, so rows are seconds" in errors
    assert errors.count("no energy was metered") == 1
    assert " J" not in out


def test_synchronous_counters_belong_to_their_location(wattribute, shared):
    out, _ = wattribute(shared / "traces" / "ping-pong-papi", "--metric", "PAPI_TOT_CYC", "--format", "json")
    document = json.loads(out)
    assert len(document["devices"]) >= 2
    for device in document["devices"]:
        assert device["unit"] == "#"
        assert device["attributed_value"] + device["idle_value"] == pytest.approx(device["measured_value"], rel=1e-9)


def test_the_ending_of_the_output_says_the_format(wattribute, tmp_path):
    save(streams(["a"]), tmp_path / "a.watt")
    for name in ("a.json", "a.csv", "a.parquet", "a.txt"):
        assert wattribute(tmp_path / "a.watt", "-o", tmp_path / name)[0] == ""
    assert set(json.loads((tmp_path / "a.json").read_text())) == {"about", "devices", "rows", "problems"}
    assert "self_j" in pl.read_csv(tmp_path / "a.csv").columns
    assert "self_j" in pl.read_parquet(tmp_path / "a.parquet").columns
    assert "measured" in (tmp_path / "a.txt").read_text()
    wattribute(tmp_path / "a.watt", "-o", tmp_path / "b.json", "--format", "csv")
    assert "self_j" in pl.read_csv(tmp_path / "b.json").columns


def attribute_to(out, folder, **environment):
    """The command line in a process of its own, whose standard output is ``out``."""
    call = "from wattribute.cli import main; main()"
    command = [sys.executable, "-c", call, "attribute", str(folder)]
    return subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=os.environ | environment)


def test_a_full_disk_behind_standard_output_is_one_line(tmp_path):
    save(streams(["a"]), tmp_path / "a.watt")
    with open("/dev/full", "w") as full:
        done = attribute_to(full, tmp_path / "a.watt")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "wattribute: the output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


def test_a_locale_that_cannot_spell_the_bars_still_gets_the_numbers(tmp_path):
    save(streams(["a"]), tmp_path / "a.watt")
    done = attribute_to(subprocess.PIPE, tmp_path / "a.watt", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout
    assert "?" in done.stdout


def test_a_trace_without_any_metric_is_told_to_join_a_log(wattribute, tmp_path):
    (tmp_path / "spans.csv").write_text("name,start,end\na,0,1\n")
    out, errors = wattribute(tmp_path / "spans.csv")
    assert [line.split()[2:4] for line in out.splitlines() if line.startswith("a ")] == [["1.00", "s"]]
    assert "for joules join a power log (--signals FILE)" in errors


def test_counted_samples_have_no_time_and_no_power(wattribute, tmp_path):
    (tmp_path / "x.folded").write_text("main;a 30\nmain;b 10\n")
    (tmp_path / "power.csv").write_text("time_s,cpu_power_w\n0,10\n4,10\n")
    out, errors = wattribute(tmp_path / "x.folded", "--signals", tmp_path / "power.csv")
    # 40 J by counts of 30 : 10
    rows = {line.split()[0]: line.split()[2:] for line in out.splitlines() if line[:2] in ("a ", "b ")}
    assert rows == {
        "a": ["30.0", "J", "75", "%", "30.0", "J", "–", "–", "1"],
        "b": ["10.0", "J", "25", "%", "10.0", "J", "–", "–", "1"],
    }
    assert "mean power was shared out by its samples, an estimate" in " ".join(errors.split())


def test_shares_have_one_denominator_and_asked_keys_are_shown(wattribute, simple):
    for by in ("frame", "device,frame", "host,of,process,frame"):
        out, _ = wattribute(simple, "--by", by)
        assert "the column share is of 5.90 kJ measured" in out
        line = next(line for line in out.splitlines() if "heavy_kernel" in line)
        assert " 31 % " in line
    assert line.startswith("faraday.f")
    assert line.split()[1] == "kernels"


def test_tables_for_papers_and_standard_output(wattribute, simple, tmp_path):
    assert wattribute(simple, "--by", "frame", "-o", tmp_path / "a.md")[0] == ""
    lines = (tmp_path / "a.md").read_text().splitlines()
    assert lines[0] == "| frame | self (J) | low (J) | high (J) | total (J) | time (s) | power (W) | calls |"
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    assert lines[2].startswith(r"| heavy\_kernel(float\*, float const\*) | 1842.5 | ")
    assert wattribute(simple, "--by", "frame", "-o", tmp_path / "a.tex")[0] == ""
    text = (tmp_path / "a.tex").read_text()
    assert r"\begin{tabular}{lrrrrrrr}" in text
    assert r"heavy\_kernel(float*, float const*) & 1842.5 & " in text
    out, _ = wattribute(simple, "--by", "frame", "-o", "-")
    assert "heavy_kernel" in out
    out, _ = wattribute(simple, "--by", "frame", "-o", "-", "--format", "csv")
    assert out.splitlines()[0].endswith(",power_w,calls,estimated,method,share,version")
