"""Busy intervals above a limit are on disk, and nobody notices."""

from pathlib import Path

import numpy as np
import pytest

import wattribute
from wattribute._core import fold, in_use
from wattribute._core.library import is_on_disk
from wattribute.alignment import energy
from wattribute.attribution import join, shares
from wattribute.attribution.spill import Spill
from wattribute.errors import OutputError
from wattribute.model import Clock, Intervals, Keys, Signal, Spans
from wattribute.readers.otf2.writer import Writer
from wattribute.testing.recordings import spans

from .test_single_pass import GAPS, WHOLE, archive


def intervals(count: int) -> Intervals:
    start = np.arange(count, dtype=np.int64) * 10
    return Intervals(start, start + 4)


def test_what_fits_stays_in_memory_and_the_rest_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spill = Spill(limit_bytes=16 * 150)
    kept = [spill.keep(intervals(100)), spill.keep(intervals(100)), spill.keep(intervals(0))]
    assert [isinstance(one.start, np.memmap) for one in kept] == [False, True, False]
    np.testing.assert_array_equal(kept[1].start, intervals(100).start)
    np.testing.assert_array_equal(kept[1].end, intervals(100).end)
    assert not list(tmp_path.iterdir())  # unlinked at once: nothing is left behind even after a kill


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(OutputError, match="set TMPDIR"):
        Spill(0).keep(intervals(3))


def test_spilled_intervals_give_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor = archive(tmp_path / "trace", [GAPS, WHOLE, GAPS])
    plain = wattribute.attribute(anchor, by=("process", "frame"))
    spilled: list[Intervals] = []

    def keep(self: Spill, given: Intervals, kept=Spill.keep) -> Intervals:
        self._room = 0
        spilled.append(kept(self, given))
        return spilled[-1]

    monkeypatch.setattr(Spill, "keep", keep)
    again = wattribute.attribute(anchor, by=("process", "frame"), threads=1)  # the first guess is wrong at once
    assert len(spilled) == 3
    assert all(isinstance(one.end, np.memmap) for one in spilled)
    assert again.rows.equals(plain.rows, null_equal=True)
    assert again.devices.equals(plain.devices, null_equal=True)
    assert join.LIMIT_BYTES == 64 << 20


def crowd(users: int, count: int) -> dict[int, Intervals]:
    """Users whose intervals overlap in ever new ways."""
    random = np.random.default_rng(users)
    moments = [np.cumsum(random.integers(1, 100, 2 * count)) for _ in range(users)]
    return {user: Intervals(times[::2].copy(), times[1::2].copy()) for user, times in enumerate(moments)}


@pytest.mark.skipif(in_use() != "c", reason="the core was not compiled")
def test_a_curve_that_outgrows_memory_has_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    times = np.arange(0, 20_000_000, 50_000)
    signal = Signal("energy", "counter", "J", times, times, device="package 0", latency_s=0.001)
    curve, users = energy(signal, Clock()), crowd(3, 400_000)
    spill = Spill(0)
    ours = shares.split(curve, {user: spill.keep(one) for user, one in users.items()}, "even")
    monkeypatch.setattr(shares, "core_split", lambda *_: None)
    twin = shares.split(curve, users, "even")
    assert is_on_disk(ours.curves[0].times)
    assert is_on_disk(ours.curves[0].values)
    assert ours.idle == twin.idle
    for name in ("times", "values", "low", "high"):
        np.testing.assert_array_equal(getattr(ours.curves[0], name), getattr(twin.curves[0], name))
    start = np.arange(0, 20_000_000, 17)
    whole = spans([(0, 20_000_000, 0, -1)])
    zeros = [np.zeros(len(start), kind) for kind in (np.int32, np.int64, np.int32, np.bool_)]
    calls = Spans(start, start + 9, zeros[0], zeros[1] - 1, zeros[2], zeros[3])
    for one in (whole, calls):  # read from its pages, which are given up as they are passed
        found = [fold(one, [split.curves[0]], Keys(np.zeros(1, np.int32), 1)) for split in (ours, twin)]
        np.testing.assert_array_equal(found[0]["total_value"], found[1]["total_value"])
        np.testing.assert_array_equal(found[0]["total_low"], found[1]["total_low"])
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(in_use() != "c", reason="the core was not compiled")
def test_a_curve_without_room_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    times = np.array([0, 40_000_000])
    curve = energy(Signal("energy", "counter", "J", times, times), Clock())
    with pytest.raises(OutputError, match="set TMPDIR"):
        shares.split(curve, crowd(2, 400_000), "even")


@pytest.mark.skipif(in_use() != "c", reason="the core was not compiled")
def test_intervals_of_a_large_location_are_on_disk_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 300_000  # two columns of 2.4 MB
    with Writer(tmp_path / "trace") as trace:
        node = trace.node("host", "node", domain="shared_memory")
        thread, work = trace.location("thread", trace.process("process", node)), trace.region("work")
        times = np.cumsum(np.random.default_rng(8).integers(1, 100, 2 * count))
        thread.calls(times, np.tile([True, False], count), np.full(2 * count, work))
    (tmp_path / "spilled").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spilled"))
    source = wattribute.read(tmp_path / "trace" / "traces.otf2").spans
    busy = source.busy(0)
    assert is_on_disk(busy.start)
    assert is_on_disk(busy.end)
    np.testing.assert_array_equal(busy.start, times[::2] - times[0] + busy.start[0])
    np.testing.assert_array_equal(busy.end, times[1::2] - times[0] + busy.start[0])
    assert Spill(0).keep(busy) is busy
    assert not list((tmp_path / "spilled").iterdir())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(OutputError, match="set TMPDIR"):
        source.busy(0)
