"""One recording on screen: its tiles, the attributions asked for so far, and the answers to the page's questions.

The server hands every question to ``Session.answer``; the self-contained file is made of the same answers. Tiles answer
what is drawn; sums over a brushed range come from ``attribute`` itself, so they are the command line's.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...alignment.joining import READING, obtained
from ...attribution.options import moment
from ...carbon import emissions
from ...engines import attribute
from ...errors import FormatError, NoDataError, OptionError
from ...model import Attribution, Clock, Recording
from .. import numbers
from . import answers, energy, places, tiles
from .facts import facts, labels
from .lanes import Window

_BY_FRAME = ("device", "frame")
_RUNNING = ("engine", "threads")  # change nothing in the answers
_KEPT = 64  # answers kept
_QUIET_S = 5.0  # a recording that has not changed for so long is no longer being made


class Session:
    """A recording (a path, or one in memory) under one choice of attribution options; safe for several threads."""

    def __init__(
        self,
        source: Path | Recording,
        options: Mapping[str, Any] | None = None,
        compare: Path | Recording | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        given = dict(options or {})
        self._reading = {name: given.pop(name) for name in READING if name in given}
        asked = {name: given.pop(name, None) for name in ("zone", "intensity")}
        self._carbon = {name: value for name, value in asked.items() if value is not None}
        self._first = given.pop("begin", None), given.pop("end", None)  # shown first, not all there is
        self._running = {name: given.pop(name) for name in _RUNNING if name in given}
        self.options = given
        self._source, self._progress = source, progress
        self._recording = obtained(source, self._reading) if isinstance(source, Recording) else None
        self._lock = threading.RLock()
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._scratch = tempfile.TemporaryDirectory(prefix="wattribute-")
        self._before: tiles.Tiles | None = None  # other threads may still be reading them
        self._next = self._changed = -math.inf
        self.revision = 0
        try:
            if isinstance(source, Path) and time.time() - places.newest(source) < _QUIET_S and self._partial():
                self._changed = time.monotonic()
            self._print, self.tiles = self._open()
            self.other = None if compare is None else Session(compare, options, progress=progress)
        except BaseException:
            self._scratch.cleanup()
            raise

    # ---- tiles ----

    @property
    def _chosen(self) -> dict[str, Any]:
        """What the tiles depend on besides the recording."""
        return {**self.options, **self._reading, **self._carbon}

    @property
    def live(self) -> bool:
        """Whether the recording has changed a moment ago, so may be changing still."""
        return time.monotonic() - self._changed < _QUIET_S

    def _partial(self) -> bool:
        """Whether the recording says of itself that its end is missing."""
        return bool(_ends(self.recording()))

    def _open(self) -> tuple[str, tiles.Tiles]:
        """Tiles that fit the recording as it is now; those of a recording still being made are not kept."""
        if isinstance(self._source, Recording):
            print_ = ""
        else:
            print_ = places.fingerprint(self._source, self._chosen)
        where = Path(self._scratch.name) / f"tiles{self.revision}"
        if isinstance(self._source, Path) and not self.live:
            where = places.folder(self._source)
        if tiles.fingerprint_of(where) != print_:
            self._build(where, print_)
        return print_, tiles.Tiles(where)

    def _refresh(self) -> None:
        """Look at the recording again, at most once a second; when it has grown, make new tiles."""
        with self._lock:
            if isinstance(self._source, Recording) or time.monotonic() < self._next:
                return
            began = time.monotonic()
            self._next = began + 1
            if places.fingerprint(self._source, self._chosen) == self._print:
                return
            self._changed = time.monotonic()
            self._recording = None
            self.revision += 1
            try:
                fresh = self._open()
            except FormatError:  # half-written just now: what was there stays on screen
                return
            if self._before:
                self._before.close()
            self._before = self.tiles
            self._print, self.tiles = fresh
            self._kept.clear()
            self._next = began + 1 + 3 * (time.monotonic() - began)  # a long recording is looked at less often

    def _build(self, where: Path, fingerprint: str) -> None:
        recording = self.recording()
        try:
            attribution = self.attribution(_BY_FRAME, None)
            note = ""
        except NoDataError as error:
            attribution, note = None, str(error)
        metered = energy.metered(recording, attribution, self.options)
        name = str(recording.metadata.get("source") or "") if isinstance(self._source, Recording) else str(self._source)
        known = facts(recording, metered, name)
        if attribution is None:
            table = {"devices": known["devices"], "rows": [], "problems": [], "note": note}
        else:
            table = answers.table(attribution, labels(known["devices"]))
        known["summary"] += self._emitted(recording) if metered.books else []
        if self.live:
            known["problems"] = [text for text in known["problems"] if text not in _ends(recording)]
        tiles.build(recording, metered, known, table, where, fingerprint, self._progress)

    def _emitted(self, recording: Recording) -> list[str]:
        """Grams, where the zone was said (now or when it was recorded): it is never guessed."""
        said = {"zone": recording.metadata.get("zone"), **self._carbon}
        if not any(said.values()):
            return []
        found = emissions(recording, **said)
        return [f"{numbers.si(found.co2e_g, 'g')} CO₂e ({found.name or found.zone})"]

    def recording(self) -> Recording:
        with self._lock:
            if self._recording is None:
                assert isinstance(self._source, Path)
                self._recording = obtained(self._source, self._reading)
            return self._recording

    def close(self) -> None:
        self.tiles.close()
        if self.other:
            self.other.close()
        if self._before:
            self._before.close()
        self._scratch.cleanup()

    # ---- questions ----

    def answer(self, name: str, query: Mapping[str, str]) -> Any:
        """The answer to one question of the page: bytes for pictures, plain values for the rest."""
        questions: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "facts": lambda q: self.facts(),
            "status": lambda q: self.status(),
            "view": lambda q: self.tiles.view(_ints(q, "lanes"), *self._range(q), _int(q, "width")),
            "power": lambda q: self.tiles.power(_ints(q, "devices"), *self._range(q), _int(q, "width")),
            "overview": lambda q: self.tiles.whole_power(512),
            "span": lambda q: self.tiles.span(_int(q, "lane"), _int(q, "row")),
            "bin": lambda q: self.tiles.bin(_int(q, "lane"), *self._range(q)),
            "find": lambda q: self.tiles.find(_ints(q, "frames"), _int(q, "after")),
            "table": lambda q: self.table(self._brush(q)),
            "flame": lambda q: self.flame(self._brush(q)),
            "heat": lambda q: self.heat(self._brush(q)),
            "compare": lambda q: self.compare(),
        }
        return questions[name](query)

    def facts(self) -> dict[str, Any]:
        return {
            **self.tiles.facts,
            "length_ticks": self.tiles.length,
            "revision": self.revision,
            "live": self.live,
            "start": self._start(),
        }

    def _start(self) -> str:
        """The hash of a page that was opened without one: the stretch of time that was asked for."""
        clock = self.recording().clock if any(self._first) else Clock()
        a, b = (moment(text, clock) for text in self._first)
        if a is None and b is None:
            return ""
        a, b = max(0, a or 0), min(self.tiles.length, self.tiles.length if b is None else b)
        return f"v={a},{b}&b={a},{b}"

    def status(self) -> dict[str, Any]:
        self._refresh()
        return {"revision": self.revision, "live": self.live}

    def _range(self, query: Mapping[str, str]) -> tuple[int, int]:
        a, b = max(0, _int(query, "from")), min(self.tiles.length, _int(query, "to"))
        if b <= a:
            raise OptionError("an empty stretch of time")
        return a, b

    def _brush(self, query: Mapping[str, str]) -> tuple[int, int] | None:
        return self._range(query) if "from" in query else None

    # ---- sums, by attribution ----

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """An answer made once and kept; one at a time, because an attribution uses all cores anyway."""
        with self._lock:
            if key not in self._kept:
                if not isinstance(self._source, Recording):
                    places.fingerprint(self._source, {})  # a deleted recording says so, whatever is still in memory
                self._kept[key] = make()
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def attribution(self, by: tuple[str, ...], range_: tuple[int, int] | None, **more: Any) -> Attribution:
        """``attribute`` of a stretch of time, as the command line's --from and --to would."""
        recording, asked = self.recording(), {**self.options, **self._running, "by": by, **more}
        if range_ is not None:
            per_s = recording.clock.ticks_per_s
            recording = replace(recording, spans=Window(recording.spans, *range_, self.tiles.lanes))
            asked |= {"begin": range_[0] / per_s, "end": range_[1] / per_s}
        found = attribute(recording, **asked)
        if "measured_j" not in found.devices.columns:
            raise OptionError("the page shows energy: choose a metric in joules or watts")
        return found

    @property
    def _labels(self) -> dict[str, str]:
        return labels(self.tiles.facts["devices"])

    def table(self, range_: tuple[int, int] | None = None) -> dict[str, Any]:
        """Books and frames; those of the whole recording were made with the tiles."""
        if range_ is None:
            return dict(self._once("table", self.tiles.table))

        def unused(note: str) -> dict[str, Any]:
            return {"devices": self.tiles.books(*range_), "rows": [], "problems": [], "note": note}

        return self._of(_BY_FRAME, range_, unused, lambda found: answers.table(found, self._labels))

    def flame(self, range_: tuple[int, int] | None = None) -> dict[str, Any]:
        """Call paths per device; where kernels hold the joules, also the host's paths, in a view of their own."""

        def shape(found: Attribution) -> dict[str, Any]:
            shown = [found]
            if self.hosts_too():
                with contextlib.suppress(NoDataError):
                    shown.append(self.attribution(("device", "path"), range_, of="host"))
            return answers.flame(shown, self._labels)

        return self._of(("device", "path"), range_, lambda note: {"groups": [], "note": note}, shape)

    def hosts_too(self) -> bool:
        """Whether the host's call stacks say more than the attribution shown: it is of kernels, by default."""
        known = self.tiles.facts
        return (
            "of" not in self.options
            and any(device["of"] == "kernels" for device in known["devices"])
            and any(lane["kind"] == "cpu" for lane in known["lanes"])
        )

    def heat(self, range_: tuple[int, int] | None = None) -> dict[str, Any]:
        return self._of(
            ("device", "process", "frame"),
            range_,
            lambda note: {"cells": [], "note": note},
            lambda found: answers.heat(found),
        )

    def _of(
        self,
        by: tuple[str, ...],
        range_: tuple[int, int] | None,
        without: Callable[[str], dict[str, Any]],
        shape: Callable[[Attribution], dict[str, Any]],
    ) -> dict[str, Any]:
        """An attribution in the shape a tab wants, or what the tab shows without one."""

        def make() -> dict[str, Any]:
            try:
                return shape(self.attribution(by, range_))
            except NoDataError as error:
                return without(str(error))

        return dict(self._once((by, range_), make))

    def compare(self) -> dict[str, Any]:
        if self.other is None:
            return {"sides": None, "note": answers.NO_COMPARISON}
        other = self.other
        return dict(
            self._once("compare", lambda: answers.compare(self.table(), other.table(), [self.side(), other.side()]))
        )

    def side(self) -> dict[str, Any]:
        """What the Compare tab shows of one recording."""
        known = self.tiles.facts
        return {
            "title": known["title"],
            "seconds": self.tiles.length / known["clock"]["ticks_per_s"],
            "measured_j": sum(book["measured_j"] for book in energy.addable(known["devices"])),
            "devices": known["devices"],
            "power": self.tiles.whole_power(256),
        }


def _ends(recording: Recording) -> list[str]:
    """What a recording still being made says about its missing end: no news while one watches."""
    return [problem.message for problem in recording.problems if problem.kind == "partial"]


def _int(query: Mapping[str, str], name: str) -> int:
    try:
        return int(float(query[name]))
    except (KeyError, ValueError, OverflowError):
        raise OptionError(f"{name} has to be a number") from None


def _ints(query: Mapping[str, str], name: str) -> list[int]:
    try:
        return [int(part) for part in query.get(name, "").split(",") if part]
    except ValueError:
        raise OptionError(f"{name} has to be a list of numbers") from None
