"""``with record() as recorder:`` with replayed meters and real seconds' worth of regions."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from wattribute import attribute, load, record, region
from wattribute.errors import MeterError, NoDataError, OptionError, OutputError
from wattribute.recorders import regions
from wattribute.views.regions import used


@pytest.fixture
def meter(tmp_path):
    """A package at 50 W and a GPU at 250 W, counted every millisecond."""
    path = tmp_path / "meter.csv"
    lines = [f"{ms / 1000},{0.05 * ms},{0.25 * ms}" for ms in range(300_000)]
    path.write_text("time_s,package 0:energy_j,GPU 0:energy_j\n" + "\n".join(lines))
    return f"replay:{path}"


def test_regions_get_their_joules(meter):
    with record(meters=[meter], interval_s=0.002) as recorder:
        with pytest.raises(NoDataError, match="after the block"):
            _ = recorder.recording
        with region("outer"):
            time.sleep(0.1)
            with region("inner"):
                time.sleep(0.2)
    recording = recorder.recording
    assert os.environ.get(regions.FOLDER) is None
    rows = {row.name: row for row in used(recording)}
    assert rows["inner"].energy_j == pytest.approx(300 * rows["inner"].seconds, rel=0.02)
    assert rows["outer"].energy_j == pytest.approx(300 * rows["outer"].seconds, rel=0.02)
    for name in ("inner", "outer"):
        assert rows[name].low_j <= 300 * rows[name].seconds <= rows[name].high_j
    by_device = attribute(recording).rows.filter(device="GPU 0", frame="inner")
    assert by_device["power_w"][0] == pytest.approx(250, rel=0.02)


def test_a_program_that_sleeps_beside_a_busy_neighbour_uses_next_to_nothing(meter):
    begin_s = time.process_time()
    while time.process_time() < begin_s + 0.5:  # what it did before is not in its recording
        pass
    # a shell that ends at once: no child of ours
    shell = ["sh", "-c", "timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!"]
    neighbour = int(subprocess.run(shell, capture_output=True, check=True).stdout)
    try:
        with record(meters=[meter]) as recorder, region("sleep"):
            time.sleep(1.0)
    finally:
        os.kill(neighbour, signal.SIGTERM)  # timeout passes it on
    rows = attribute(recorder.recording, by="frame,device", scope="process").rows.filter(device="package 0")
    joules = dict(rows.select("frame", "self_j").iter_rows())
    assert joules["sleep"] < 0.1 * joules["other processes"]


def test_a_region_too_short_for_the_sensor_says_so(tmp_path):
    from rich.console import Console

    from wattribute.views.console_regions import region_table
    from wattribute.views.numbers import bounded

    path = tmp_path / "slow.csv"  # a counter that moves every 100 ms
    path.write_text("time_s,GPU 0:energy_j\n" + "\n".join(f"{i / 10},{20 * i}" for i in range(200)))
    with record(meters=[f"replay:{path}"]) as recorder:
        time.sleep(0.25)
        with region("blink"):
            time.sleep(0.005)
        time.sleep(0.25)
    recording = recorder.recording
    blink = next(row for row in used(recording) if row.name == "blink")
    assert blink.short
    assert blink.high_j > 0
    console = Console(width=160, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(region_table(used(recording)))
    console.file.close()
    line = next(line for line in console.export_text().splitlines() if line.startswith("blink"))
    assert bounded(blink.energy_j, blink.low_j, blink.high_j) in line  # the estimate with its range
    assert "shorter than the sensor's period of" in line
    assert blink.period_s == pytest.approx(0.1, rel=0.3)  # seen through readings that a busy machine makes late


def test_the_recording_is_kept_even_when_the_block_fails(meter, tmp_path):
    def fail():
        with record(tmp_path / "kept.watt", meters=[meter]), region("fails"):
            time.sleep(0.05)
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError):
        fail()
    kept = load(tmp_path / "kept.watt")
    assert kept.frames.name == ("fails",)
    assert not (tmp_path / "kept.watt" / "journal").exists()
    with pytest.raises(OutputError, match="exists already"), record(tmp_path / "kept.watt", meters=[meter]):
        pass


def test_a_recording_inside_another(meter):
    with record(meters=[meter]) as outer, region("a"):
        time.sleep(0.05)
        with record(meters=[meter]) as inner, region("b"):
            time.sleep(0.1)
        with region("c"):
            time.sleep(0.05)
    inner, outer = inner.recording, outer.recording
    assert inner.frames.name == ("b",)
    assert sorted(outer.frames.name) == ["a", "b", "c"]
    depth = dict(zip(outer.spans.spans(0).frame.tolist(), outer.spans.spans(0).depth.tolist(), strict=True))
    assert {outer.frames.name[frame]: at for frame, at in depth.items()} == {"a": 0, "b": 1, "c": 1}


def test_without_regions_the_block_is_one_span(meter):
    with record(meters=[meter]) as recorder:
        time.sleep(0.1)
    (whole, span) = used(recorder.recording)
    assert whole.energy_j == pytest.approx(span.energy_j, rel=0.2)
    assert span.calls == 1


def test_wrong_words(tmp_path):
    with pytest.raises(OptionError, match="interval"), record(interval_s=-1):
        pass
    with pytest.raises((MeterError, OptionError)), record(tmp_path / "none.watt", meters=["nosuchmeter"]):
        pass
    assert not (tmp_path / "none.watt").exists()
    assert regions._sink is None


def test_regions_flow_into_run(meter, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import time, wattribute\n"
        "with wattribute.region('train'):\n    time.sleep(0.3)\n"
        "with wattribute.region('test'):\n    time.sleep(0.1)\n"
        "print('out')\n"
    )
    command = [sys.executable, "-m", "wattribute", "run", "--meters", meter, "-o", "x.watt", "--interval", "0.005"]
    done = subprocess.run([*command, "--", sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "out\n"), done.stderr
    recording = load(tmp_path / "x.watt")
    rows = {row.name: row for row in used(recording)}
    assert rows["train"].energy_j == pytest.approx(300 * rows["train"].seconds, rel=0.03)
    assert rows["train"].seconds >= 0.3  # a busy machine sleeps longer
    assert not list((tmp_path / "x.watt").glob("regions/*"))
    assert recording.metadata["clock"]["host"] == os.uname().nodename
    summary = json.loads((tmp_path / "x.watt" / "summary.json").read_text())
    assert summary["energy_j"] == pytest.approx(300 * summary["duration_s"], rel=0.05)


def test_the_temporary_folder_goes_though_a_process_still_writes_to_it(tmp_path):
    from wattribute.files import temporary_folder

    program = (
        "import os, sys\nwhile os.path.isdir(sys.argv[1]): open(f'{sys.argv[1]}/{os.urandom(8).hex()}', 'w').close()"
    )
    with temporary_folder() as folder:
        writer = subprocess.Popen([sys.executable, "-c", program, folder], stderr=subprocess.DEVNULL)
        while not any(folder.iterdir()):
            assert writer.poll() is None
    assert not folder.exists()
    writer.wait()


def test_a_second_recording_of_one_name_has_an_answer(meter, tmp_path):
    for _ in range(2):
        with record(tmp_path / "x.watt", meters=[meter], overwrite=True):
            pass
    with pytest.raises(OutputError, match="overwrite=True"), record(tmp_path / "x.watt", meters=[meter]):
        pass
    assert len(load(tmp_path / "x.watt").signals) > 0
    (tmp_path / "mine.watt").mkdir()
    (tmp_path / "mine.watt" / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="not a recording"), record(tmp_path / "mine.watt", overwrite=True):
        pass
    assert (tmp_path / "mine.watt" / "thesis.txt").exists()
