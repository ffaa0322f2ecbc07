"""Parent-side handle of the sampler process: start it, name the child to it, stop it, get the Recording.

::

    sampling = Sampling(folder, meters=["nvml"])
    sampling.start()                                  # every counter stands on a fresh update
    sampling.tell({"start": ns, "pid": pid, "name": "what runs"})
    sampling.tell({"end": ns})
    recording = sampling.stop()

Used by ``command`` and by recorders inside a program. Light until ``stop``: the child must not wait.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MeterError, OptionError, OutputError
from ..files import new_folder
from ..journal.file import EVENT, NAME, mapped, record
from .early_start import SamplerProcess, process

if TYPE_CHECKING:
    from mmap import mmap

    from ..model import Recording

REGIONS = "regions"
CLOSE_S = 1.0
HUNG_S = 0.2
_LOOK_S = 0.1
END_S = 1.5  # after which a sampler that has not reported its end is hung up on: it then saves what there is
READY_S = 10.0  # a busy machine may take seconds to start a process
OPEN_S = 2.0  # a driver that has not answered by then hangs: the command does not wait for it

Observer = Callable[[dict[str, Any]], None]


def check_interval(interval_s: float | None) -> None:
    if interval_s is not None and not 0.001 <= interval_s <= 3600:
        raise OptionError(f"an interval of {interval_s:g} s; choose one from 0.001 to 3600 s")


def recording_folder(path: Path, claimed: bool = False) -> Path:
    """Make the folder of a recording, with one for the regions of programs in it."""
    new_folder(path, claimed)
    try:
        (path / REGIONS).mkdir()
    except OSError as error:
        raise OutputError(f"{path}: cannot be made: {error.strerror}") from error
    return path


def _text(about: dict[str, Any]) -> dict[str, Any]:
    """Replace every byte that is not UTF-8 by ``?``: no table, JSON or server takes it."""
    cleaned: dict[str, Any] = json.loads(json.dumps(about, ensure_ascii=False).encode("utf-8", "replace"))
    return cleaned


def is_running(pid: int) -> bool:
    """Whether a process computes, or waits for a core to do so, rather than for something else."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"R"
    except (OSError, IndexError):
        return False


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
        self._process: SamplerProcess | None = None
        self._ready = threading.Event()
        self._opening = "", 0.0  # the meter that is being opened, and since when
        self._listener: threading.Thread | None = None
        self._answers: dict[str, Any] = {}
        self._sent: list[dict[str, Any]] = []
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
        with contextlib.suppress(BrokenPipeError):  # it ended at once: ``start`` reports that
            # no argument, of which the kernel takes 128 kB: the command in it may be longer
            self._process.stdin.write(json.dumps(self._order).encode() + b"\n")
            self._process.stdin.flush()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for the main thread
        self._listener.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def start(self, unmetered: bool = True) -> None:
        """Start the process, unless it has begun, and wait until it is ready; raises MeterError.

        If a driver hangs, nothing is metered and that is noted; without ``unmetered`` that is an error, too.
        """
        if self._process is None:
            self.begin()
        hangs = self._await()
        if hangs and unmetered:
            self._close(HUNG_S)
            self._answers, self._opening, self._order["meters"] = {}, ("", 0.0), None
            self._ready.clear()
            self.begin()
            self._await()
            self.tell({"problem": f"nothing is metered: {hangs}"})
        elif hangs:
            self._close(HUNG_S)
            raise MeterError(hangs)
        if "error" in self._answers:
            self._close()
            raise MeterError(self._answers["error"])
        if "ready" not in self._answers:
            self._close()
            raise MeterError("the sampler did not start; run: wattribute doctor")

    def _await(self) -> str:
        """Wait until the process is ready or has failed; return a message if a driver hangs."""
        limit_s = time.monotonic() + READY_S
        while not self._ready.wait(_LOOK_S) and time.monotonic() < limit_s:
            name, since_s = self._opening
            if self._process is not None and is_running(self._process.pid):
                self._opening = name, time.monotonic()  # it works, however slowly: this machine is busy
            elif name and time.monotonic() > since_s + OPEN_S:
                fix = f"wattribute doctor, or name other meters than {name.partition(':')[0]} with --meters"
                return f"the driver of meter {name} did not answer within {OPEN_S:g} s; run: {fix}"
        return ""

    def _listen(self) -> None:
        assert self._process is not None
        stdout = self._process.stdout
        for line in stdout:
            if self._process is None or self._process.stdout is not stdout:
                return  # of one that hung
            message = json.loads(line)
            if "live" in message:
                for observer in self._observers:
                    observer({**message, "folder": str(self._folder or ""), "about": self.about})
                continue
            if "about" in message:
                self.about = message["about"]
                continue
            if "opening" in message:
                self._opening = message["opening"], time.monotonic()
                continue
            self._answers |= message
            self._ready.set()
            if "done" in message:
                self._rest = stdout.read(message["rest"])
                break
        if self._process is not None and self._process.stdout is stdout:
            self._ready.set()

    def tell(self, event: dict[str, Any]) -> None:
        """Note an event in the journal; times are monotonic ns. A sampler that died is found by ``stop``."""
        assert self._process is not None
        self._sent.append(event)
        try:
            self._process.stdin.write(json.dumps(event).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.failure = "the sampler ended early"

    def finish(self) -> None:
        """Wait for the last readings; the journal is then closed. Call after the "end" event."""
        assert self._listener is not None
        assert self._process is not None
        self._listener.join(END_S)
        if self._listener.is_alive():
            self._process.hang_up()
            self._listener.join(READY_S)
        self.failure = self._answers.get("failure", "") or self.failure
        self.cpu_s = self._answers.get("done", 0.0)
        if "done" not in self._answers:
            self.failure = self.failure or "the sampler ended early"
        self._close(HUNG_S if self._answers.get("hung") else CLOSE_S)

    def stop(self) -> Recording:
        """Wait for the last readings; the Recording of everything up to the "end" event."""
        self.finish()
        return self.recording()

    def recording(self) -> Recording:
        from dataclasses import replace

        from ..readers import journal as build

        recording = build.build(self.content(), self.folder / NAME, self.folder / REGIONS)
        run = {**recording.metadata["run"], "sampler_cpu_s": self.cpu_s}  # known when the journal is closed already
        return replace(recording, metadata={**recording.metadata, "run": run})

    def content(self) -> bytes | mmap:
        """The journal: what reached the file, and what a full disk or the sampler's early end kept from it."""
        try:
            written = mapped(self.folder / NAME)
        except OSError:
            written = b""
        rest = self._rest
        if "done" not in self._answers:  # it was killed: at least the events we sent are known
            rest = b"".join(record(EVENT, json.dumps(event).encode()) for event in self._sent)
        return written[:] + rest if rest else written

    def clean(self) -> None:
        """Remove the journal and the regions' files, once the recording is saved; keep what other tools read."""
        if any((self.folder / REGIONS).glob("*.stacknames")):
            from ..readers import stack_files

            stack_files.keep(self.folder / REGIONS, self.folder)
        (self.folder / NAME).unlink(missing_ok=True)
        for path in (self.folder / REGIONS).glob("*"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a process that outlived the command may still write its regions
            (self.folder / REGIONS).rmdir()

    def _close(self, patience_s: float = CLOSE_S) -> None:
        if self._process is not None:
            self._process.close(patience_s)
            self._process = None
