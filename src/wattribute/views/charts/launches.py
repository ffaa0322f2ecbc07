"""Call paths of what ran on GPUs: below the calls of host threads that launched it, where the trace records which."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from ...model import Attribution, Launches, Recording
from ...model.spans import launches_of
from .curves import Users
from .lanes import exact
from .tree import Leaf

UNKNOWN = "launched by unknown"
Path = tuple[str, ...]
Weights = dict[str, dict[Path, tuple[float, int]]]  # frame → launching path → (joules, calls)


def launched(table: Attribution, unknown: bool = False) -> list[Leaf]:
    """Leaves of rows by path, those of GPUs below what launched them; else, if asked so, below ``UNKNOWN``.

    A row is shared out among the launching paths as the joules of its spans are, so that its energy stays what it is.
    """
    rows = table.rows.select("path", "of", "self_j", "calls").rows()
    on_gpu = {of for _, of, _, _ in rows if "host" not in of.split(",")}
    weights = _weights(table) if on_gpu else {}
    out: list[Leaf] = []
    for path, of, energy, known_calls in rows:
        calls = known_calls or 0
        if of not in on_gpu:
            out.append(Leaf(tuple(path), energy, calls))
            continue
        known = weights.get(path[0]) or {(): (1.0, 1)}
        whole_j, whole_calls = (sum(column) for column in zip(*known.values(), strict=True))
        for host, (joules, count) in known.items():
            share = joules / whole_j if whole_j > 0 else count / max(1, whole_calls)
            head = host or ((UNKNOWN,) if unknown else ())
            out.append(Leaf((*head, *path), energy * share, round(calls * count / max(1, whole_calls))))
    return out


def _weights(table: Attribution) -> Weights:
    """What the launching paths of each outermost frame on a stream used; the path () where it is not known."""
    recording = table.recording
    launches = launches_of(recording.spans)
    if launches is None:
        return {}
    users, names = Users(table), recording.frames.name
    paths = _HostPaths(recording, launches)
    out: Weights = defaultdict(dict)
    for of, location in users:
        if recording.locations.kind[location] != "gpu":
            continue
        bars = exact(users.spans(of, location), users.received(of, location))
        outer = np.flatnonzero(bars.depth == 0)
        site = _site(launches, paths.row, location, bars.start[outer])
        pairs, which = np.unique(np.stack([bars.frame[outer], site]), axis=1, return_inverse=True)
        joules, calls = np.bincount(which, bars.total_j[outer]), np.bincount(which)
        for (frame, path), energy, count in zip(pairs.T.tolist(), joules.tolist(), calls.tolist(), strict=True):
            host = paths.path[path] if path >= 0 else ()
            before = out[names[frame]].get(host, (0.0, 0))
            out[names[frame]][host] = before[0] + energy, before[1] + count
    return out


class _HostPaths:
    """The call path at the moment of each launch: ``path[row[i]]`` is that of launch i."""

    def __init__(self, recording: Recording, launches: Launches) -> None:
        self.row = np.full(len(launches.at), -1, np.int64)
        self.path: list[Path] = []
        names = recording.frames.name
        for host in np.unique(launches.host):
            mine = np.flatnonzero(launches.host == host)
            spans = recording.spans.spans(int(host))
            inner = np.searchsorted(spans.start, launches.at[mine], side="right") - 1
            while len(over := np.flatnonzero((inner >= 0) & (spans.end[inner] <= launches.at[mine]))):
                inner[over] = spans.parent[inner[over]]
            for span in np.unique(inner[inner >= 0]):
                self.row[mine[inner == span]] = len(self.path)
                path: list[str] = []
                at = int(span)
                while at >= 0:
                    path.append(names[spans.frame[at]])
                    at = int(spans.parent[at])
                self.path.append(tuple(reversed(path)))


def _site(
    launches: Launches, rows: npt.NDArray[np.int64], location: int, starts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The row of the path that launched each span of a stream, by its start; −1 where no launch is recorded."""
    mine = np.flatnonzero(launches.location == location)
    if not len(mine):
        return np.full(len(starts), -1, np.int64)
    mine = mine[np.argsort(launches.start[mine], kind="stable")]
    at = np.minimum(np.searchsorted(launches.start[mine], starts), len(mine) - 1)
    return np.where(launches.start[mine[at]] == starts, rows[mine[at]], -1)
