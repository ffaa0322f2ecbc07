"""The near end of the sampler's process: start it, tell it of the child, stop it, get the Recording.

::

    sampling = Sampling(folder, meters=["nvml"])
    sampling.start()                                  # every counter stands on a fresh update
    sampling.tell({"start": ns, "pid": pid, "name": "what runs"})
    sampling.tell({"end": ns})
    recording = sampling.stop()

Used by ``command`` and by whatever records from inside a program. Light until ``stop``: the child must not wait.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MeterError, OptionError, OutputError, check_name
from .boot import Process, process
from .journal import EVENT, NAME, record

if TYPE_CHECKING:
    from ..model import Recording

REGIONS = "regions"
CLOSE_S = 1.0
READY_S = 10.0  # a driver may take seconds to wake; one that hangs must not keep the child for ever

Observer = Callable[[dict[str, Any]], None]


def check_interval(interval_s: float | None) -> None:
    if interval_s is not None and not 0.001 <= interval_s <= 3600:
        raise OptionError(f"an interval of {interval_s:g} s; choose one from 0.001 to 3600 s")


def new_folder(path: Path, claimed: bool = False) -> Path:
    """Make the folder of a recording; an existing one is an error, never overwritten, unless we made it ourselves."""
    check_name(path)
    try:
        path.mkdir(parents=True, exist_ok=claimed)
        (path / REGIONS).mkdir()
    except FileExistsError:
        raise OutputError(f"{path} exists already; choose another name or remove it") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be made: {error.strerror}") from error
    return path


def _text(about: dict[str, Any]) -> dict[str, Any]:
    """The same with a ``?`` for every byte of a command that is not UTF-8: no table, JSON or server takes it."""
    told: dict[str, Any] = json.loads(json.dumps(about, ensure_ascii=False).encode("utf-8", "replace"))
    return told


class Sampling:
    """A running sampler. ``meters`` are names (``name`` or ``name:root``), () for all that work, None for none.

    ``observers`` are called (in a thread) with the sampler's status every ``live_s`` seconds. Without a folder nothing
    is kept: then the observers are all there is. ``shares`` "family" or "group" notes what part of the GPUs the child's
    descendants, or its control group, had.
    """

    def __init__(
        self,
        folder: Path | None,
        meters: Sequence[str] | None = (),
        interval_s: float | None = None,
        observers: Sequence[Observer] = (),
        live_s: float = 1.0,
        about: dict[str, Any] | None = None,
        shares: str = "",
    ) -> None:
        self._folder, self._observers = folder, observers
        self._order = {
            "folder": None if folder is None else str(folder),
            "meters": None if meters is None else list(meters),
            "interval_s": interval_s,
            "live_s": live_s if observers else None,
            "about": _text(about or {}),
            "shares": shares,
        }
        self._process: Process | None = None
        self._ready = threading.Event()
        self._listener: threading.Thread | None = None
        self._said: dict[str, Any] = {}
        self._told: list[dict[str, Any]] = []
        self._rest = b""
        self.about: dict[str, Any] = {}  # the meters and their channels, for those who watch
        self.failure = ""  # why the journal could not be written to the end
        self.cpu_s = 0.0  # what sampling cost while the child ran

    @property
    def folder(self) -> Path:
        assert self._folder is not None, "nothing is kept"
        return self._folder

    @property
    def alive(self) -> bool:
        """Whether the sampler still talks to us."""
        return self._listener is not None and self._listener.is_alive()

    def begin(self) -> None:
        """Start the process, and let it find the first reading of everything; ``start`` waits for it."""
        self._process = process()
        with contextlib.suppress(BrokenPipeError):  # it ended at once: that is told below
            # no argument, of which the kernel takes 128 kB: the command in it may be longer
            self._process.stdin.write(json.dumps(self._order).encode() + b"\n")
            self._process.stdin.flush()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for the main thread
        self._listener.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def start(self) -> None:
        """Start the process, unless it has begun, and wait until it is ready; raises MeterError."""
        if self._process is None:
            self.begin()
        self._ready.wait(READY_S)
        if "error" in self._said:
            self._close()
            raise MeterError(self._said["error"])
        if "ready" not in self._said:
            self._close()
            raise MeterError("the sampler did not start; run: wattribute doctor")

    def _listen(self) -> None:
        assert self._process is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "live" in message:
                for observer in self._observers:
                    observer({**message, "folder": str(self._folder or "")})  # monitor may keep nothing
                continue
            if "about" in message:
                self.about = message["about"]
                continue
            self._said |= message
            self._ready.set()
            if "done" in message:
                self._rest = self._process.stdout.read(message["rest"])
                break
        self._ready.set()

    def tell(self, event: dict[str, Any]) -> None:
        """Note an event in the journal; times are monotonic ns. A sampler that died is found by ``stop``."""
        assert self._process is not None
        self._told.append(event)
        try:
            self._process.stdin.write(json.dumps(event).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.failure = "the sampler ended early"

    def finish(self) -> None:
        """Wait for the last readings; the journal is then closed. Call after the "end" event."""
        assert self._listener is not None
        self._listener.join(READY_S)
        self.failure = self._said.get("failure", "") or self.failure
        self.cpu_s = self._said.get("done", 0.0)
        if "done" not in self._said:
            self.failure = self.failure or "the sampler ended early"
        self._close()

    def stop(self) -> Recording:
        """Wait for the last readings; the Recording of everything up to the "end" event."""
        self.finish()
        return self.recording()

    def recording(self) -> Recording:
        from dataclasses import replace

        from . import build

        recording = build.build(self.content(), self.folder / NAME, self.folder / REGIONS)
        run = {**recording.metadata["run"], "sampler_cpu_s": self.cpu_s}  # known when the journal is closed already
        return replace(recording, metadata={**recording.metadata, "run": run})

    def content(self) -> bytes:
        """The journal: what reached the file, and what a full disk or the sampler's early end kept from it."""
        try:
            written = (self.folder / NAME).read_bytes()
        except OSError:
            written = b""
        if "done" not in self._said:  # it was killed: at least what we told it is known
            return written + b"".join(record(EVENT, json.dumps(event).encode()) for event in self._told)
        return written + self._rest

    def clean(self) -> None:
        """Remove the journal and the regions' files, once the recording is saved; keep what other tools read."""
        if any((self.folder / REGIONS).glob("*.stacknames")):
            from . import stack_files

            stack_files.keep(self.folder / REGIONS, self.folder)
        (self.folder / NAME).unlink(missing_ok=True)
        for path in (self.folder / REGIONS).glob("*"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a process that outlived the command may still write its regions
            (self.folder / REGIONS).rmdir()

    def _close(self) -> None:
        if self._process is not None:
            self._process.close(CLOSE_S)
            self._process = None
