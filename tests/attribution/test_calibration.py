"""calibrate: a sensor from a known load, alone and beside a meter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wattribute
from wattribute.errors import FormatError, NoDataError
from wattribute.sensors import Evidence, known_lines
from wattribute.testing.sensors import Load, Simulated, recording

EPOCH_NS = 1_700_000_000_000_000_000
NAME = "nvidia-smi GPU 0 power.draw.instant"


def run(window=0.05, lag=0.02, gain=0.94, offset=-3.0, seed=3):
    """Pulses of uneven length, their load and a recording with a wall clock."""
    draw = np.random.default_rng(seed)
    edges = np.cumsum(np.concatenate([[2.0], draw.uniform(0.05, 0.4, 60)]))
    spans = [(float(a), float(b), "on") for a, b in zip(edges[:-1:2], edges[1::2], strict=False)]
    load = Load.of_spans([(a, b, 320.0) for a, b, _ in spans], 80.0, 0.0, float(edges[-1]) + 2)
    sensor = Simulated("boxcar", 0.1, window, lag_s=lag, gain=gain, offset_w=offset, poll_s=0.005, generator=draw)
    made = recording(spans, [(NAME, *sensor.readings(load))])
    return replace(made, clock=replace(made.clock, epoch_ns=EPOCH_NS)), load


def meter_file(folder, load, every=8):
    rows = zip(load.times[:-1:every] + EPOCH_NS / 1e9, load.watts[::every], strict=False)
    path = folder / "meter.csv"
    path.write_text("time_s,power_w\n" + "".join(f"{at:.6f},{watts:.3f}\n" for at, watts in rows))
    return path


def holds(triple, value):
    return triple.least - 1e-9 <= value <= triple.most + 1e-9


def test_window_and_lag_without_a_meter_and_gain_stays_the_tables():
    made, _ = run()
    found = wattribute.calibrate(made)
    assert holds(found.window_s, 0.05)
    assert holds(found.lag_s, 0.02)
    assert found.period_s.likely == pytest.approx(0.1, rel=0.02)
    assert found.gain is None
    assert any("no meter" in note for note in found.notes)
    assert any("only the sum" in note for note in found.notes)


def test_beside_a_meter_gain_and_offset_too_and_the_file_corrects(tmp_path):
    made, load = run()
    output, picture = tmp_path / "sensor.toml", tmp_path / "fit.svg"
    found = wattribute.calibrate(made, meter=meter_file(tmp_path, load), output=output, picture=picture)
    assert found.gain.likely == pytest.approx(0.94, rel=0.01)
    assert holds(found.window_s, 0.05)
    assert found.explained > 0.99
    assert picture.read_text().startswith("<svg")
    line = known_lines(output).line(Evidence(NAME))
    assert line.corrects
    plain, corrected = wattribute.attribute(made), wattribute.attribute(made, sensors=output)
    ran = made.spans.spans(0)
    truth = float(np.sum(load.between(ran.start / 1e9, ran.end / 1e9)))
    low, high = (corrected.rows[f"self_{end}_j"][0] for end in ("low", "high"))
    assert low <= truth <= high
    book = corrected.devices.row(0, named=True)
    whole = load.between(0.5, load.times[-1] - 0.1)
    assert book["measured_j"] / plain.devices["measured_j"][0] == pytest.approx(1 / 0.94, rel=0.03)
    assert book["measured_j"] == pytest.approx(whole, rel=0.06)


def test_what_cannot_be_calibrated_is_said(tmp_path):
    flat = recording([(1.0, 2.0, "a")], [(NAME, np.arange(0, 5, 0.01), np.full(500, 80.0))])
    with pytest.raises(NoDataError, match=r"updates|hardly change"):
        wattribute.calibrate(flat)
    made, _ = run()
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="time_s"):
        wattribute.calibrate(made, meter=bad)
    with pytest.raises(NoDataError, match="no wall clock"):
        wattribute.calibrate(replace(made, clock=replace(made.clock, epoch_ns=None)), meter=bad)


def test_the_verb_prints_a_sensor_file(tmp_path, capsys, monkeypatch):
    from wattribute.cli import main

    made, load = run()
    wattribute.save(made, tmp_path / "run.watt")
    meter = meter_file(tmp_path, load)
    monkeypatch.setattr("sys.argv", ["wattribute", "calibrate", str(tmp_path / "run.watt"), "--meter", str(meter)])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    out = capsys.readouterr()
    assert out.out.startswith("[[sensor]]")
    assert "gain 0.9" in out.err
