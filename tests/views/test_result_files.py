"""Text and picture of a run, and the picture that is drawn while it goes on."""

import os
import subprocess
import sys

import pytest

import wattribute
from tests.meters.fakes import FakeNvml, Wave
from wattribute.sessions.metrics import metrics
from wattribute.sessions.summary import summarise
from wattribute.views.result_files import write_plot, write_summary

RUN = [sys.executable, "-m", "wattribute", "run", "-q", "-o", "x.watt"]
PNG = b"\x89PNG"


@pytest.fixture
def fake(tmp_path):
    return FakeNvml(tmp_path, [Wave(250)])


def run(folder, fake, *arguments):
    return subprocess.run([*RUN, *arguments], cwd=folder, env=fake.environment(), capture_output=True, text=True)


def test_every_run_leaves_its_results_and_stays_readable(fake, tmp_path):
    script = "sleep 0.3; echo '{\"t\": 1.25}' > m.json"
    done = run(tmp_path, fake, "--score", "m.json:t", "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    folder = tmp_path / "x.watt"
    assert {"metrics.json", "metrics.yml", "summary.txt", "timeseries.csv", "timeseries.parquet"} <= set(
        os.listdir(folder)
    )
    assert not (folder / "metrics_plot.png").exists()  # of commands only when asked for
    text = (folder / "summary.txt").read_text(encoding="utf-8")
    assert "| score     | 1.25 " in text
    assert "250 W (of 400 W)" in text
    recording = wattribute.read(folder)
    wattribute.save(recording, tmp_path / "again.watt")
    assert wattribute.read(tmp_path / "again.watt").metadata == recording.metadata


def test_text_shows_hostile_names_as_they_are_and_unknowns_as_such(tmp_path):
    empty = wattribute.Recording(metadata={"name": "[red]x[/red]", "run": {}})
    summary = summarise(empty)
    path = write_summary(summary, metrics(empty, summary), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "[red]x[/red]" in text
    assert "nothing was metered here" in text
    assert "none was metered" in text


def test_a_picture_when_asked_for(fake, tmp_path):
    pytest.importorskip("altair", reason="the plot extra is not installed")
    assert run(tmp_path, fake, "--", "sleep", "0.3").returncode == 0
    recording = wattribute.read(tmp_path / "x.watt")
    assert write_plot(recording, tmp_path).read_bytes().startswith(PNG)
    with pytest.raises(wattribute.WattributeError, match="no signal of"):
        write_plot(wattribute.Recording(), tmp_path)


def test_the_picture_is_there_while_it_runs(fake, tmp_path):
    pytest.importorskip("altair", reason="the plot extra is not installed")
    # ends by itself as soon as the picture is there; what it then sees is a whole one
    wait = "import os, time\nwhile not os.path.exists('x.watt/metrics_plot.png'): time.sleep(0.05)\n"
    wait += "open('seen', 'wb').write(open('x.watt/metrics_plot.png', 'rb').read())"
    done = run(tmp_path, fake, "--live-plot", "--no-plot", "--", sys.executable, "-c", wait)
    assert (done.returncode, done.stderr) == (0, "")
    seen = (tmp_path / "seen").read_bytes()
    assert seen.startswith(PNG)
    assert seen.rstrip(b"\x00").endswith(b"IEND\xaeB`\x82")
    assert not [name for name in os.listdir(tmp_path / "x.watt") if name.startswith(".")]
