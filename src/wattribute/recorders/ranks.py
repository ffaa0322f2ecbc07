"""Ranks of a job, known from the environment that launchers set: no MPI library is asked.

One process per node samples: the one with local rank 0, or, where the launcher does not say, the first to make a
lock file of the job. It goes on until the last rank of its node has ended.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from .launchers import JOB, LOCAL, RANK, SIZE


@dataclass(frozen=True)
class Rank:
    """This process among those of its job; −1 where the launcher does not say."""

    rank: int
    size: int = -1
    local_rank: int = -1
    job: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def of(environment: Mapping[str, str] | None = None) -> Rank | None:
    """The rank an environment describes; None outside a parallel job."""
    given = os.environ if environment is None else environment
    rank = _number(given, RANK)
    size = _number(given, SIZE)
    # a batch script inside a Slurm allocation has SLURM_PROCID=0 and is no rank, but `srun -n 1` looks just like it
    if rank < 0 or (size <= 1 and RANK[3] in given and _number(given, RANK[:3]) < 0):
        return None
    return Rank(rank, size, _number(given, LOCAL), next((given[name] for name in JOB if given.get(name)), ""))


def _number(environment: Mapping[str, str], names: tuple[str, ...]) -> int:
    for name in names:
        text = environment.get(name, "")
        if text.isdigit():
            return int(text)
    return -1


@contextmanager
def attendance(rank: Rank | None, sampler: bool, folder: str | None = None) -> Iterator[Callable[[], None] | None]:
    """Be counted among the ranks of this node; gives the sampler a function that waits until the others have left.

    Ranks hold a shared lock while they run, which the kernel lets go of however they end.
    """
    if rank is None or rank.size == 1:
        yield None
        return
    import fcntl

    path = _node_file(rank, "ranks", folder)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError:
        yield None
        return
    try:
        if not sampler:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield functools.partial(_wait, descriptor) if sampler else None
    finally:
        os.close(descriptor)
        if sampler:  # the others have left
            with suppress(OSError):
                os.unlink(path)


def _wait(descriptor: int) -> None:
    import fcntl

    with suppress(KeyboardInterrupt):
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)


def _node_file(rank: Rank, what: str, folder: str | None) -> str:
    """A file that the ranks of one job on one node share."""
    import tempfile  # slow to import, and only parallel jobs get here

    name = f"wattribute-{os.getuid()}-{rank.job or os.getppid()}-{os.uname().nodename}.{what}"
    return os.path.join(folder or tempfile.gettempdir(), name.replace(os.sep, "_"))


def samples(rank: Rank | None, folder: str | None = None) -> bool:
    """Whether this process is the one that samples its node."""
    if rank is None:
        return True
    if rank.local_rank >= 0:
        return rank.local_rank == 0
    return _first(_node_file(rank, "sampler", folder))


def _first(path: str) -> bool:
    """Whether we are the first to take this lock; one whose owner is gone counts for nothing."""
    try:
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as lock:
            lock.write(str(os.getpid()))
        return True
    except FileExistsError:
        return _stale(path) and _taken_over(path)
    except OSError:
        return True  # better sampled twice than not at all: merge keeps one


def _stale(path: str) -> bool:
    try:
        with open(path) as lock:
            owner = int(lock.read() or 0)
        os.kill(owner, 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _taken_over(path: str) -> bool:
    """Replace a lock left by an earlier job; of several that try, the one whose name stands there wins."""
    mine = f"{path}.{os.getpid()}"
    try:
        with open(mine, "w") as lock:
            lock.write(str(os.getpid()))
        os.replace(mine, path)
        with open(path) as lock:
            return lock.read() == str(os.getpid())
    except OSError:
        return True
