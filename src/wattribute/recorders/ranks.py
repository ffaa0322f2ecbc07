"""Ranks of a job, known from the environment that launchers set: no MPI library is asked.

One process per node samples: the one with local rank 0, or, where the launcher does not say, the first to make a
lock file of the job. It goes on until the last rank of its node has ended.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ..journal.ranks import Rank


@contextmanager
def attendance(rank: Rank | None, sampler: bool, folder: str | None = None) -> Iterator[Callable[[], None] | None]:
    """Be counted among the ranks of this node; gives the sampler a function that waits until the others have left.

    Ranks hold a shared lock while they run, which the kernel lets go of however they end.
    """
    if rank is None or rank.size == 1:
        yield None
        return
    import fcntl

    try:
        path = _node_file(rank, "ranks", folder)
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
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
                os.rmdir(_own_folder() if folder is None else path)  # empty, unless another job runs


def _wait(descriptor: int) -> None:
    import fcntl

    with suppress(KeyboardInterrupt):
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)


def _node_file(rank: Rank, what: str, folder: str | None) -> str:
    """A file that the ranks of one job on one node share; raises OSError where no private folder can be had."""
    name = f"{rank.job or os.getppid()}-{os.uname().nodename}.{what}"
    return os.path.join(folder or _own_folder(), name.replace(os.sep, "_"))


def _own_folder() -> str:
    """A folder for locks that no other user can enter: names that others can foresee they could take first."""
    import stat
    import tempfile  # slow to import, and only parallel jobs get here

    path = os.path.join(tempfile.gettempdir(), f"wattribute-locks-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{path} is not a private folder of ours")
    return path


def samples(rank: Rank | None, folder: str | None = None) -> bool:
    """Whether this process is the one that samples its node."""
    if rank is None:
        return True
    if rank.local_rank >= 0:
        return rank.local_rank == 0
    try:
        return _first(_node_file(rank, "sampler", folder))
    except OSError:
        return True  # better sampled twice than not at all: merge keeps one


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
