"""Sensors that deserve no trust, and those that do."""

from __future__ import annotations

import numpy as np

from wattribute.alignment.sanity import concerning, examine
from wattribute.model import Clock, Device, Recording
from wattribute.testing import recordings as signals

TIMES = np.arange(0, 1000, 10)


def counter(name, values, device="GPU 0", times=TIMES, **more):
    return signals.counter(values, times, name, device=device, host="n", **more)


def gauge(values, name="power", unit="W"):
    return signals.gauge(values, TIMES, name, unit, host="n")


def recording(*signals, devices=()):
    return Recording(
        Clock(ticks_per_s=1000), signals=signals, devices=tuple(Device(name, kind, "n") for name, kind in devices)
    )


def kinds(*signals, devices=()):
    return [(check.kind, check.signals) for check in examine(recording(*signals, devices=devices))]


def test_a_healthy_counter_is_not_mentioned():
    assert kinds(counter("a", TIMES * 3)) == []


def test_dead_and_stale():
    assert kinds(counter("a", TIMES * 0 + 7)) == [("dead", (0,))]
    assert kinds(counter("a", TIMES // 100)) == [("stale", (0,))]
    (check,) = examine(recording(counter("a", TIMES // 100)))
    assert "every 100 ms" in check.message


def test_a_gauge_that_never_changes_is_worth_a_word_but_no_warning():
    busy = gauge(TIMES * 0, "busy", "%")
    (check,) = examine(recording(busy))
    assert (check.kind, check.warns) == ("constant", False)


def test_power_below_nothing_is_told_and_other_gauges_may_be_negative():
    values = np.where(TIMES < 30, -5.0, TIMES)
    power = gauge(values)
    cold = gauge(values, "temperature", "°C")
    (check,) = examine(recording(power, cold))
    assert (check.kind, check.signals, check.warns) == ("negative", (0,), True)
    assert "power on n: 3 of 100 readings are below 0 W" in check.message


def test_cards_of_different_ids_at_the_same_power_are_no_mirrors():
    cards = tuple(Device(name, "gpu", "n", {"uuid": name}) for name in ("GPU 0", "GPU 1"))
    pair = (counter("a", TIMES * 3, "GPU 0"), counter("b", TIMES * 3, "GPU 1"))
    assert [c.kind for c in examine(Recording(signals=pair, devices=cards))] == []


def test_mirrored_means_equal_increments_not_equal_values():
    assert kinds(counter("a", TIMES * 3), counter("b", TIMES * 3 + 55, "GPU 1")) == [("mirrored", (0, 1))]
    assert kinds(counter("a", TIMES * 3), counter("b", TIMES * 4, "GPU 1")) == []
    rises = np.cumsum(np.arange(100) % 37 * 100 + 1)
    late = rises + 7
    late[50] = late[49]  # read just before an update that the other saw
    assert kinds(counter("a", rises), counter("b", late, "GPU 1")) == [("mirrored", (0, 1))]
    # two idle cores count the same few quanta most of the time, by chance
    idle = [np.cumsum((np.arange(100) + shift) % 3) for shift in (0, 1)]
    assert kinds(counter("a", idle[0]), counter("b", idle[1], "GPU 1")) == []
    # floats with other offsets round differently: 0.1 + 0.2 − 0.2 is not 0.1
    floats = TIMES * 0.1
    assert kinds(counter("a", floats), counter("b", floats + 331.0693512, "GPU 1")) == [("mirrored", (0, 1))]


def test_nested():
    devices = [("node", "node"), ("psys", "psys"), ("package 0", "cpu"), ("dram 0", "dram")]
    made = [counter(name, TIMES * (i + 1), name) for i, (name, _) in enumerate(devices)]
    pairs = {check.signals for check in examine(recording(*made, devices=devices)) if check.kind == "nested"}
    assert pairs == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)}  # dram is not part of a package


def test_ended_early():
    short = counter("short", TIMES[:50] * 3, times=TIMES[:50], device="GPU 1")
    found = examine(recording(counter("a", TIMES * 2), short))
    assert [(check.kind, check.signals) for check in found] == [("ended-early", (1,))]
    assert "0.5 s before" in found[0].message


def test_counter_against_power():
    # 2 J every 10 ms are 200 W; the gauge says 100 W: half of it, worth a warning
    power = gauge(np.full(len(TIMES), 100.0))
    found = examine(recording(counter("a", TIMES // 5), power))
    (check,) = [check for check in found if check.kind == "power-ratio"]
    assert check.ratio == 0.5
    assert check.warns
    assert [problem.kind for problem in concerning(found, [0])] == ["power-ratio"]
    assert concerning(found, []) == []
    good = gauge(np.full(len(TIMES), 201.0))
    (check,) = [check for check in examine(recording(counter("a", TIMES // 5), good)) if check.kind == "power-ratio"]
    assert not check.warns


def test_nothing_at_all():
    assert examine(recording()) == []
    assert kinds(counter("a", [], times=[]), counter("b", [3], times=[0])) == []
