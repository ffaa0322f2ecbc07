"""What rows are called: frames by name, paradigm, role, file and line, or call paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..model import Keys, Recording

FRAME_KEYS = ("frame", "paradigm", "role", "file", "line")


@dataclass(frozen=True)
class FrameKeys:
    """Frames that fall into one row have one code; ``labels[code]`` are the values of the keys asked for."""

    names: tuple[str, ...]
    code: npt.NDArray[np.int32]
    labels: tuple[tuple[str | int, ...], ...]
    by_path: bool

    def masked(self, keep: npt.NDArray[np.bool_]) -> Keys:
        return Keys(np.where(keep, self.code, -1).astype(np.int32), len(self.labels), self.by_path)


def frame_keys(recording: Recording, by: Sequence[str]) -> FrameKeys:
    """Rows follow names, not ids: two frames of one name are one row, so that recursion between them counts once."""
    by_path = "path" in by
    names = tuple(key for key in by if key in FRAME_KEYS)
    asked = ("frame", *(name for name in names if name != "frame")) if by_path else names
    frames = recording.frames
    lines = frames.line.tolist()
    values = (frames.name, frames.paradigm, frames.role, frames.file, lines)
    columns = [dict(zip(FRAME_KEYS, values, strict=True))[key] for key in asked]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(frames)
    labels = {label: code for code, label in enumerate(dict.fromkeys(rows))}
    code = np.array([labels[row] for row in rows], np.int32)
    return FrameKeys(asked, code, tuple(labels), by_path)
