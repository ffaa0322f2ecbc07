"""Busy intervals above a limit are on disk, and nobody notices."""

from pathlib import Path

import numpy as np
import pytest

import wattribute
from wattribute.attribution import join
from wattribute.attribution.spill import Spill
from wattribute.errors import OutputError
from wattribute.model import Intervals

from .test_guess import GAPS, WHOLE, archive


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
