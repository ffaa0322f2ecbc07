"""Names and looks of a recording's frames as columns: 10⁶ names are bytes on disk, not objects in memory.

Kinds and colours are a byte per frame, so the page has them all at once; names it asks for as it draws them, unless
they are few.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model import Frames
from .. import kinds, names

LABEL = 60  # letters of a frame's label
FEW = 5000  # up to so many names come with the facts
MOST_NAMES = 2000  # in one answer
_PIECE = 1 << 22  # bytes of names that are searched at once
_TEXTS, _NUMBERS = "names.npy", "frames.npz"
Palette = Sequence[dict[str, str]]


def look(kind: str, name: str) -> dict[str, str]:
    """A frame's kind and colours."""
    colour = kinds.shade(kind, name)
    return {"kind": kind, "colour": colour, "ink": kinds.ink(colour)}


def _hits(text: bytes, wanted: bytes) -> Iterator[int]:
    """Every place of a text, also where two of them overlap: one may begin in the column before."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


@dataclass(frozen=True)
class FrameColumns:
    """What the page shows of each frame; ``look`` and ``gpu`` (where it ran on one) are rows of ``palette``."""

    text: npt.NDArray[np.uint8]  # name, label, role and file of each frame, one behind the other
    ends: npt.NDArray[np.int64]  # of these four, per frame
    line: npt.NDArray[np.int64]
    look: npt.NDArray[np.uint8]
    gpu: npt.NDArray[np.uint8]
    palette: Palette

    @classmethod
    def of(cls, table: Frames) -> FrameColumns:
        short = names.labels(table.name, LABEL)
        text, ends = bytearray(), np.zeros((len(table), 4), np.int64)
        for i, name in enumerate(table.name):
            file = names.clean(table.file[i]) if table.file[i] else ""
            for j, part in enumerate((names.full(name), short[name], names.clean(table.role[i]), file)):
                text += part.encode("utf-8", "replace")
                ends[i, j] = len(text)
        known: dict[tuple[str, str], int] = {}

        def looks(on: str) -> npt.NDArray[np.uint8]:
            each = zip(table.name, kinds.kinds(table, on), strict=True)
            shades = ((kind, kinds.shade(kind, name)) for name, kind in each)
            return np.fromiter((known.setdefault(one, len(known)) for one in shades), np.uint8, len(table))

        anywhere, on_gpu = looks(""), looks("gpu")
        palette = [{"kind": kind, "colour": colour, "ink": kinds.ink(colour)} for kind, colour in known]
        line = np.asarray(table.line, np.int64)
        return cls(np.frombuffer(bytes(text), np.uint8), ends, line, anywhere, on_gpu, palette)

    def save(self, folder: Path) -> None:
        """Write all but the palette, which belongs into the manifest."""
        np.save(folder / _TEXTS, self.text, allow_pickle=False)
        np.savez(folder / _NUMBERS, ends=self.ends, line=self.line, look=self.look, gpu=self.gpu)

    @classmethod
    def load(cls, folder: Path, palette: Palette) -> FrameColumns:
        """Open what ``save`` wrote; names stay on disk until they are asked for."""
        text = np.load(folder / _TEXTS, mmap_mode="r", allow_pickle=False)
        with np.load(folder / _NUMBERS, allow_pickle=False) as numbers:
            return cls(text, **{name: numbers[name] for name in ("ends", "line", "look", "gpu")}, palette=palette)

    def __len__(self) -> int:
        return len(self.ends)

    def row(self, frame: int) -> list[Any]:
        """Name, label, role, file and line of a frame."""
        begin = int(self.ends[frame - 1, 3]) if frame else 0
        cuts = [begin, *self.ends[frame].tolist()]
        text = self.text[begin : cuts[-1]].tobytes()
        parts = [text[a - begin : b - begin].decode() for a, b in pairwise(cuts)]
        return [*parts, int(self.line[frame])]

    def look_of(self, frame: int, of: str) -> dict[str, str]:
        """Kind and colours of a frame that a view (``of``) counts."""
        return dict(self.palette[int((self.look if of == "host" else self.gpu)[frame])])

    def rows(self, frames: Sequence[int]) -> list[list[Any]]:
        """The rows of some frames; none for those that there are not."""
        return [self.row(frame) if 0 <= frame < len(self) else [] for frame in frames[:MOST_NAMES]]

    def name(self, frame: int) -> str:
        name: str = self.row(frame)[0]
        return name

    def names(self) -> Iterator[str]:
        begins = np.concatenate([[0], self.ends[:-1, 3]]) if len(self) else self.ends[:, 3]
        for begin, end in zip(begins.tolist(), self.ends[:, 0].tolist(), strict=True):
            yield self.text[begin:end].tobytes().decode()

    def matching(self, text: str) -> npt.NDArray[np.bool_]:
        """Which frames have a text in their names, in letters of any case."""
        wanted = text.lower()
        places = self._places(wanted.encode()) if wanted and wanted.isascii() else None
        if places is None:
            return np.fromiter((wanted in name.lower() for name in self.names()), bool, len(self))
        frame = np.searchsorted(self.ends[:, 3], places, "right")
        found = np.zeros(len(self), bool)
        found[frame[places + len(wanted) <= self.ends[frame, 0]]] = True  # the other columns do not count
        return found

    def _places(self, wanted: bytes) -> npt.NDArray[np.int64] | None:
        """Where a text stands in all columns, searched by pieces; None where not all letters are ASCII."""
        places = [np.zeros(0, np.int64)]
        for at in range(0, len(self.text), _PIECE):
            piece = self.text[at : at + _PIECE + len(wanted) - 1].tobytes()
            if not piece.isascii():
                return None
            places.append(at + np.fromiter(_hits(piece.lower(), wanted), np.int64))
        return np.concatenate(places)

    def facts(self, most: int = FEW) -> dict[str, Any]:
        """The frames as the page gets them first: with names if there are at most so many."""
        return {
            "count": len(self),
            "palette": list(self.palette),
            "looks": base64.b64encode(self.look.tobytes()).decode(),
            "gpu": base64.b64encode(self.gpu.tobytes()).decode(),
            "rows": [self.row(frame) for frame in range(len(self))] if len(self) <= most else None,
        }
