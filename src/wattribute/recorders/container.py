"""Run a container as ``command`` runs a child: the same streams, signals and exit code, and the same ``CommandEnd``.

``prepare`` finds daemon and image before anything is recorded; the ``ContainerRun`` it gives is what ``command.record``
runs instead of a child, and a context manager that always removes the container. Its CPU time is its control group's;
its start and end are those that the daemon noted, since a daemon reports an end late.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import NotFoundError, OptionError, UnsupportedError
from . import daemon as daemons
from .cgroups import Usage
from .command import NOT_EXECUTABLE, NOT_FOUND, PASSED, CommandEnd, Started, signals_held
from .daemon import Daemon
from .logs import Logs

LOG = "container.log"
LABEL = "wattribute.recording"
GRACE_S = 5.0  # between a signal that asks for an end and the one that makes it
DAEMON_FAILED = 125  # what ``docker run`` exits with when the daemon, not the program, failed
SHORTEST_NS = 1_000_000  # a daemon's times may be as coarse as 4 ms, and an end then lies before its start
DRAIN_S = 5.0  # for the rest of the output, once the container has ended
_CDI_SINCE = (5, 4)  # the first Podman whose Docker API hands over GPUs
_ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_USERS = {signal.SIGUSR1, signal.SIGUSR2}


@dataclass(frozen=True)
class Container:
    """Specification of a container: an image, and the options of its container."""

    image: str
    gpus: str = ""  # "all", "none" or "0,1"; by default all that the engine can give
    volumes: Sequence[str] = ()  # "HERE:THERE" or "HERE:THERE:ro"
    environment: Sequence[str] = ()  # "NAME=VALUE", or "NAME" for our own value
    network: str = ""  # "none", "host" or a network's name; the daemon's default
    pull: bool = False
    logs: bool = True  # show what it says; it is kept in a file either way
    keep: bool = False  # do not remove it
    results: str = ""  # a folder in the container, copied out at the end
    shm_size: str = ""  # of /dev/shm, as "8g"
    ipc: str = ""  # "host", "private", "shareable" …
    ulimits: Sequence[str] = ()  # "memlock=-1", "nofile=1024:4096"


def prepare(spec: Container, log: Path) -> ContainerRun:
    """Find the daemon and the image; raises before anything runs. ``log`` is where its output will be kept."""
    if not spec.image:
        raise OptionError("--image without a name; wattribute images lists what is here")
    if spec.results and not spec.results.startswith("/"):
        raise OptionError(f"--results {spec.results}: name the container's folder from its root, as /results")
    daemon = daemons.connect()
    try:
        given = arguments(spec, daemon)
        image = daemons.find(daemon, spec.image, spec.pull)
    except BaseException:
        daemon.close()
        raise
    return ContainerRun(spec, daemon, image, given, log)


def arguments(spec: Container, daemon: Daemon, devices: Path = Path("/dev")) -> dict[str, Any]:
    """The SDK's keyword arguments for a container, checked."""
    settings: dict[str, Any] = {
        "volumes": [_volume(text) for text in spec.volumes],
        "environment": [text for text in map(_variable, spec.environment) if text],
    }
    if spec.network:
        settings["network_mode"] = spec.network
    if spec.shm_size:
        if not re.fullmatch(r"\d+[bkmgBKMG]?", spec.shm_size):
            raise OptionError(f"--shm-size {spec.shm_size}: write a number with k, m or g, as 8g")
        settings["shm_size"] = spec.shm_size
    if spec.ipc:
        settings["ipc_mode"] = spec.ipc
    if spec.ulimits:
        settings["ulimits"] = [_ulimit(text) for text in spec.ulimits]
    if spec.gpus and spec.gpus != "none":
        settings = _with(settings, _gpus(spec.gpus, daemon, devices))
    return settings


def _with(settings: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    environment = [*settings["environment"], *more.get("environment", ())]
    return {**settings, **more, "environment": environment}


def default_gpus(spec: Container, daemon: Daemon, devices: Path = Path("/dev")) -> tuple[dict[str, Any], str]:
    """All GPUs of the machine unless the user chose, and what to say about it."""
    if spec.gpus or not any((devices / name).exists() for name in ("nvidiactl", "kfd")):
        return {}, ""
    try:
        return _gpus("all", daemon, devices), "the container gets all GPUs; --gpus chooses: none, all or 0,1"
    except UnsupportedError as error:
        return {}, f"the container gets no GPUs: {error}"


def _ulimit(text: str) -> Any:
    """A limit of the container's processes, NAME=SOFT[:HARD]."""
    match = re.fullmatch(r"(\w+)=(-?\d+)(?::(-?\d+))?", text)
    if match is None:
        raise OptionError(f"--ulimit {text}: write NAME=SOFT or NAME=SOFT:HARD, as memlock=-1")
    name, soft, hard = match.groups()
    return daemons.sdk().types.Ulimit(name=name, soft=int(soft), hard=int(hard or soft))


def _volume(text: str) -> str:
    here, _, there = text.partition(":")
    if not here or not there.startswith("/"):
        raise OptionError(f"--volume {text}: write HERE:THERE, where THERE begins with /, as ./data:/data:ro")
    if not here.startswith((".", "~", "/")):
        return text  # a volume that the daemon knows by name
    path = Path(here).expanduser()
    if not path.exists():
        raise OptionError(f"--volume {text}: {here} does not exist here")  # a daemon would make an empty folder
    return f"{path.resolve()}:{there}"


def _variable(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not name:
        raise OptionError(f"--env {text}: write NAME=VALUE, or NAME for the value it has here")
    if equals:
        return text
    return f"{name}={os.environ[name]}" if name in os.environ else ""


def _gpus(gpus: str, daemon: Daemon, devices: Path) -> dict[str, Any]:
    """GPUs by device request: NVIDIA's own for Docker, CDI for Podman; AMD's by their device files."""
    if not re.fullmatch(r"all|[\w:-]+(,[\w:-]+)*", gpus):
        raise OptionError(f"--gpus {gpus}: write all, none, or numbers with commas between, as 0,1")
    chosen = None if gpus == "all" else gpus.split(",")
    if (devices / "kfd").exists() and not (devices / "nvidiactl").exists():
        given: dict[str, Any] = {"devices": [f"{devices / name}:/dev/{name}:rwm" for name in ("kfd", "dri")]}
        return given | ({"environment": [f"ROCR_VISIBLE_DEVICES={gpus}"]} if chosen else {})
    request = daemons.sdk().types.DeviceRequest
    if not daemon.podman:
        which = {"count": -1} if chosen is None else {"device_ids": chosen}
        return {"device_requests": [request(capabilities=[["gpu"]], **which)]}
    if daemon.version < _CDI_SINCE:
        version = ".".join(map(str, daemon.version))
        raise UnsupportedError(f"Podman {version} gives containers no GPUs through its API; use Podman 5.4 or Docker")
    return {"device_requests": [request(driver="cdi", device_ids=[f"nvidia.com/gpu={i}" for i in chosen or ["all"]])]}


class ContainerRun:
    """A container to be: ``run`` it once (as ``command.run_child``), copy files out of it, remove it on leaving."""

    def __init__(self, spec: Container, daemon: Daemon, image: Any, given: dict[str, Any], log: Path) -> None:
        self.spec, self._daemon, self._image, self._given, self._log = spec, daemon, image, given, log
        self._container: Any = None
        self._gpus, notice = default_gpus(spec, daemon)
        self.started = False
        self.trouble: list[str] = [notice] if notice else []  # what there is to say beside its output, a line each

    def about(self) -> dict[str, Any]:
        """Metadata of the container for the recording."""
        version = ".".join(map(str, self._daemon.version))
        about = {"image": self.spec.image, "image_id": self._image.id, "engine": f"{self._daemon.name} {version}"}
        gpus = self.spec.gpus or ("all" if self._gpus else "")
        return about | ({"gpus": gpus} if gpus else {})

    def __enter__(self) -> ContainerRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
        self._daemon.close()

    def remove(self) -> None:
        """Remove it, running or not, unless it is to be kept."""
        container, self._container = self._container, None
        if container is None or self.spec.keep:
            return
        try:
            container.remove(force=True, v=True)
        except Exception as error:  # it must not hide how the container ended
            self.trouble.append(f"container {container.name} could not be removed: {daemons.error_text(error)}")

    # ----------------------------------------------------------------------------------------------------- running

    def run(self, command: Sequence[str], environment: Mapping[str, str], started: Started) -> CommandEnd:
        """Run it to its end; of ``environment`` nothing is passed on, the container has its own."""
        with signals_held():
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
            before_ns = time.monotonic_ns()
            try:
                logs = self._start(command)
            except Exception as error:
                now = time.monotonic_ns()
                return CommandEnd(
                    _code(daemons.error_text(error)), now, now, None, error=f"{self.spec.image}: {_why(error)}"
                )
            else:
                return self._follow(logs, before_ns, started)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _start(self, command: Sequence[str]) -> Logs:
        """Start it, with the GPUs that it gets by default if the engine can give them."""
        if not self._gpus:
            return self._start_with(command, self._given)
        try:
            return self._start_with(command, _with(self._given, self._gpus))
        except Exception as error:
            if not re.search(r"device driver|cdi|gpu|nvidia", daemons.error_text(error), re.IGNORECASE):
                raise
            self.remove()
            self._gpus = {}
            self.trouble = [f"the container gets no GPUs: {daemons.error_text(error)}; --gpus none leaves this out"]
            return self._start_with(command, self._given)

    def _start_with(self, command: Sequence[str], given: Mapping[str, Any]) -> Logs:
        self._container = container = self._daemon.client.containers.create(
            self._image.id, list(command) or None, labels={LABEL: str(self._log.parent.absolute())}, **given
        )
        pieces = container.attach(stream=True, logs=True, demux=True)  # before its start: nothing is lost
        shown = (sys.stdout.buffer, sys.stderr.buffer) if self.spec.logs else (None, None)
        logs = Logs(pieces, self._log, *shown)
        logs.start()
        container.start()
        self.started = True
        return logs

    def _follow(self, logs: Logs, before_ns: int, started: Started) -> CommandEnd:
        container = self._container
        container.reload()
        pid = int(container.attrs["State"].get("Pid") or 0)
        start_ns = _moment(container.attrs["State"].get("StartedAt"), before_ns, time.monotonic_ns())
        started(pid, start_ns)
        usage = Usage(pid).start()
        waiter = _Waiter(container)
        self._pass_signals(waiter)
        usage.stop()
        after_ns = time.monotonic_ns()
        logs.join(DRAIN_S)
        self.trouble += [logs.failure] if logs.failure else []
        code, error = waiter.code, waiter.error
        with contextlib.suppress(Exception):  # the daemon went away: our own times will do
            container.reload()
        state = container.attrs["State"]
        end_ns = _moment(state.get("FinishedAt"), start_ns + SHORTEST_NS, after_ns, otherwise_ns=after_ns)
        if state.get("OOMKilled"):
            error = f"{self.spec.image}: the container ran out of memory"
        return CommandEnd(code, start_ns, end_ns, usage.cpu_s, usage.max_rss_bytes, error)

    def _pass_signals(self, waiter: _Waiter) -> None:
        """Until it ends: the first signal that asks for an end is passed on, a second or a long wait kills."""
        deadline_s = None
        while not waiter.ended:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            number = _next_signal({*PASSED, signal.SIGCHLD}, left_s)
            if waiter.ended or number == signal.SIGCHLD:
                continue
            with contextlib.suppress(Exception):  # it ended just now, or the daemon did
                if number is None or (number in _ENDING and deadline_s is not None):
                    deadline_s = time.monotonic() + GRACE_S
                    self._container.kill()
                elif number in _ENDING:
                    deadline_s = time.monotonic() + GRACE_S
                    self._container.kill(signal=number)
                elif number in _USERS:
                    self._container.kill(signal=number)

    # ---------------------------------------------------------------------------------------------------- its files

    def copy_out(self, path: str, target: Path) -> list[Path]:
        """Copy a file, or what is in a folder of the container, into ``target``; the files that are there now."""
        from .copying import unpack

        try:
            stream, _ = self._container.get_archive(path)
        except Exception as error:
            raise NotFoundError(
                f"{path} could not be copied out of the container: {daemons.error_text(error)}"
            ) from None
        return unpack(stream, target, self.trouble)


class _Waiter(threading.Thread):
    """Waits for the container's end and wakes the thread that made it."""

    def __init__(self, container: Any) -> None:
        super().__init__(daemon=True, name="waiter")
        self._container, self._owner = container, threading.get_ident()
        self.ended, self.code, self.error = False, DAEMON_FAILED, ""
        self.start()

    def run(self) -> None:
        try:
            self.code = int(self._container.wait(timeout=None)["StatusCode"])
        except Exception as error:
            self.error = f"the daemon did not tell how the container ended: {daemons.error_text(error)}"
        self.ended = True
        signal.pthread_kill(self._owner, signal.SIGCHLD)


def _next_signal(signals: set[Any], within_s: float | None) -> int | None:
    if within_s is None:
        return signal.sigwait(signals)
    if sys.platform == "linux":
        received = signal.sigtimedwait(signals, within_s)
        return None if received is None else received.si_signo
    time.sleep(min(within_s, 0.2))  # macOS cannot wait for a signal for a while
    pending = signal.sigpending() & signals
    return signal.sigwait(pending) if pending else (None if within_s <= 0.2 else signal.SIGCHLD)


def _moment(text: Any, earliest_ns: int, latest_ns: int, otherwise_ns: int | None = None) -> int:
    """A daemon's time on our monotonic clock, between two moments that we know of it."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\d*(Z|[+-]\d\d:\d\d)", str(text))
    if match is None or match[1].startswith("0001"):
        return earliest_ns if otherwise_ns is None else otherwise_ns
    zone = "+00:00" if match[3] == "Z" else match[3]
    whole_s = int(datetime.fromisoformat(match[1] + zone).timestamp())
    epoch_ns = whole_s * 1_000_000_000 + int((match[2] or "0").ljust(9, "0"))
    return min(max(epoch_ns - time.time_ns() + time.monotonic_ns(), earliest_ns), latest_ns)


def _code(message: str) -> int:
    """The exit code of a container that did not start, as shells and ``docker run`` have it."""
    message = message.lower()
    if "executable file not found" in message or "no such file or directory" in message or "was not found" in message:
        return NOT_FOUND
    return NOT_EXECUTABLE if "permission denied" in message else DAEMON_FAILED


def _why(error: Exception) -> str:
    message = re.sub(r"preparing container \w+ for attach: ", "", daemons.error_text(error))
    if "no command" in message.lower():
        return "the image has no command of its own; write one after two dashes"
    return message
