"""Small tables of a recording: frames, system nodes, processes, locations, call paths.

Each is a frozen dataclass of equally long columns; a row is named by its index everywhere else ("location 3" is row 3
of Locations). Ids of the source file are kept in ``id`` because names are not unique.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing_extensions import Self

Strings = tuple[str, ...]
Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]
IDLE_THREAD = re.compile(r"<idle>(?: \(\d+\))?")  # what lo2s calls the kernel's thread 0 of each cpu


class Table:
    """What the small tables share: length, rows in, rows out."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    def row(self, index: int) -> dict[str, Any]:
        return {f.name: getattr(self, f.name)[index] for f in fields(self)}  # type: ignore[arg-type]

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples; ``of`` makes the table again."""
        columns = [getattr(self, f.name) for f in fields(self)]  # type: ignore[arg-type]
        return [tuple(column[i] for column in columns) for i in range(len(self))]

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> Self:
        """A table from rows whose values stand in the order of the columns; short rows take the column's default."""
        rows = list(rows)
        columns: dict[str, Any] = {}
        for i, f in enumerate(fields(cls)):  # type: ignore[arg-type]
            default = f.metadata["default"]
            values = [row[i] if i < len(row) else default for row in rows]
            dtype = f.metadata["dtype"]
            columns[f.name] = tuple(values) if dtype is object else np.array(values, dtype=dtype)
        return cls(**columns)


def _column(dtype: Any, default: Any) -> Any:
    return field(metadata={"dtype": dtype, "default": default})


@dataclass(frozen=True)
class Frames(Table):
    """Named pieces of code: functions, regions, kernels, copies."""

    name: Strings = _column(object, "")
    paradigm: Strings = _column(object, "unknown")  # "mpi", "hip", "cuda", "user", "compiler", "python", …
    role: Strings = _column(object, "unknown")  # "function", "kernel", "copy", "barrier", "wait", "data_transfer", …
    file: Strings = _column(object, "")
    line: Ints = _column(np.int64, 0)

    @cached_property
    def is_idle(self) -> npt.NDArray[np.bool_]:
        """Which are idle threads."""
        return np.array([IDLE_THREAD.fullmatch(name) is not None for name in self.name], bool)

    @cached_property
    def is_copy(self) -> npt.NDArray[np.bool_]:
        """Which are copies to, from or on an accelerator."""
        return np.array([role == "copy" for role in self.role], bool)

    @cached_property
    def masks(self) -> dict[Any, npt.NDArray[np.bool_]]:
        """Masks of frames, by what they were made for; once each, as 10⁶ frames may be asked about 20,000 times."""
        return {}


@dataclass(frozen=True)
class Nodes(Table):
    """The system tree: machine, cabinet, node, device …; ``parent`` is a row or −1."""

    id: Ids = _column(np.uint64, 0)
    name: Strings = _column(object, "")
    kind: Strings = _column(object, "node")  # the class name of the file: "machine", "node", "HIP device" …
    parent: Ints = _column(np.int64, -1)
    properties: tuple[Mapping[str, str], ...] = _column(object, {})


@dataclass(frozen=True)
class Processes(Table):
    """Processes and accelerator contexts; ``creator`` is the process that created a context, or −1."""

    id: Ids = _column(np.uint64, 0)
    name: Strings = _column(object, "")
    kind: Strings = _column(object, "process")  # "process" or "accelerator"
    node: Ints = _column(np.int64, -1)
    creator: Ints = _column(np.int64, -1)


@dataclass(frozen=True)
class Locations(Table):
    """Places that run one span at a time: threads ("cpu"), streams ("gpu"); "metric" ones only hold readings."""

    id: Ids = _column(np.uint64, 0)
    name: Strings = _column(object, "")
    kind: Strings = _column(object, "cpu")
    process: Ints = _column(np.int64, -1)
    events: Ints = _column(np.int64, 0)  # as declared by the file


@dataclass(frozen=True)
class Paths(Table):
    """Call paths as a tree: path p ends in ``frame[p]`` and continues path ``parent[p]`` (−1 at a root).

    A parent stands before its children.
    """

    frame: Ints = _column(np.int64, 0)
    parent: Ints = _column(np.int64, -1)

    def chain(self, path: int) -> list[int]:
        """The frames from the root to the end of this path."""
        frames: list[int] = []
        while path >= 0:
            frames.append(int(self.frame[path]))
            path = int(self.parent[path])
        return frames[::-1]
