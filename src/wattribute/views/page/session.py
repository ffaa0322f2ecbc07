"""One recording on screen: its tiles, the attributions asked for so far, and the answers to the page's questions.

The server hands every question to ``Session.answer``; the self-contained file is made of the same answers. Tiles answer
what is drawn; sums over a brushed range come from ``attribute`` itself, so they are the command line's.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import math
import shlex
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...carbon import Emissions
from ...carbon.recordings import of_recording, recorded_place
from ...engines import attribute
from ...errors import FormatError, NoDataError, OptionError
from ...journal.file import is_being_written
from ...model import Attribution, Clock, Question, ReadOptions, Recording
from ...model.question import make, split
from ...plugins import outputs
from ...reading import as_recording
from .. import numbers
from . import answers, energy, tiles
from . import cache_folder as places
from .block_sums import LANE_COST, MANY_SPANS, BlockSums
from .facts import facts, labels, signal_track
from .frames import FEW, FrameColumns
from .lanes import Lane, Window
from .server import ReplacedError

GROUPS = {"frame": ("frame",), "device": ("device",), "process": ("host", "process"), "role": ("role",)}  # of the table
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
        reading, asked = split(options or {})
        self._reading = make(ReadOptions, reading)
        self._carbon: dict[str, Any] = {name: asked.pop(name) for name in ("zone", "intensity") if name in asked}
        self._first = asked.pop("begin", None), asked.pop("end", None)  # shown first, not all there is
        self._engine = asked.pop("engine", "local")
        self.question = make(Question, asked)
        self._source, self._progress = source, progress
        self._recording = as_recording(source, self._reading) if isinstance(source, Recording) else None
        self._lock = threading.RLock()
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._tickets: OrderedDict[str, int] = OrderedDict()  # the newest question about sums, by page
        self._asking = threading.local()
        self._scratch = contextlib.ExitStack()  # for tiles that are not kept
        self._before: tiles.Tiles | None = None  # other threads may still be reading them
        self._next = self._changed = -math.inf
        self.revision = 0  # counts every change of the recording
        self.identity = 0  # counts the changes that are not growth: the page starts again
        try:
            if isinstance(source, Path) and time.time() - places.newest(source) < _QUIET_S and self._partial():
                self._changed = time.monotonic()
            self._print, self.tiles = self._open()
            self.other = None if compare is None else Session(compare, options, progress=progress)
        except BaseException:
            self._scratch.close()
            raise

    # ---- tiles ----

    @property
    def _chosen(self) -> dict[str, Any]:
        """What the tiles depend on besides the recording."""
        return {**vars(self.question), **vars(self._reading), "progress": None, "threads": None, **self._carbon}

    @property
    def live(self) -> bool:
        """Whether the recording is being made: its recorder is alive, or it has grown a moment ago."""
        if isinstance(self._source, Recording):
            return False
        return is_being_written(self._source) or time.monotonic() - self._changed < _QUIET_S

    def _partial(self) -> bool:
        """Whether the recording says of itself that its end is missing."""
        return bool(_ends(self.recording()))

    def _open(self) -> tuple[str, tiles.Tiles]:
        """Tiles that fit the recording as it is now; those of a recording still being made are not kept."""
        if isinstance(self._source, Recording):
            print_ = ""
        else:
            print_ = places.fingerprint(self._source, self._chosen)
        where = places.folder(self._source) if isinstance(self._source, Path) and not self.live else None
        if where is None:
            where = Path(self._scratch.enter_context(tempfile.TemporaryDirectory(prefix="wattribute-"))) / "tiles"
        if tiles.fingerprint_of(where) != print_:
            self._build(where, print_)
        try:
            return print_, tiles.Tiles(where)
        except FormatError:  # damaged since they were made
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
            if not _has_grown(self._before, self.tiles):
                self.identity += 1
                self._changed = -math.inf
            self._next = began + 1 + 3 * (time.monotonic() - began)  # a long recording is looked at less often

    def _build(self, where: Path, fingerprint: str) -> None:
        recording = self.recording()
        try:
            attribution = self.attribution(GROUPS["frame"], None)
            note = ""
        except NoDataError as error:
            attribution, note = None, str(error)
        metered = energy.metered(recording, attribution, self.question)
        name = str(recording.metadata.get("source") or "") if isinstance(self._source, Recording) else str(self._source)
        known, frames = facts(recording, metered, name), FrameColumns.of(recording.frames)
        if attribution is None:
            table = {"devices": known["devices"], "rows": [], "problems": [], "note": note}
        else:
            table = answers.table(attribution, labels(known["devices"]), answers.Looks(recording.frames, frames))
        del attribution  # large, where there are many frames
        emitted = self._emitted(recording) if metered.books else None
        known["g_per_j"] = emitted.co2e_g / emitted.energy_j if emitted and emitted.energy_j else None
        if emitted:
            known["summary"].append(f"{numbers.si(emitted.co2e_g, 'g')} CO₂e ({emitted.name or emitted.zone})")
        known["command"] = self._command()
        if self.live:
            for shown in (known, table):
                shown["problems"] = [text for text in shown["problems"] if text not in _ends(recording)]
        who = places.Permissions()
        if isinstance(self._source, Path):
            who = places.permissions(self._source, self._chosen, where)

        def views() -> list[energy.PageEnergy]:
            if not known["devices"]:
                return [self.view_of(quantity="time")]
            return [metered, *([self.view_of(of="host")] if hosts_too(self.question, known) else [])]

        tiles.build(recording, metered, frames, known, table, where, fingerprint, who, self._progress, views)

    def _emitted(self, recording: Recording) -> Emissions | None:
        """Grams, where the zone was said (now or when it was recorded): it is never guessed."""
        if not any((recorded_place(recording) | self._carbon).values()):
            return None
        return of_recording(recording, self.question.metering, None, self._carbon)

    def _command(self) -> str:
        """The command line that attributes this recording with these options; empty for one in memory."""
        if isinstance(self._source, Recording):
            return ""
        words = ["wattribute", "attribute", str(self._source)]
        for options in (self.question, self._reading):
            for one in dataclasses.fields(options):
                value, flag = getattr(options, one.name), one.metadata.get("flag") or f"--{one.name.replace('_', '-')}"
                if not one.metadata or one.name in ("by", "threads", "begin", "end") or value in (None, False, (), ""):
                    continue
                if value == one.default or isinstance(value, bool) or callable(value):
                    continue
                many = value if isinstance(value, tuple | list) else [value]
                words += [word for each in many for word in (flag, str(each))]
        return shlex.join(words)

    def recording(self) -> Recording:
        with self._lock:
            if self._recording is None:
                assert isinstance(self._source, Path)
                self._recording = as_recording(self._source, self._reading)
            return self._recording

    def close(self) -> None:
        self.tiles.close()
        if self.other:
            self.other.close()
        if self._before:
            self._before.close()
        self._scratch.close()

    # ---- questions ----

    def answer(self, name: str, query: Mapping[str, str]) -> Any:
        """The answer to one question of the page: bytes for pictures, plain values for the rest."""
        questions: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "facts": lambda q: self.facts(),
            "status": lambda q: self.status(),
            "view": lambda q: self.tiles.view(
                _ints(q, "lanes"), *self._range(q), _int(q, "width"), _ints(q, "idle"), _words(q, "groups")
            ),
            "power": lambda q: self.tiles.power(_ints(q, "devices"), *self._range(q), _int(q, "width")),
            "overview": lambda q: self.tiles.whole_power(512),
            "span": lambda q: self.tiles.span(_int(q, "lane"), _int(q, "row")),
            "names": lambda q: self.tiles.frames.rows(_ints(q, "ids")),
            "search": lambda q: self.search(q.get("text", "")),
            "bin": lambda q: self.tiles.bin(_int(q, "lane"), *self._range(q)),
            "find": lambda q: self.tiles.find(_ints(q, "frames"), _int(q, "after")),
            "burned": lambda q: self.burned(*self._range(q)),
            "table": lambda q: self.table(self._brush(q), q.get("by", "frame"), q.get("device", ""), "exact" in q),
            "flame": lambda q: self.flame(self._brush(q), "exact" in q),
            "heat": lambda q: self.heat(self._brush(q), "exact" in q),
            "compare": lambda q: self.compare(),
            "signal": lambda q: self.signal(_int(q, "signal"), *self._range(q), _int(q, "width")),
            "perfetto": lambda q: self.perfetto(self._brush(q)),
        }
        ask = questions[name]
        self._check(query)
        self._enter(query)
        answer = ask(query)
        self._check(query)  # it may have been replaced meanwhile
        return answer

    def _enter(self, query: Mapping[str, str]) -> None:
        """Remember the newest question about sums of each page; older ones that still wait are not answered."""
        self._asking.ticket = None
        if "page" in query and "ticket" in query:
            page, ticket = query["page"], _int(query, "ticket")
            self._tickets[page] = max(ticket, self._tickets.get(page, 0))
            self._tickets.move_to_end(page)
            while len(self._tickets) > _KEPT:
                self._tickets.popitem(last=False)
            self._asking.ticket = page, ticket

    def _still_wanted(self) -> None:
        page, ticket = getattr(self._asking, "ticket", None) or ("", 0)
        if ticket < self._tickets.get(page, 0):
            raise OptionError("a newer question has taken the place of this one")

    def _check(self, query: Mapping[str, str]) -> None:
        """Refuse a question about an earlier revision: its lanes, times and devices would be another recording's."""
        if query.get("revision", str(self.revision)) != str(self.revision):
            raise ReplacedError("the recording has changed since this page was drawn")

    def facts(self, most_names: int = FEW) -> dict[str, Any]:
        return {
            **self.tiles.facts,
            "frames": self.tiles.frames.facts(most_names),
            "length_ticks": self.tiles.length,
            "revision": self.revision,
            "identity": self.identity,
            "live": self.live,
            "start": self._start(),
        }

    def search(self, text: str) -> dict[str, str]:
        """Which frames have a text in their names: a bit each, the lowest first."""
        bits = np.packbits(self.tiles.frames.matching(text), bitorder="little")
        return {"bits": base64.b64encode(bits.tobytes()).decode()}

    def _start(self) -> str:
        """The hash of a page that was opened without one: the stretch of time that was asked for."""
        clock = self.recording().clock if any(self._first) else Clock()
        a, b = (clock.moment(text) for text in self._first)
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
            raise OptionError("the range of time is empty")
        return a, b

    def _brush(self, query: Mapping[str, str]) -> tuple[int, int] | None:
        return self._range(query) if "from" in query else None

    # ---- sums, by attribution ----

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """An answer made once and kept; one at a time, because an attribution uses all cores anyway."""
        with self._lock:
            if key not in self._kept:
                self._still_wanted()
                self._unchanged()
                answer = make()
                self._unchanged()
                self._kept[key] = answer
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def _unchanged(self) -> None:
        """Raise when the files are not those of the tiles: deleted, or replaced and not yet looked at."""
        if isinstance(self._source, Path) and places.fingerprint(self._source, self._chosen) != self._print:
            self._next = -math.inf
            if not self.live:
                raise ReplacedError("the recording has changed since this page was drawn")

    def attribution(self, by: tuple[str, ...], range_: tuple[int, int] | None, **more: Any) -> Attribution:
        """``attribute`` of a stretch of time, as the command line's --from and --until would."""
        recording, question = self.recording(), self.question.but(by=by, **{"quantity": "energy", **more})
        if range_ is not None:
            per_s = recording.clock.ticks_per_s
            recording = replace(recording, spans=Window(recording.spans, *range_, self.tiles.lanes))
            question = question.but(begin=range_[0] / per_s, end=range_[1] / per_s)
        attribution = attribute(recording, question, engine=self._engine, threads=self._reading.threads)
        if question.quantity == "time":
            return attribution.as_amounts()
        if "measured_j" not in attribution.devices.columns:
            raise OptionError("the page shows energy: choose a metric in joules or watts")
        return attribution

    def looks(self) -> answers.Looks:
        if "looks" not in self._kept:
            self._kept["looks"] = answers.Looks(self.recording().frames, self.tiles.frames)
        looks: answers.Looks = self._kept["looks"]
        return looks

    @property
    def _labels(self) -> dict[str, str]:
        return labels(self.tiles.facts["devices"])

    def table(
        self, range_: tuple[int, int] | None = None, by: str = "frame", device: str = "", exact: bool = False
    ) -> dict[str, Any]:
        """Books, and rows over all devices that count or of one; those by frame of all time came with the tiles."""
        if by not in GROUPS:
            raise OptionError(f"by has to be one of {', '.join(GROUPS)}")
        if self.unit == "s":
            return dict(self._once(("seconds", range_, by), lambda: self.seconds(range_, by)))
        keys = GROUPS[by] if not device or by == "device" else ("device", *GROUPS[by])

        if range_ is None and by == "frame" and not device:
            return dict(self._once("table", self.tiles.table))
        blocks = self._blocks(range_, self._most_of_rows)
        if blocks and not exact and not device and self.tiles.metered.uses:
            return {**answers.coarse_table(self.tiles, blocks, range_, by), **self._coarse(blocks, range_)}

        def unused(note: str) -> dict[str, Any]:
            books = self.tiles.books(*(range_ or (0, self.tiles.length)))
            return {"devices": books, "rows": [], "problems": [], "note": note}

        def shape(attribution: Attribution) -> dict[str, Any]:
            return answers.table(attribution, self._labels, self.looks(), by, device)

        return self._of(keys, range_, unused, shape, device)

    def burned(self, a: int, b: int) -> dict[str, Any]:
        """What each device spent from a to b: from its curve, at once."""
        joules = self.tiles.burned(a, b)
        return {"measured_j": joules, **self.totals(a, b, joules)}

    def totals(self, a: int, b: int, joules: Sequence[float]) -> dict[str, Any]:
        """Joules, watts and grams of a stretch of time, over the devices that count."""
        known = self.tiles.facts
        added = [each for each, book in zip(joules, known["devices"], strict=True) if book["added"]]
        if not added:
            return {"energy_j": None, "power_w": None, "co2e_g": None}
        total, per_j = math.fsum(added), known["g_per_j"]
        seconds = (b - a) / known["clock"]["ticks_per_s"]
        return {"energy_j": total, "power_w": total / seconds, "co2e_g": None if per_j is None else total * per_j}

    def flame(self, range_: tuple[int, int] | None = None, exact: bool = False) -> dict[str, Any]:
        """Call paths per device; where kernels hold the joules, also the host's paths, in a view of their own."""
        if not exact and (blocks := self._blocks(range_)):
            return {"unit": self.unit, **blocks.flame(range_), **self._coarse(blocks, range_)}

        def shape(attribution: Attribution) -> dict[str, Any]:
            shown = [attribution]
            if hosts_too(self.question, self.tiles.facts):
                with contextlib.suppress(NoDataError):
                    shown.append(self.attribution(("device", "path"), range_, of="host"))
            return {"unit": self.unit, **answers.flame(shown, self._labels, self.looks())}

        return self._of(("device", "path"), range_, lambda note: {"groups": [], "note": note}, shape)

    def view_of(self, **asked: Any) -> energy.PageEnergy:
        """The curves of a question that differs from the page's own; none where no device was used."""
        try:
            attribution = self.attribution(("device",), None, **asked)
        except NoDataError:
            return energy.PageEnergy()
        return energy.metered(self.recording(), attribution, self.question.but(**asked))

    def _blocks(self, range_: tuple[int, int] | None, most: int | None = None) -> BlockSums | None:
        """The blocks to draw a range from, where it holds too many spans to add them up while somebody waits."""
        blocks = self.tiles.blocks
        if not blocks or (range_ is None and most is None):  # there are none unless all are too many for a picture
            return blocks
        a, b = range_ or (0, self.tiles.length)
        return blocks if self.tiles.costs_more(MANY_SPANS if most is None else most, a, b) else None

    @property
    def _most_of_rows(self) -> int:
        """How many spans are added up for exact rows: of few lanes 8 M take 2 s, of 2,000 lanes a million."""
        return MANY_SPANS if LANE_COST * len(self.tiles.lanes) > MANY_SPANS // 2 else 8 * MANY_SPANS

    def _coarse(self, blocks: BlockSums, range_: tuple[int, int] | None) -> dict[str, Any]:
        """What is drawn instead of a range, in seconds."""
        per_s = self.tiles.facts["clock"]["ticks_per_s"]
        return {"coarse": {"edges": [edge / per_s for edge in blocks.edges(range_)], "whole": range_ is None}}

    def heat(self, range_: tuple[int, int] | None = None, exact: bool = False) -> dict[str, Any]:
        """Processes and frames."""
        if not exact and (blocks := self._blocks(range_)):
            per_s = self.tiles.facts["clock"]["ticks_per_s"]
            return {"unit": self.unit, **blocks.heat(range_, per_s), **self._coarse(blocks, range_)}
        return self._of(
            ("device", "process", "frame"),
            range_,
            lambda note: {"cells": [], "note": note},
            lambda attribution: {"unit": self.unit, **answers.heat(attribution, self.looks())},
        )

    def _of(
        self,
        by: tuple[str, ...],
        range_: tuple[int, int] | None,
        without: Callable[[str], dict[str, Any]],
        shape: Callable[[Attribution], dict[str, Any]],
        device: str = "",
    ) -> dict[str, Any]:
        """An attribution in the shape a tab wants, or what the tab shows without one."""

        def make() -> dict[str, Any]:
            try:
                return shape(self.attribution(by, range_, quantity="time" if self.unit == "s" else "energy"))
            except NoDataError as error:
                return without(str(error))

        return dict(self._once((by, range_, device), make))

    @property
    def unit(self) -> str:
        """What the page shows: joules, or seconds where nothing was metered."""
        return "J" if self.tiles.facts["devices"] else "s"

    def seconds(self, range_: tuple[int, int] | None, by: str) -> dict[str, Any]:
        """The table of a recording without a meter: time and calls, from the tiles."""
        if by not in ("frame", "process"):
            raise OptionError("without a meter rows are by frame or process")
        return {"unit": "s", "devices": [], "problems": [], **answers.times(self.tiles, range_, by, self.looks())}

    def signal(self, number: int, a: int, b: int, width: int) -> bytes:
        """A signal as a track: mean, least and greatest of its readings on so many pixels; a counter as its rate."""
        signals = self.recording().signals
        if not 0 <= number < len(signals):
            raise KeyError(number)
        data = signal_track(signals[number], a, b, width, self.tiles.facts["clock"]["ticks_per_s"])
        header = {"from": a, "to": b, "bins": len(data)}
        return tiles.pack(header, [{"device": f"s{number}", "mode": "power", "data": data}])

    def perfetto(self, range_: tuple[int, int] | None) -> bytes:
        """A Perfetto trace of a range of time."""
        with tempfile.TemporaryDirectory(prefix="wattribute-") as folder:
            target = Path(folder) / "range.perfetto-trace"
            outputs.get("perfetto").write(self.attribution(("device", "frame"), range_), str(target))
            return target.read_bytes()

    def compare(self) -> dict[str, Any]:
        if self.other is None:
            return {"sides": None, "note": answers.NO_COMPARISON}
        other = self.other
        return dict(
            self._once("compare", lambda: answers.compare(self.table(), other.table(), [self.side(), other.side()]))
        )

    def side(self) -> dict[str, Any]:
        """One recording's side of the Compare tab."""
        known = self.tiles.facts
        return {
            "title": known["title"],
            "seconds": self.tiles.length / known["clock"]["ticks_per_s"],
            "measured_j": sum(book["measured_j"] for book in energy.addable(known["devices"])),
            "devices": known["devices"],
            "power": self.tiles.whole_power(256),
        }


def hosts_too(question: Question, known: Mapping[str, Any]) -> bool:
    """Whether the host's call stacks say more than the attribution shown: it is of kernels, by default."""
    return (
        not question.of
        and any(device["of"] == "kernels" for device in known["devices"])
        and any(lane["kind"] == "cpu" for lane in known["lanes"])
    )


def _has_grown(old: tiles.Tiles, new: tiles.Tiles) -> bool:
    """Whether a recording is the earlier one with more in it, and not another one in its place."""
    same = all(old.facts[name] == new.facts[name] for name in ("title", "clock"))
    return (
        same
        and new.length >= old.length
        and len(new.frames) >= len(old.frames)
        and all(map(str.__eq__, old.frames.names(), new.frames.names()))
        and new.lanes.keys() >= old.lanes.keys()
        and all(_continues(lane, new.lanes[location], old.length) for location, lane in old.lanes.items())
        and [book["key"] for book in new.facts["devices"]] == [book["key"] for book in old.facts["devices"]]
    )


def _continues(old: Lane, new: Lane, length: int) -> bool:
    """Whether a lane begins with the spans of the earlier one, but for those that were open when it ended."""
    if new.spans < old.spans:
        return False
    before, after = (lane.piece(0, min(64, old.spans))[0] for lane in (old, new))
    ended = before.end < length
    same = [getattr(before, name) == getattr(after, name) for name in ("start", "frame")]
    return all(column.all() for column in same) and bool((before.end == after.end)[ended].all())


def _ends(recording: Recording) -> list[str]:
    """What a recording still being made says about its missing end: no news while one watches."""
    return [problem.message for problem in recording.problems if problem.kind == "partial"]


def _int(query: Mapping[str, str], name: str) -> int:
    try:
        return int(float(query[name]))
    except (KeyError, ValueError, OverflowError):
        raise OptionError(f"{name} has to be a number") from None


def _words(query: Mapping[str, str], name: str) -> list[str]:
    return [part for part in query.get(name, "").split(",") if part]


def _ints(query: Mapping[str, str], name: str) -> list[int]:
    try:
        return [int(part) for part in query.get(name, "").split(",") if part]
    except ValueError:
        raise OptionError(f"{name} has to be a list of numbers") from None
