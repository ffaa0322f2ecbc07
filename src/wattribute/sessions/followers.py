"""Followers of a run's journal, for the time of the run. Light: a command waits for it.

Followers (``timeseries.following``) are processes of their own: even if they fail, neither sampling nor the run
waits for them, and what they have to say at the end is a line beside the run's result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol


class RunFollower(Protocol):
    """Somebody who reads a journal while it is written."""

    def begin(self, folder: Path, forget: bool = False) -> None:
        """Start, before there is a journal in the folder; ``forget``: what was read of it may be discarded."""
        ...

    def end(self) -> None:
        """The journal was closed: come to an end."""
        ...

    def finish(self) -> list[str]:
        """Wait for the end; what went wrong, a line each."""
        ...


@contextmanager
def followed(
    followers: Sequence[RunFollower], folder: Path, notices: list[str], forget: bool = False
) -> Iterator[None]:
    """Run followers for the time of a run; their messages are added to ``notices``.

    With ``forget`` the journal is for the follower alone, and does not grow without bound (of several, none can know).
    """
    begun: list[RunFollower] = []
    try:
        for follower in followers:
            follower.begin(folder, forget and len(followers) == 1)
            begun.append(follower)
        yield
    finally:
        for follower in begun:
            follower.end()
        for follower in begun:
            notices += follower.finish()
