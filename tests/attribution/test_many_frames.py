"""Frames that no span has change no number, and cost neither rows nor memory."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import wattribute
from wattribute import archive
from wattribute.attribution import join
from wattribute.attribution.frame_keys import frame_keys
from wattribute.model import Curve, Frames, Intervals, Keys, Question, Recording
from wattribute.model.spans import ABSENT, SpanColumns, SpanTable
from wattribute.testing.recordings import RecordingBuilder

UNUSED = 5000


def recording(kind: str = "counter") -> Recording:
    made = RecordingBuilder(1000, length_ticks=10_000).host("h").process("p")
    made.thread("main 0s..9s, work 1s..4s, main 2s..3s, wait 5s..8s").thread("wait 0s..1s, work 1s..7s").thread()
    joules = np.cumsum([0, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    values = {"counter": joules, "gauge": 1 + joules}[kind]
    getattr(made, kind)("CPU 0", values, np.arange(0, 10_001, 1000))
    return made.recording()


def with_unused(recording: Recording) -> Recording:
    """The same with many frames that are never entered, before and behind those that are."""
    more = [(f"unused {i}", "user", "function") for i in range(UNUSED)]
    frames = Frames.of([*more, *recording.frames.rows(), *(("u" + name, *rest) for name, *rest in more)])
    where = recording.spans.locations()
    spans = {at: replace(s, frame=s.frame + np.int32(UNUSED)) for at in where if len(s := recording.spans.spans(at))}
    return replace(recording, frames=frames, spans=SpanTable(spans))


@pytest.mark.parametrize("kind", ["counter", "gauge"])
@pytest.mark.parametrize(
    "options", [{"by": "frame"}, {"by": "location,frame"}, {"by": "path"}, {"by": "role"}], ids=str
)
def test_rows_are_those_without_unused_frames(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    small, large = recording(kind), with_unused(recording(kind))
    expected = wattribute.attribute(small, **options)
    archive.save(large, tmp_path / "large.watt")
    for given in (large, tmp_path / "large.watt"):
        found = wattribute.attribute(given, **options)
        assert_frame_equal(found.rows, expected.rows, check_exact=True)
        assert_frame_equal(found.devices.drop("reason"), expected.devices.drop("reason"), check_exact=True)


def test_a_fold_of_entered_rows_is_the_fold() -> None:
    given = with_unused(recording())
    source = given.spans
    assert isinstance(source, SpanColumns)
    curve = Curve(np.array([0, 9000]), np.array([0.0, 90.0]), Intervals(np.array([0]), np.array([9000])))
    code = frame_keys(given, Question(by="frame")).code.copy()
    for hidden in (-1, ABSENT):
        code[UNUSED + 1] = hidden  # "work"
        keys = Keys(code, int(code.max()) + 1)
        for location in source.locations():
            whole, few = source.fold(location, [curve], keys), source.fold_entered(location, [curve], keys)
            assert few.row is not None
            assert len(few.row) <= 3
            for one in fields(few):
                column = getattr(few, one.name)
                if one.name not in ("row", "paths") and column is not None:
                    dense = np.zeros_like(getattr(whole, one.name))
                    dense[..., few.row] = column
                    assert np.array_equal(dense, getattr(whole, one.name)), one.name


def test_parts_hold_the_rows_that_were_entered() -> None:
    given = with_unused(recording())
    plan = join.plan(given, Question(by="frame"))
    group = tuple(range(len(plan.sources)))
    by_row = join.curves(given, plan, group)
    sizes = [part.fold.self_value.shape[1] for part in join.parts(given, plan, by_row, join.users(plan, group))]
    assert max(sizes) <= 3


def test_masks_and_keys_are_made_once() -> None:
    given = recording()
    mask = join.masks(given, "host")
    assert mask(0) is join.masks(replace(given, metadata={}), "host")(1)
    keys = frame_keys(given, Question(by="frame"))
    assert keys.masked(mask(0)) is keys.masked(mask(1))
    assert isinstance(wattribute.attribute(given).rows, pl.DataFrame)
