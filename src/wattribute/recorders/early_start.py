"""Early start of the sampler process, so that its imports overlap with ours.

``early`` is the first thing that ``wattribute run`` does; the first ``Sampling`` then takes that process over and gives
it its order. A process that never gets one ends as soon as we do. Next to no imports here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing is one of those that take long
if TYPE_CHECKING:
    from typing import IO

_BOOT = """
import os, resource, sys
os.setsid()  # Ctrl-C is not for it
# under a file-size limit Python may leave truncated .pyc files behind: write none
sys.dont_write_bytecode = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
opens, *sys.path[:] = sys.argv[1:]
from wattribute.recorders.sampler import main
main(opens == "all")
"""
_LOWEST = 3  # of files: those below are streams, or closed, which a command is to find as they were


class SamplerProcess:
    """A sampler that was started, and the line to it."""

    def __init__(self, opens_all: bool = False) -> None:
        """``opens_all``: it may open every meter at once, because none will be named."""
        import signal

        theirs, ours = _pipe()
        heard, written = _pipe()
        # -I -S: no user site, no .pth files; the path is handed over
        path = [os.path.dirname(os.path.dirname(os.path.dirname(__file__))), *(entry for entry in sys.path if entry)]
        self.pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _BOOT, "all" if opens_all else "", *path],
            os.environ,
            file_actions=[
                *((os.POSIX_SPAWN_CLOSE, file) for file in _inherited()),
                (os.POSIX_SPAWN_DUP2, theirs, 0),
                (os.POSIX_SPAWN_DUP2, written, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            # what is sent to all is for the command: the sampler ends after it, when its line is closed
            setsigmask=[
                signal.SIGINT,
                signal.SIGQUIT,
                signal.SIGTSTP,
                signal.SIGTERM,
                signal.SIGHUP,
                signal.SIGUSR1,
                signal.SIGUSR2,
                signal.SIGALRM,
            ],
        )
        os.close(theirs)
        os.close(written)
        self.stdin: IO[bytes] = os.fdopen(ours, "wb")
        self.stdout: IO[bytes] = os.fdopen(heard, "rb")

    def hang_up(self) -> None:
        """Close the line to it: it ends, and if a driver keeps it from that, another thread of it saves what it has."""
        from contextlib import suppress

        with suppress(BrokenPipeError):
            self.stdin.close()

    def close(self, patience_s: float) -> None:
        """Close the line and wait for its end; one that does not come is made to."""
        from contextlib import suppress

        self.hang_up()
        if not self._ended(patience_s):
            with suppress(ProcessLookupError):
                os.kill(self.pid, 9)
            if not self._ended(patience_s):
                return  # a driver holds it
        self.stdout.close()  # last: whoever listens holds it until the end has come

    def _ended(self, patience_s: float) -> bool:
        import time

        limit = time.monotonic() + patience_s
        try:
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > limit:
                    return False
                time.sleep(0.001)
        except ChildProcessError:  # the program reaps all its children, this one too
            pass
        return True


def _inherited() -> list[int]:
    """List inheritable file descriptors, which are meant for the command and not for the sampler."""
    descriptors = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) >= _LOWEST and os.get_inheritable(int(name)):
                descriptors.append(int(name))
        except OSError:  # that of the list itself
            continue
    return descriptors


def _pipe() -> tuple[int, int]:
    """(reading end, writing end), neither in the place of a stream that is closed."""
    ends = os.pipe()
    if min(ends) >= _LOWEST:
        return ends
    import fcntl

    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _LOWEST) for end in ends)
    for end in ends:
        os.close(end)
    return reading, writing


_waiting: list[SamplerProcess] = []


def early(arguments: list[str]) -> None:
    """Start a sampler for the run that these arguments of the command line will turn out to mean."""
    from contextlib import suppress

    from ..journal.launchers import RANK

    named = any(argument.split("=")[0] == "--meters" for argument in arguments)
    is_rank = any(name in os.environ for name in RANK)  # of a node's ranks one reads its meters
    with suppress(OSError):  # reported when the sampler is needed
        _waiting.append(SamplerProcess(opens_all=not named and not is_rank))


def process() -> SamplerProcess:
    """A sampler's process that waits for its order."""
    return _waiting.pop() if _waiting else SamplerProcess()
