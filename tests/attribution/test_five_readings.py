"""The five-reading example of an earlier engine: equal where it is right, and where it is not, the right value and why.

Readings at 0 … 4 s; rank A runs main [0, 4) with foo [0.5, 1.5) in it, rank B main [1, 3) with bar [2, 3) in it; both
use one device. ``shared`` is share "even", ``independent`` is "full"; ``inclusive`` is total, ``exclusive`` is self.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from wattribute.engines import attribute
from wattribute.testing.recordings import RecordingBuilder, signal

SHARE = {"shared": "even", "independent": "full"}
KIND = {
    "cumulative": ("counter", "step"),
    "instantaneous": ("gauge", "step"),
    "instantaneous_kind=trapezoid": ("gauge", "trapezoid"),
}
CALLS = ("A.main", "A.foo", "B.main", "B.bar")
SELF_S = {"A.main": 3.0, "A.foo": 1.0, "B.main": 1.0, "B.bar": 1.0}
TOTAL_S = {"A.main": 4.0, "A.foo": 1.0, "B.main": 2.0, "B.bar": 1.0}


@pytest.fixture(scope="module")
def example(shared):
    oracles = json.loads((shared / "oracles" / "oracles.json").read_text())
    return oracles["ampere_engine"]["synthetic"]


def recording(example, kind):
    values = example["cumulative_values" if kind == "counter" else "instantaneous_values"]
    unit, times = "J" if kind == "counter" else "W", np.array(example["metric_times"]) * 1000
    made = RecordingBuilder(1000).process("A").thread("main 0..4000, foo 500..1500")
    made.process("B").thread("main 1000..3000, bar 2000..3000")
    return made.device("node").signals(signal(kind, values, times, "m", unit, device="node")).recording()


def solved(example, how, share):
    kind, integrate = KIND[how]
    options = {"share": SHARE[share], "integrate": integrate, "statistics": True}
    rows = attribute(recording(example, kind), by="process,frame", **options).rows.to_dicts()
    each = attribute(recording(example, kind), spans=True, **options).rows.to_dicts()
    for row, span in ((row, span) for row in rows for span in each):
        if (row["process"], row["frame"]) == (span["process"], span["frame"]):
            for name in ("self_j", "total_j", "mean", "min", "max", "total_rate", "power_w", "readings"):
                assert row[name] == span[name]  # one call per row: both outputs have to agree
    return {f"{row['process']}.{row['frame']}": row for row in rows}


@pytest.mark.parametrize("how", KIND)
@pytest.mark.parametrize("share", SHARE)
def test_quantities_and_rates(example, how, share):
    rows = solved(example, how, share)
    for strategy, column, seconds in (("inclusive", "total", TOTAL_S), ("exclusive", "self", SELF_S)):
        quantity = example["results"][f"{how}|{share}|{strategy}|quantity"]
        rate = example["results"][f"{how}|{share}|{strategy}|rate"]
        assert set(quantity) == set(CALLS)
        for call in CALLS:
            row = rows[call]
            assert row[f"{column}_j"] == pytest.approx(quantity[call], rel=1e-8, abs=1e-12)
            ours = row["total_rate" if column == "total" else "power_w"]
            # self energy over self time: the earlier engine divides it by the time of the whole call
            assert ours == pytest.approx(quantity[call] / seconds[call], rel=1e-8, abs=1e-12)
            if strategy == "inclusive" or SELF_S[call] == TOTAL_S[call]:
                assert ours == pytest.approx(rate[call], rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("how", KIND)
def test_means_are_of_the_signal_whoever_else_is_active(example, how):
    """Without sharing the earlier engine's mean is ours; with it, it halves a mean, which no sensor ever said."""
    expected = example["results"][f"{how}|independent|inclusive|mean"]
    for share in SHARE:
        rows = solved(example, how, share)
        for call in CALLS:
            assert rows[call]["mean"] == pytest.approx(expected[call], rel=1e-8, abs=1e-12)


def test_least_and_greatest_of_a_gauge(example):
    """A.main saw 10, 20, 0, 30, 50; the earlier engine looks at 10 and 50 only."""
    right = {"A.main": (0, 50), "A.foo": (10, 20), "B.main": (0, 30), "B.bar": (0, 30)}
    earlier = {name: example["results"][f"instantaneous|shared|inclusive|{name}"] for name in ("min", "max")}
    for how in ("instantaneous", "instantaneous_kind=trapezoid"):  # foo: 10 held from 0.5 s; on the line at 1.5 s
        rows = solved(example, how, "shared")
        assert {call: (rows[call]["min"], rows[call]["max"]) for call in CALLS} == right
    assert rows["A.main"]["readings"] == 5
    assert earlier["min"]["A.main"] == 10  # wrong: there is a reading of 0 at 2 s
    assert earlier["max"]["A.foo"] == 15  # wrong: the only reading inside, at 1 s, says 20
    for call, name in (("A.main", "max"), ("B.main", "max"), ("B.bar", "min"), ("B.bar", "max")):
        assert rows[call][name] == earlier[name][call]


def test_least_and_greatest_of_a_counter_are_its_slopes(example):
    """In watts as the mean is; the earlier engine has the joules at the ends of a call beside a mean in watts."""
    values = example["cumulative_values"]
    slopes = np.diff(values) / np.diff(example["metric_times"])
    rows = solved(example, "cumulative", "shared")
    inside = {"A.main": slopes, "A.foo": slopes[:2], "B.main": slopes[1:3], "B.bar": slopes[2:3]}
    for call in CALLS:
        assert (rows[call]["min"], rows[call]["max"]) == (inside[call].min(), inside[call].max())


@pytest.mark.parametrize("how", KIND)
def test_a_mean_lies_between_least_and_greatest(example, how):
    for row in solved(example, how, "shared").values():
        assert row["min"] <= row["mean"] <= row["max"]


def test_books(example):
    found = attribute(recording(example, "counter"), share="even")
    (books,) = found.devices.to_dicts()
    assert (books["measured_j"], books["attributed_j"], books["idle_j"]) == (60.0, 60.0, 0.0)


def test_a_call_that_ends_after_the_last_reading_is_clipped(example):
    longer = recording(example, "counter")
    longer.spans.columns[1].end[:] = 9000  # B.main and B.bar run on for 5 s after the last reading
    found = attribute(longer, by="process,frame")
    rows = {f"{row['process']}.{row['frame']}": row for row in found.rows.to_dicts()}
    # B.bar: 0 of [2, 3), half of the 30 J of [3, 4)
    assert rows["B.bar"]["self_j"] == 15
    assert rows["B.bar"]["total_ns"] == 7 * 10**9
    assert rows["B.bar"]["covered_ns"] == 2 * 10**9
    assert rows["B.bar"]["power_w"] == 7.5
    assert found.devices["coverage"][0] == pytest.approx((4 + 3) / (4 + 8))
