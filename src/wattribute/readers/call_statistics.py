"""Call statistics (functions, and who called whom how often and how long) → the call paths that explain them.

Statistics keep no paths. As gprof and SnakeViz do, the time that a function passed on to one it called is shared out
among the function's own callers in proportion to the time they account for. Self times are kept to the nanosecond:
those of a function's paths add up to the function's. A call that closes a cycle stays with the paths outside of it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LEAST = 1e-5  # of all time: paths below are followed only to functions that have no other
MOST_PATHS = 50_000
BUILT_IN = "built-in"  # the file of functions that are not Python's

Path = tuple[int, ...]  # numbers of functions, from the root on


class FunctionStatistics(NamedTuple):
    """One function: calls from outside of itself (primitive), all calls, own and cumulative time."""

    file: str
    line: int
    name: str
    primitive_calls: int
    calls: int
    self_ns: int
    total_ns: int


class CallerStatistics(NamedTuple):
    """What a function did for one of its callers; both are numbers of functions."""

    caller: int
    callee: int
    primitive_calls: int
    calls: int
    self_ns: int
    total_ns: int


class PathTime(NamedTuple):
    """One call path: what its last function took by itself there, and about how often it was called there."""

    path: Path
    self_ns: int
    calls: int


def with_distinct_names(functions: Sequence[FunctionStatistics]) -> list[FunctionStatistics]:
    """Functions of one name in several places with their place, as "parse (_parser.py:955)"; others as they are."""
    names = [one.name for one in functions]
    for parts in (1, 2, 99):  # as much of the path as it takes
        seen = Counter(names)
        names = [
            f"{one.name} ({_place(one, parts)})" if seen[name] > 1 else name
            for one, name in zip(functions, names, strict=True)
        ]
    return [one._replace(name=name) for one, name in zip(functions, names, strict=True)]


def _place(function: FunctionStatistics, parts: int) -> str:
    return f"{'/'.join(function.file.split('/')[-parts:])}:{function.line}"


def path_times(functions: Sequence[FunctionStatistics], callers: Sequence[CallerStatistics]) -> list[PathTime]:
    """Every function has at least one path; paths stand in the order of their time, the largest first."""
    flows = _flows(functions, callers)
    whole = [0.0] * len(functions)
    for path, flow in flows.items():
        whole[path[-1]] += flow
    largest: dict[int, Path] = {}
    for path in flows:
        largest.setdefault(path[-1], path)
    left = [one.self_ns for one in functions]
    times = []
    for path, flow in flows.items():
        of = path[-1]
        share = flow / whole[of] if whole[of] > 0 else 0.0
        own = int(functions[of].self_ns * share)
        left[of] -= own
        times.append(PathTime(path, own, max(1, round(functions[of].calls * share))))
    return [  # what rounding left goes to the largest path
        one._replace(self_ns=one.self_ns + left[of]) if largest[of := one.path[-1]] == one.path else one
        for one in times
    ]


def _flows(functions: Sequence[FunctionStatistics], callers: Sequence[CallerStatistics]) -> dict[Path, float]:
    """Paths → the time of the last function there, callees included; the largest first."""
    below: dict[int, list[CallerStatistics]] = {}
    inside = [0.0] * len(functions)  # time on behalf of known callers
    outside = [one.calls for one in functions]  # calls by none of them
    for edge in callers:
        if edge.caller != edge.callee:
            below.setdefault(edge.caller, []).append(edge)
            inside[edge.callee] += edge.total_ns
        outside[edge.callee] -= edge.calls
    roots = [i for i in range(len(functions)) if outside[i] > 0 and functions[i].total_ns >= inside[i]]
    flows: dict[Path, float] = {}
    met: set[int] = set()
    least = LEAST * sum(one.self_ns for one in functions)
    waiting: list[tuple[float, Path]] = [(-max(functions[i].total_ns - inside[i], 1.0), (i,)) for i in roots]
    met.update(roots)
    rest = iter(sorted(range(len(functions)), key=lambda i: -functions[i].total_ns))  # cycles that nothing else calls
    heapq.heapify(waiting)
    while True:
        if not waiting:
            lone = next((i for i in rest if i not in met), None)
            if lone is None:
                return dict(sorted(flows.items(), key=lambda item: -item[1]))
            met.add(lone)
            heapq.heappush(waiting, (-float(functions[lone].total_ns), (lone,)))
        size, path = heapq.heappop(waiting)
        flows[path] = -size
        last = functions[path[-1]]
        for edge in below.get(path[-1], ()):
            flow = -size * min(1.0, edge.total_ns / last.total_ns) if last.total_ns else 0.0
            if edge.callee in path:
                continue
            if edge.callee not in met or (flow >= least and len(flows) + len(waiting) < MOST_PATHS):
                met.add(edge.callee)
                heapq.heappush(waiting, (-flow, (*path, edge.callee)))


def spans(paths: Sequence[PathTime]) -> Iterator[tuple[int, int, int]]:
    """(start, end, function) in ns of a timeline in which callees stand behind the self time of their caller.

    Callers come before callees. Functions that took no time at all stand at the end.
    """
    own = {one.path: one.self_ns for one in paths}
    total = dict.fromkeys(own, 0)
    below: dict[Path, list[Path]] = {}
    for path, time in own.items():
        for length in range(1, len(path) + 1):
            total[path[:length]] += time
        below.setdefault(path[:-1], []).append(path)
    seen: set[int] = set()
    waiting: list[tuple[Path, int]] = []
    at = 0

    def lay(children: list[Path], start: int) -> int:
        for child in children:
            if total[child]:
                waiting.append((child, start))
                start += total[child]
        return start

    at = lay(below.get((), []), 0)
    while waiting:
        path, start = waiting.pop()
        seen.add(path[-1])
        yield start, start + total[path], path[-1]
        lay(below.get(path, []), start + own[path])
    for path in own:
        if path[-1] not in seen:
            seen.add(path[-1])
            yield at, at, path[-1]
