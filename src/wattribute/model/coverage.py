"""What part of a run its readings cover: where that is not all of it, energy and emissions are lower limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .recording import Recording

_FULL = 0.99  # of a run, by readings


def coverage(ends: Sequence[int], begin: int | None, end: int | None) -> float:
    """The part of [begin, end] between the first and the last reading; 1 where that time is not known."""
    if begin is None or end is None or end <= begin:
        return 1.0
    return max(0, min(end, ends[-1]) - max(begin, ends[0])) / (end - begin) if ends else 0.0


def is_partial(covered: float | None) -> bool:
    """Whether a part is too small to be taken for the whole; None is not known to be."""
    return covered is not None and covered < _FULL


def unseen(recording: Recording, devices: Iterable[tuple[str, float | None]]) -> tuple[str, ...]:
    """What was not metered all the time, of devices (name, part that readings cover) and of meters that failed."""
    parts = [f"{name} was metered for {covered:.0%} of the time" for name, covered in devices if is_partial(covered)]
    return (*parts, *dict.fromkeys(problem.message for problem in recording.noticed if problem.kind == "meter"))
