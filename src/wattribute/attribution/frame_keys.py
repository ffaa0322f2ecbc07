"""The keys of rows that frames decide: names, paradigm, role, file and line, or call paths, as one code per frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Keys, Question, Recording
from ..model.select import pattern

_KEPT_MASKS = 8
FRAME_KEYS = ("frame", "paradigm", "role", "file", "line")


@dataclass(frozen=True)
class FrameKeys:
    """Frames that fall into one row have one code; ``labels`` are the values of each key asked for, by code.

    Frames that the question leaves out have separate codes, so that they never add to a row that is shown.
    """

    names: tuple[str, ...]
    code: npt.NDArray[np.int32]
    labels: tuple[tuple[str | int, ...], ...]
    chosen: npt.NDArray[np.bool_]  # codes whose rows were asked for
    by_path: bool

    @cached_property
    def step(self) -> npt.NDArray[np.int32]:
        """The step of each frame in a call path: frames of one name are one step, also where other keys differ."""
        if not self.by_path:
            return self.code
        first: dict[tuple[bool, str | int], int] = {}
        each = enumerate(zip(self.chosen.tolist(), self.labels[0], strict=True))
        steps = [first.setdefault(chosen_and_name, code) for code, chosen_and_name in each]
        return np.array(steps, np.int32)[self.code]

    def __len__(self) -> int:
        """How many codes there are."""
        return len(self.chosen)

    @cached_property
    def _masked(self) -> dict[int, tuple[npt.NDArray[np.bool_], Keys]]:
        return {}

    def masked(self, keep: npt.NDArray[np.bool_]) -> Keys:
        """The keys of the frames in a mask; those of the last few masks are kept, as many locations share them."""
        known = self._masked.get(id(keep))
        if known is None:
            if len(self._masked) >= _KEPT_MASKS:
                self._masked.clear()
            keys = Keys(np.where(keep, self.code, -1).astype(np.int32), len(self), self.by_path)
            known = self._masked[id(keep)] = keep, keys
        return known[1]


def frame_keys(recording: Recording, question: Question) -> FrameKeys:
    """Rows follow names, not ids: two frames of one name are one row, so that recursion between them counts once."""
    by_path = "path" in question.keys
    names = tuple(key for key in question.keys if key in FRAME_KEYS)
    asked = ("frame", *(name for name in names if name != "frame")) if by_path else names
    frames = recording.frames
    lines = frames.line.tolist()
    values = (frames.name, frames.paradigm, frames.role, frames.file, lines)
    columns = [dict(zip(FRAME_KEYS, values, strict=True))[key] for key in asked]
    chosen = frame_mask(frames.name, question)
    codes: dict[Any, int] = {}
    alone = len(columns) == 1 and bool(chosen.all())  # of a million names tuples would be most of the memory
    rows: Iterable[Any] = columns[0] if alone else zip(chosen.tolist(), *columns, strict=True)
    code = np.fromiter((codes.setdefault(row, len(codes)) for row in rows), np.int32, len(frames))
    if alone:
        return FrameKeys(asked, code, (tuple(codes),), np.ones(len(codes), np.bool_), by_path)
    labels = tuple(zip(*codes, strict=True)) or ((),) * (1 + len(columns))
    return FrameKeys(asked, code, labels[1:], np.array(labels[0], np.bool_), by_path)


def frame_mask(names: Sequence[str], question: Question) -> npt.NDArray[np.bool_]:
    """Which frames the question asks for."""
    mask = np.ones(len(names), np.bool_)
    if question.frame is not None:
        mask &= [bool(pattern(question.frame).search(name)) for name in names]
    if question.exclude_frame is not None:
        mask &= [not pattern(question.exclude_frame).search(name) for name in names]
    return mask
