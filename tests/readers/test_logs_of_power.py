"""Logs of experiment-impact-tracker and Scaphandre: joules by hand, folders, cut files, what counts."""

import json

import pytest

import wattribute
from tests.readers.samples import DATA
from wattribute.errors import FormatError

SCAPHANDRE, TRACKER = DATA / "scaphandre-report.json", DATA / "impact_tracker-data.json"


def books(path):
    return {row["device"]: row for row in wattribute.attribute(path).devices.to_dicts()}


def test_scaphandre_a_report_is_the_mean_since_the_one_before():
    """Reports each 2 s: 26, 35 and 9 W of the package after the first are 140 J; memory 4 + 5 + 1 W are 20 J."""
    devices = books(SCAPHANDRE)
    assert devices["package 0"]["measured_j"] == pytest.approx(140)
    assert devices["memory 0"]["measured_j"] == pytest.approx(20)
    assert {name for name, row in devices.items() if row["counted"]} == {"package 0", "memory 0"}
    powers = {s.name: s for s in wattribute.read(SCAPHANDRE).signals if not s.device}
    assert powers["scaphandre power of python3 (100)"].values.tolist() == [9.0, 15.0, 22.0]


def test_scaphandre_host_counts_where_it_is_alone(tmp_path):
    reports = [{**report, "sockets": []} for report in json.loads(SCAPHANDRE.read_text())]
    (tmp_path / "vm").write_text(json.dumps(reports))
    (host,) = books(tmp_path / "vm").values()
    assert host["counted"]
    assert host["measured_j"] == pytest.approx(2 * (30 + 40 + 10))


def test_scaphandre_without_brackets_and_cut(tmp_path):
    """Version 1.0.0 wrote one report after the other; a log that was cut keeps the reports before."""
    reports = json.loads(SCAPHANDRE.read_text())
    (tmp_path / "plain").write_text("".join(map(json.dumps, reports)))
    assert books(tmp_path / "plain")["package 0"]["measured_j"] == pytest.approx(140)
    (tmp_path / "cut").write_text(json.dumps(reports)[:-80])
    cut = wattribute.read(tmp_path / "cut")
    assert books(tmp_path / "cut")["package 0"]["measured_j"] == pytest.approx(2 * (26 + 35))
    assert any("is cut or not JSON" in problem.message for problem in cut.problems)
    (tmp_path / "one").write_text(json.dumps(reports[:1]))
    with pytest.raises(FormatError, match="fewer than two reports"):
        wattribute.read(tmp_path / "one")


def test_impact_tracker_counts_what_was_metered_once(tmp_path):
    """Samples each 2 s, trapezoid: CPU (50 + 60 + 55) W × 2 s, GPUs (150 + 250 + 200) W × 2 s; shares do not count."""
    folder = tmp_path / "log" / "impacttracker"
    folder.mkdir(parents=True)
    (folder / "data.json").write_bytes(TRACKER.read_bytes())
    for path in (TRACKER, tmp_path / "log", folder):
        answer = wattribute.attribute(path)
        joules = {row["device"]: row["measured_j"] for row in answer.devices.to_dicts()}
        assert joules == {"CPU": pytest.approx(330), "GPUs": pytest.approx(1200)}
        assert answer.rows["self_j"].sum() == pytest.approx(1530)
    use = next(s for s in wattribute.read(TRACKER).signals if s.name == "impact_tracker GPUs utilisation")
    assert (use.unit, use.values.tolist()) == ("%", [0.0, 25.0, 50.0, 75.0])


def test_impact_tracker_says_what_it_left_out(tmp_path):
    lines = TRACKER.read_text().splitlines()
    lines[1:1] = ['{"timestamp": "yesterday", "rapl_power_draw_absolute": 1}', "[1, 2]"]
    (tmp_path / "data.json").write_text("\n".join(lines))
    recording = wattribute.read(tmp_path / "data.json")
    said = " ".join(problem.message for problem in recording.problems)
    assert "1 × samples without a valid time" in said
    (tmp_path / "data.json").write_text(lines[0])
    with pytest.raises(FormatError, match="fewer than two samples"):
        wattribute.read(tmp_path / "data.json")
