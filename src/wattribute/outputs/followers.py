"""What follows a run through its journal, for the time of the run. Light: a command waits for it.

Followers (``timeseries.following``) are processes of their own: whatever becomes of them, neither sampling nor the run
waits for them, and what they have to say at the end is a line beside the run's result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol


class Following(Protocol):
    """Somebody who reads a journal while it is written."""

    def begin(self, folder: Path, forget: bool = False) -> None:
        """Start, before there is a journal in the folder; ``forget``: nobody else needs what was read of it."""
        ...

    def end(self) -> None:
        """The journal was closed: come to an end."""
        ...

    def finish(self) -> list[str]:
        """Wait for the end; what went wrong, a line each."""
        ...


@contextmanager
def followed(followers: Sequence[Following], folder: Path, told: list[str], forget: bool = False) -> Iterator[None]:
    """Followers for the time of a run; what they have to say is added to ``told``.

    With ``forget`` the journal is for the follower alone, and does not grow for ever (of several, none can know).
    """
    begun: list[Following] = []
    try:
        for follower in followers:
            follower.begin(folder, forget and len(followers) == 1)
            begun.append(follower)
        yield
    finally:
        for follower in begun:
            follower.end()
        for follower in begun:
            told += follower.finish()
