"""Below the sensor's period: powers that can be told are told, everything else is refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import attribute
from wattribute.errors import NoDataError, OptionError
from wattribute.model import Recording, Signal
from wattribute.testing.recordings import RecordingBuilder, gauge, signal

IDLE_W, POWER_W = 50, {0: 100, 1: 300}
PERIOD = 100  # ticks of 1 ms


def recording(lanes, signal, frames=("a", "b")) -> Recording:
    """Streams of one GPU: each lane is a list of (start, end, frame)."""
    made = RecordingBuilder(1_000).frames(*((name, "cuda", "kernel") for name in frames))
    for rows in lanes:
        made.stream(rows)
    return made.device("GPU 0").signals(signal).link("GPU 0", *range(len(lanes))).recording()


def lane(seed: int = 0, count: int = 600, gap: int = 40, even: bool = False) -> list[tuple[int, int, int]]:
    """Calls of 10 to 50 ms in random order, or the same over and over."""
    draw = np.random.default_rng(seed)
    rows, at = [], 20
    for i in range(count):
        length = 25 if even else int(draw.integers(10, 50))
        rows.append((at, at + length, i % 2 if even else int(draw.integers(2))))
        at += length + (25 if even else int(draw.integers(0, gap)))
    return rows


def drawn_mj(lanes, last: int) -> np.ndarray:
    """Millijoules drawn before each tick: watts times milliseconds, exact integers."""
    power = np.zeros(last, np.int64)
    for one in lanes:
        for start, end, frame in one:
            power[start:end] += POWER_W[frame]
    power[power == 0] = IDLE_W
    return np.concatenate([[0], np.cumsum(power)])


def counter(lanes, lag: int = 0, kind: str = "counter", extra=None) -> Signal:
    """Read every 100 ms: what was drawn up to ``lag`` before."""
    last = max(row[1] for one in lanes for row in one)
    drawn = drawn_mj(lanes, last)
    if extra is not None:
        drawn = drawn + np.concatenate([[0], np.cumsum(extra(last))]).astype(np.int64)
    times = np.arange(lag, last, PERIOD)
    return signal(kind, drawn[times - lag], times, scale=Fraction(1, 1000))


def energies(found) -> dict[str, float]:
    return dict(zip(found.rows["frame"], found.rows["self_j"], strict=True))


def truth_j(rows, frame: int, last: int) -> float:
    return sum(POWER_W[frame] * max(0, min(end, last) - start) for start, end, f in rows if f == frame) / 1000


@pytest.mark.parametrize("lag", [0, 30, 170])
def test_powers_without_noise_are_found_exactly(lag):
    rows = lane()
    signal = counter([rows], lag)
    found = attribute(recording([rows], signal), method="solve")
    # every rise is 100 W × ms in a + 300 W × ms in b + 50 W × the rest, so both energies are watts times time up to
    # the last reading minus the lag, and nothing is left for the interval to be wide about
    last = int(signal.times[-1]) - lag
    for name, frame in (("a", 0), ("b", 1)):
        assert energies(found)[name] == pytest.approx(truth_j(rows, frame, last), rel=2e-3)
    widths = (found.rows["self_high_j"] - found.rows["self_low_j"]) / found.rows["self_j"]
    assert widths.max() < 0.02
    # where a straight line gives a, the weaker one, far too much
    straight = energies(attribute(recording([rows], signal)))
    assert straight["a"] > 1.15 * truth_j(rows, 0, last)


@given(st.integers(0, 10_000), st.sampled_from(["even", "process"]), st.integers(0, 150))
def test_the_books_balance(seed, share, lag):
    rows = lane(seed)
    found = attribute(recording([rows], counter([rows], lag)), method="solve", share=share, by="device,frame")
    book = found.devices.to_dicts()[0]
    assert found.rows["self_j"].sum() + book["idle_j"] == pytest.approx(book["measured_j"], rel=1e-9)
    assert book["measured_j"] == pytest.approx(attribute(found.recording).devices["measured_j"][0], rel=1e-12)
    assert (found.rows["self_low_j"] <= found.rows["self_j"]).all()
    assert (found.rows["self_j"] <= found.rows["self_high_j"]).all()


def test_two_streams_that_take_turns_are_one_device():
    rows = lane()
    lanes = [rows[::2], rows[1::2]]
    together = energies(attribute(recording([rows], counter([rows])), method="solve"))
    apart = energies(attribute(recording(lanes, counter([rows])), method="solve"))
    assert apart == pytest.approx(together, rel=1e-9)


def test_callers_keep_what_they_draw_between_calls():
    rows = lane()
    outer = (0, rows[-1][1], 2)
    made = recording([[outer, *rows]], counter([rows]), frames=("a", "b", "main"))
    found = attribute(made, method="solve")
    by_name = {row["frame"]: row for row in found.rows.to_dicts()}
    # main draws the 50 W that were idle before; with its callees it is everything
    assert by_name["main"]["total_j"] == pytest.approx(found.devices["measured_j"][0], rel=1e-9)
    assert by_name["a"]["self_j"] == pytest.approx(truth_j(rows, 0, int(made.signals[0].times[-1])), rel=2e-3)
    assert by_name["main"]["total_low_j"] <= by_name["main"]["total_j"] <= by_name["main"]["total_high_j"] * (1 + 1e-9)


def smeared(made: Signal) -> Signal:
    """A quarter of each rise comes with the next change."""
    rises = np.diff(made.values)
    late = (3 * rises + np.concatenate([rises[:1], rises[:-1]])) // 4
    values = np.concatenate([[0], np.cumsum(late)])
    return replace(made, values=values)


def unseen(last: int) -> np.ndarray:
    """A tenant of 400 W that comes and goes."""
    draw = np.random.default_rng(1)
    return np.repeat(draw.integers(0, 2, last // 150 + 1) * 400, 150)[:last]


def refusals():
    rows = lane()
    even = lane(even=True)
    long = [(start, end, 0) for start, end, _ in rows], [(start + 5, end + 5, 1) for start, end, _ in rows]
    fixed = [(start - start % 50 + 25, start - start % 50 + 50, frame) for start, _, frame in even]
    return [
        ("a gauge", [rows], gauge([80.0] * 90, every=100), "no model of a sensor of the kind 'unknown'"),
        ("few", [lane(count=20)], counter([lane(count=20)]), "changed 7 times, and 30 are needed"),
        ("at once", long, counter(long), "several users were active at once"),
        ("a tenant", [rows], counter([rows], extra=unseen), "explains .* of how its counter rose"),
        ("in step", [fixed], counter([fixed]), "explains|power is known"),
        ("smears", [rows], smeared(counter([rows])), "smears energy"),
    ]


@pytest.mark.parametrize(
    ("lanes", "signal", "reason"), [case[1:] for case in refusals()], ids=[c[0] for c in refusals()]
)
def test_a_guess_is_refused_with_its_reason(lanes, signal, reason):
    with pytest.raises(NoDataError, match=f"method solve refuses GPU 0: .*({reason}).*use method linear"):
        attribute(recording(lanes, signal), method="solve")


def test_nobody_active_is_all_idle():
    rows = lane()
    made = recording([[]], counter([rows]))
    found = attribute(made, method="solve")
    assert found.devices["idle_j"][0] == found.devices["measured_j"][0] > 0


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"by": "frame,bin=1s"}, "means over all calls"),
        ({"by": "reading"}, "means over all calls"),
        ({"statistics": True}, "means over all calls"),
        ({"share": "full"}, "conserves energy"),
        ({"spans": True}, "rows per span"),
    ],
)
def test_what_it_cannot_tell_is_an_error(asked, reason):
    rows = lane(count=5)
    with pytest.raises(OptionError, match=reason):
        attribute(recording([rows], counter([rows])), method="solve", **asked)
