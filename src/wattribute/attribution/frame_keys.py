"""The keys of rows that frames decide: names, paradigm, role, file and line, or call paths, as one code per frame."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Frames that fall into one row have one code; ``labels[code]`` are the values of the keys asked for.

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
        each = enumerate(zip(self.chosen.tolist(), self.labels, strict=True))
        steps = [first.setdefault((chosen, label[0]), code) for code, (chosen, label) in each]
        return np.array(steps, np.int32)[self.code]

    @cached_property
    def _masked(self) -> dict[int, tuple[npt.NDArray[np.bool_], Keys]]:
        return {}

    def masked(self, keep: npt.NDArray[np.bool_]) -> Keys:
        """The keys of the frames in a mask; those of the last few masks are kept, as many locations share them."""
        known = self._masked.get(id(keep))
        if known is None:
            if len(self._masked) >= _KEPT_MASKS:
                self._masked.clear()
            keys = Keys(np.where(keep, self.code, -1).astype(np.int32), len(self.labels), self.by_path)
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
    labels: dict[tuple[Any, ...], int] = {}
    rows = zip(chosen.tolist(), *columns, strict=True)
    code = np.fromiter((labels.setdefault(row, len(labels)) for row in rows), np.int32, len(frames))
    shown = np.array([label[0] for label in labels], np.bool_)
    return FrameKeys(asked, code, tuple(label[1:] for label in labels), shown, by_path)


def frame_mask(names: Sequence[str], question: Question) -> npt.NDArray[np.bool_]:
    """Which frames the question asks for."""
    mask = np.ones(len(names), np.bool_)
    if question.frame is not None:
        mask &= [bool(pattern(question.frame).search(name)) for name in names]
    if question.exclude_frame is not None:
        mask &= [not pattern(question.exclude_frame).search(name) for name in names]
    return mask
