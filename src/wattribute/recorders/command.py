"""Run a command as its caller would have: the same streams, environment, signals and exit code.

With a terminal in the foreground the child stays in our process group, so that Ctrl-C, Ctrl-Z and pipelines work as
they always do; signals that others send us alone are passed on to it. Without one (batch jobs, CI) it gets a group of
its own and the whole group is sent, once, every signal that we get. ``record`` runs it under a sampler.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from . import baselines
from .sampling import REGIONS, Observer, Sampling, check_interval, recording_folder

if TYPE_CHECKING:
    from ..model import Recording
    from .stacks import Profiling

_KEYBOARD = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
PASSED = _KEYBOARD | {
    signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGWINCH, signal.SIGALRM,
}  # fmt: skip
ENDING = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP}
NOT_FOUND, NOT_EXECUTABLE = 127, 126
SECRET = "WATTRIBUTE_PUSH_"  # variables that say who we are to a server, which is not the command's concern


@dataclass(frozen=True)
class CommandEnd:
    """Exit code, times and usage of a child; times are monotonic ns."""

    exit_code: int  # 128 + signal when a signal ended it, as shells say
    start_ns: int
    end_ns: int
    cpu_s: float | None = 0.0  # of the child and all it waited for; None: unknown
    max_rss_bytes: int | None = 0
    error: str = ""  # why it did not start

    @property
    def duration_s(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


@contextlib.contextmanager
def signals_held() -> Iterator[set[int]]:
    """Hold signals back from before the first thread until results are written: ``run_child`` passes them on.

    Threads inherit what is blocked, so none can swallow a signal. What comes after the child ended asks for an end
    that is about to come anyway: it is dropped, and in the set.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED)
    late: set[int] = set()
    try:
        yield late
    finally:
        while pending := signal.sigpending() & (PASSED - before):
            late.add(signal.sigwait(pending))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


Started = Callable[[int, int], None]  # pid, monotonic ns
Child = Callable[[Sequence[str], Mapping[str, str], Started], CommandEnd]  # run_child, or a container's ``run``


def _is_somewhere(name: str) -> bool:
    """Whether a program of this name can be seen, of any permission; a folder of the PATH may be closed to us."""
    return "/" in name or any(os.path.lexists(os.path.join(folder, name)) for folder in os.get_exec_path())


def run_child(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    started: Started = lambda pid, start_ns: None,
) -> CommandEnd:
    """Run a command to its end; ``started(pid, ns)`` is called once it runs."""
    with signals_held():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        shared_terminal = _in_foreground()
        try:
            start_ns = time.monotonic_ns()
            pid = _spawn(command, os.environ if environment is None else environment, mask, not shared_terminal)
        except OSError as error:
            now = time.monotonic_ns()
            missing = error.errno == errno.ENOENT or (error.errno == errno.EACCES and not _is_somewhere(command[0]))
            return CommandEnd(
                NOT_FOUND if missing else NOT_EXECUTABLE, now, now,
                error=f"{command[0]}: {'command not found' if missing else error.strerror}",
            )  # fmt: skip
        else:
            waiter = _Waiter(pid)
            started(pid, start_ns)
            return _await(waiter, start_ns, shared_terminal)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Waiter(threading.Thread):
    """Thread that waits for the child and wakes ours: a SIGCHLD alone could reach another library's thread."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self._owner = pid, threading.get_ident()
        self.ended: tuple[int, int, Any] | None = None  # (monotonic ns, status, resource usage)
        self.stopped = False
        self.start()

    def run(self) -> None:
        while self.ended is None:
            _, status, usage = os.wait4(self.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                self.stopped = True
            else:
                self.ended = time.monotonic_ns(), status, usage
            signal.pthread_kill(self._owner, signal.SIGCHLD)


def _in_foreground() -> bool:
    """Whether a terminal's keyboard signals come to our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _spawn(command: Sequence[str], environment: Mapping[str, str], mask: Any, own_group: bool) -> int:
    # Python ignores these two; a program expects them as they were
    options: dict[str, Any] = {"setsigmask": set(mask) - PASSED, "setsigdef": [signal.SIGPIPE, signal.SIGXFSZ]}
    if own_group:
        options["setpgroup"] = 0
    if not command[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    try:
        return os.posix_spawnp(command[0], list(command), environment, **options)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return os.posix_spawnp("/bin/sh", ["sh", *command], environment, **options)  # a script without #!, as shells do


def _await(waiter: _Waiter, start_ns: int, shared_terminal: bool) -> CommandEnd:
    """Pass signals on until the child has ended."""
    while True:
        number, from_kernel = _next_signal(PASSED | {signal.SIGCHLD})
        if waiter.ended is not None:
            end_ns, status, usage = waiter.ended
            code = os.waitstatus_to_exitcode(status)
            cpu_s = usage.ru_utime + usage.ru_stime
            return CommandEnd(code if code >= 0 else 128 - code, start_ns, end_ns, cpu_s, _max_rss_bytes(usage))
        if number == signal.SIGCHLD:
            if waiter.stopped and shared_terminal:  # Ctrl-Z: stop with it, so that the shell gets its prompt back
                waiter.stopped = False
                os.kill(os.getpid(), signal.SIGSTOP)
        elif not shared_terminal:
            _send(os.killpg, waiter.pid, number)
        elif not from_kernel:  # the keyboard's signals reached the child already
            _send(os.kill, waiter.pid, number)


def _max_rss_bytes(usage: Any) -> int | None:
    """The most memory that the child, or one of its children, held; None where Linux does not know.

    A child begins in our memory, which counts for it: what is not above ours may be ours.
    """
    if sys.platform == "darwin":
        return int(usage.ru_maxrss)
    return usage.ru_maxrss * 1024 if usage.ru_maxrss > _own_peak_kib() else None


def _own_peak_kib() -> int:
    """The most memory that this program held; not by getrusage, where that of its own launcher counts, too."""
    try:
        with open("/proc/self/status", "rb") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _next_signal(signals: set[Any]) -> tuple[int, bool]:
    """The next signal, and whether the kernel sent it (the keyboard did) rather than a process."""
    if sys.platform == "linux":
        info = signal.sigwaitinfo(signals)
        return info.si_signo, info.si_code > 0
    number = signal.sigwait(signals)
    return number, number in _KEYBOARD


def _send(how: Callable[[int, int], None], pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended just now
        how(pid, number)


# --------------------------------------------------------------------------------------------------------- recording


@dataclass(frozen=True)
class CommandRecording:
    """A command that was run, and what was recorded of it."""

    ended: CommandEnd
    sampling: Sampling

    def recording(self) -> Recording:
        """Built from the journal when asked for: this is where NumPy comes in."""
        return self.sampling.recording()


def record(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    *,
    meters: Sequence[str] | None = (),
    interval_s: float | None = None,
    observers: Sequence[Observer] = (),
    scope: str = "machine",
    metadata: Mapping[str, Any] | None = None,
    until: Callable[[], None] | None = None,
    profiling: Profiling | None = None,
    child: Child | None = None,
    claimed: bool = False,
) -> CommandRecording:
    """Run a command under a sampler, which writes its journal into a new ``folder`` (``claimed``: made already).

    Sampling goes on after the command's end until ``until`` returns: other ranks of the node may still run. With
    ``profiling`` the Python programs in it record their stacks. ``child`` runs it instead of ``run_child``.
    """
    _check(command if child is None else ["its image's own"], interval_s, scope)
    folder = recording_folder(Path(folder), claimed)
    about = {"command": list(command), "scope": scope, **surroundings(), **(metadata or {})}
    about |= {"profile": profiling.as_dict()} if profiling is not None else {}
    about |= baselines.division(about["host"])
    sampling = Sampling(folder, meters, interval_s, observers, about=about, shares=_shares(about, meters, child))
    try:
        sampling.begin()
        sampling.start()
    except BaseException:
        sampling.clean()
        folder.rmdir()
        raise
    parts = str((folder / REGIONS).absolute())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(SECRET)}
    environment["WATTRIBUTE_REGIONS"] = parts
    if profiling is not None:
        from . import stacks

        environment = stacks.environment(profiling, parts, environment)
    run = run_child if child is None else child
    ended = run(command, environment, lambda pid, ns: sampling.tell({"start": ns, "pid": pid}))
    until_ns = ended.end_ns
    if until is not None and ended.exit_code < 128:  # not when we are asked to stop
        until()
        until_ns = time.monotonic_ns()
    sampling.tell(
        {
            "end": ended.end_ns,
            "until": until_ns,
            "exit_code": ended.exit_code,
            "cpu_s": ended.cpu_s,
            "max_rss_bytes": ended.max_rss_bytes,
            "error": ended.error,
        }
    )
    sampling.finish()
    return CommandRecording(ended, sampling)


def _check(command: Sequence[str], interval_s: float | None, scope: str) -> None:
    if not command:
        raise OptionError("no command; write it after two dashes: wattribute run -- python train.py")
    check_interval(interval_s)
    if scope not in ("machine", "process"):
        raise OptionError.unknown("scope", scope, ["machine", "process"])


def _shares(about: Mapping[str, Any], meters: Sequence[str] | None, child: Child | None) -> str:
    """Whose CPU time the sampler notes: a family's or a control group's; of ranks none, whose node they share."""
    if meters is None or "rank" in about:
        return ""
    return "family" if child is None else "group"


def surroundings() -> dict[str, Any]:
    """Where and by what a run was made. Values of variables stay out, except those that say what a run was given."""
    variables = (
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
        "SLURM_JOB_ID",
    )
    system = os.uname()  # not ``platform``, which takes as long to import as a short command to run
    return {
        "host": system.nodename,
        "cwd": _cwd(),
        "environment": {name: os.environ[name] for name in variables if name in os.environ},
        "versions": {
            "python": ".".join(map(str, sys.version_info[:3])),
            "kernel": f"{system.sysname} {system.release}",
            "machine": system.machine,
        },
    }


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed under us
        return ""
