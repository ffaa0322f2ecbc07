"""Method solve for gauges: powers it can tell, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wattribute
from wattribute.errors import NoDataError
from wattribute.testing.sensors import Load, Simulated, recording


def world(folder, pace, seconds=20.0, window=0.1, even=False, kind="boxcar", seed=1):
    draw = np.random.default_rng(seed)
    spans, at = [], 2.0
    while at < seconds:
        length = pace * (0.5 if even else float(draw.uniform(0.3, 0.8)))
        spans.append((at, at + length, "a" if even else "ab"[len(spans) % 2]))
        at += pace if even else length + pace * float(draw.uniform(0.1, 0.6))
    watts = {"a": 300.0, "b": 150.0}
    load = Load.of_spans([(s, e, watts[n]) for s, e, n in spans], 60.0, 0.0, seconds + 3)
    sensor = Simulated(kind, 0.1, window, lag_s=0.01, poll_s=0.005, quantum_w=0.1, generator=draw)
    rows = {
        "field": "simulated", "kind": kind, "period_s": 0.1, "window_s": [0.97 * window, window, 1.03 * window],
        "lag_s": [0.005, 0.01, 0.015], "gain": [0.99, 1.0, 1.01], "floor_w": 10, "cap_w": 500,
    }  # fmt: skip
    path = folder / "sensor.toml"
    path.write_text("[[sensor]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in rows.items()))
    truth: dict[str, float] = {}
    for s, e, n in spans:
        truth[n] = truth.get(n, 0.0) + float(load.between(s, e))
    return recording(spans, [("simulated power", *sensor.readings(load))]), path, truth


@pytest.mark.parametrize("window", [0.025, 0.1])
def test_spans_below_the_window_are_told_apart(tmp_path, window):
    made, path, truth = world(tmp_path, 0.09, window=window)
    found = wattribute.attribute(made, sensors=path, method="solve")
    plain = wattribute.attribute(made, sensors=path)
    for row in found.rows.iter_rows(named=True):
        assert row["self_j"] == pytest.approx(truth[row["frame"]], rel=0.06)
        assert row["self_low_j"] <= truth[row["frame"]] <= row["self_high_j"]
        wide = plain.rows.filter(frame=row["frame"]).row(0, named=True)
        assert row["self_high_j"] - row["self_low_j"] < 0.5 * (wide["self_high_j"] - wide["self_low_j"])
    book = found.devices.row(0, named=True)
    assert found.rows["self_j"].sum() + book["idle_j"] == pytest.approx(book["measured_j"], rel=1e-9)


def test_the_same_readings_give_the_same_interval(tmp_path):
    made, path, _ = world(tmp_path, 0.09)
    first, again = (wattribute.attribute(made, sensors=path, method="solve").rows for _ in range(2))
    assert first.equals(again)


def test_windows_that_see_the_same_mixture_always_are_refused(tmp_path):
    # 50 ms on, 50 ms off under a window of 100 ms: half of every window is on
    made, path, _ = world(tmp_path, 0.1, even=True)
    with pytest.raises(NoDataError, match=r"same mixture .* use method linear") as refused:
        wattribute.attribute(made, sensors=path, method="solve")
    row = wattribute.attribute(made, sensors=path).rows.row(0, named=True)  # what it says is possible is the hard range
    assert str(refused.value).endswith(f"a {row['self_hard_low_j']:.4g} to {row['self_hard_high_j']:.4g} J")


def test_a_low_pass_and_a_few_updates_are_refused(tmp_path):
    made, path, _ = world(tmp_path, 0.09, kind="low pass")
    with pytest.raises(NoDataError, match="kind 'low pass'"):
        wattribute.attribute(made, sensors=path, method="solve")
    made, path, _ = world(tmp_path, 0.09, seconds=2.5)
    with pytest.raises(NoDataError, match=r"are needed for so many frames|same mixture|open to"):
        wattribute.attribute(made, sensors=path, method="solve")
