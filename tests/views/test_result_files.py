"""Text and picture of a run, and the picture that is drawn while it goes on."""

import os
import re
import subprocess
import sys

import pytest

import wattribute
from tests.meters.fakes import FakeNvml, Wave
from wattribute.sessions.metrics import metrics
from wattribute.sessions.summary import summarise
from wattribute.views import plot
from wattribute.views.live_plot import MOST_POINTS, StatusHistory, picture
from wattribute.views.numbers import seconds
from wattribute.views.result_files import write_plot, write_summary
from wattribute.views.theme import LIGHT

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
    assert run(tmp_path, fake, "--plot", "--", "sleep", "0.3").returncode == 0
    assert (tmp_path / "x.watt" / "metrics_plot.png").read_bytes().startswith(PNG)
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


def status(second, devices=("GPU 0", "GPU 1"), power_w=200.0):
    live = [
        {
            "device": name, "note": "", "power_limit_w": 300.0, "memory_total_bytes": 2**35, "power_w": power_w,
            "energy_j": 1.0, "utilisation_percent": 50.0, "memory_bytes": 2**30, "sm_clock_hz": 1e9,
            "memory_clock_hz": 2e9,
        }
        for name in devices
    ]  # fmt: skip
    # 1,700,000,000 s is 2023-11-14 22:13:20 UTC
    epoch_ns = (1_700_000_000 + second) * 10**9
    return {"live": live, "elapsed_s": float(second), "epoch_ns": epoch_ns, "energy_j": 400.0 * second, "host": "n<1>"}


def test_the_live_picture_has_limits_energy_and_the_wall_clock():
    history = StatusHistory()
    assert picture(history) == ""
    for second in range(11):
        history.add(status(second))
    drawn = picture(history)
    for text in (
        ">4.00 kJ in 10.0 s so far<",
        ">limit 300 W<",
        ">limit 32.0 GiB<",
        ">22:13:22<",
        ">GPU 1 sm<",
        "n&lt;1&gt;",
    ):
        assert text in drawn
    hues = set(re.findall(r'fill="(#\w+)"[^>]*>GPU 1', drawn))
    assert len(hues) == 1  # one colour in utilisation, power, memory and clock


def test_the_history_of_a_long_run_is_bounded_and_keeps_its_extremes():
    history = StatusHistory()
    for second in range(5000):
        history.add(status(second, ("GPU 0",), 900.0 if second == 77 else 100.0))
    line = history.points["W", "GPU 0", "power"]
    assert len(line) <= MOST_POINTS
    assert max(point.high for point in line) == 900.0
    assert (line[0].time_s, history.last["elapsed_s"]) == (0.0, 4999.0)


def test_a_dead_sensor_is_not_in_the_live_picture():
    history = StatusHistory()
    for second in range(3):
        said = status(second)
        said["live"][1]["note"] = "does not answer"
        history.add(said)
    assert "GPU 1" not in picture(history)


def test_panels_show_limits_one_colour_per_device_and_the_wall_clock(fake, tmp_path):
    pytest.importorskip("altair", reason="the plot extra is not installed")
    assert run(tmp_path, fake, "--", "sleep", "0.5").returncode == 0
    recording = wattribute.read(tmp_path / "x.watt")
    chart = plot.panels(recording)
    drawn = chart.to_dict()
    rows = [row for values in drawn["datasets"].values() for row in values]
    words = {row["text"] for row in rows if "text" in row}
    assert {"limit 400 W", "limit 40.0 GiB", "GPU 0 instant", "GPU 0 sm", "GPU 0 memory"} <= words
    assert {row["ground"] for row in rows if row.get("series", "").startswith("GPU 0")} == {LIGHT.series[0]}
    (headline,) = drawn["title"]["text"]
    begin, end = recording.life
    assert headline.endswith(f"J in {seconds(recording.clock.seconds(end - begin))}")
    axes = re.findall(r'"title": "time \(UTC\)"', chart.to_json())
    assert axes
