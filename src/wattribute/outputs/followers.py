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

    def begin(self, folder: Path) -> None:
        """Start, before there is a journal in the folder."""
        ...

    def end(self) -> None:
        """The journal was closed: come to an end."""
        ...

    def finish(self) -> list[str]:
        """Wait for the end; what went wrong, a line each."""
        ...


@contextmanager
def followed(followers: Sequence[Following], folder: Path, told: list[str]) -> Iterator[None]:
    """Followers for the time of a run; what they have to say is added to ``told``."""
    begun: list[Following] = []
    try:
        for follower in followers:
            follower.begin(folder)
            begun.append(follower)
        yield
    finally:
        for follower in begun:
            follower.end()
        for follower in begun:
            told += follower.finish()
