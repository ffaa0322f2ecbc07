"""Names of processes, locations and system nodes that tell equally named ones apart; ``Recording`` caches them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .recording import Recording

_ONLY_A_NUMBER = re.compile(r"(?:samples for )?(?:thread |process |pid |tid )?\d+", re.IGNORECASE)


def process_labels(recording: Recording) -> list[str]:
    """Names of processes, with the host or the id where a name repeats."""
    return _distinct(recording.processes.name, recording.process_hosts, recording.processes.id.tolist())


def location_labels(recording: Recording) -> list[str]:
    """Names of locations, with the process or the id where a name repeats or is no more than a thread's number."""
    owners = recording.process_labels
    above = [owners[owner] if owner >= 0 else "" for owner in recording.owners]
    return _distinct(recording.locations.name, above, recording.locations.id.tolist(), _ONLY_A_NUMBER.fullmatch)


def node_labels(recording: Recording) -> list[str]:
    """Kind and name of system nodes ("core 3"), with the node above or the id where that repeats on a host."""
    nodes, labels = recording.nodes, [""] * len(recording.nodes)
    short = [_with_kind(kind, name) for kind, name in zip(nodes.kind, nodes.name, strict=True)]
    by_host: dict[str, list[int]] = {}
    for row in range(len(nodes)):
        by_host.setdefault(recording.node_host(row), []).append(row)
    for rows in by_host.values():
        above = [short[parent] if (parent := int(nodes.parent[row])) >= 0 else "" for row in rows]
        own = _distinct([short[row] for row in rows], above, [int(nodes.id[row]) for row in rows])
        for row, label in zip(rows, own, strict=True):
            labels[row] = label
    return labels


def _with_kind(kind: str, name: str) -> str:
    """ "core 3" of the core "3", "Core 3" or "core3"."""
    own = re.sub(rf"^{re.escape(kind)}\W*", "", name, flags=re.IGNORECASE)
    return f"{kind} {own or name}".strip()


def _distinct(
    names: Sequence[str], above: Sequence[str], ids: Sequence[int], too_short: Callable[[str], Any] = lambda name: False
) -> list[str]:
    repeats = Counter(names)
    longer = [
        f"{owner}/{name}" if owner and (repeats[name] > 1 or too_short(name)) else name
        for name, owner in zip(names, above, strict=True)
    ]
    still = Counter(longer)
    return [f"{name} #{id_}" if still[name] > 1 else name for name, id_ in zip(longer, ids, strict=True)]
