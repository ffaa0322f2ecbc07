"""What there is to say about a run: numbers first, then where the energy went, when, who used it, and how we know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import NoDataError
from ...model import Attribution, Recording
from .. import names, plot
from ..charts import ask
from ..kinds import KINDS, kind
from ..numbers import bounded, count, percent, seconds, si

if TYPE_CHECKING:
    from ...carbon import Emissions

_ROWS = 12
_PROBLEMS = 12


@dataclass(frozen=True)
class Picture:
    """A chart; ``title`` is what it says, ``light`` its Vega-Lite, ``dark`` draws it on a dark ground."""

    name: str
    title: str
    light: str
    dark: Callable[[], str]


@dataclass(frozen=True)
class Table:
    """Cells are plain text; ``right`` are the columns of numbers."""

    columns: list[str]
    rows: list[list[str]]
    right: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    """A heading with sentences, a picture, a table: whatever there is."""

    title: str
    sentences: list[str] = field(default_factory=list)
    picture: Picture | None = None
    table: Table | None = None


@dataclass(frozen=True)
class Story:
    """A report before it is a file."""

    title: str
    lead: str
    numbers: list[tuple[str, str]]  # (what, how much)
    sections: list[Section]


def story(source: Any, *, zone: str | None = None, **selection: Any) -> Story:
    """The story of a recording, or of what a path holds."""
    from ...engines import attribute

    recording = plot.read_source(source, selection)
    found = ask.check(attribute(recording, by=("device", "frame"), **selection))
    emissions = _emissions(found, zone)
    quiet = replace(found, problems=())  # told once, at the end, and not under every picture
    sections = [
        Section("Where the energy went", picture=_picture("books", quiet, plot.books)),
        Section("When", picture=_picture("power", quiet, plot.power)),
        _who(found),
        *_processes(quiet),
        *_paths(quiet),
        _sensors(found),
        _how(found, emissions),
        *_noticed(found),
    ]
    return Story(ask.run_name(recording), _lead(found), _numbers(found, emissions), sections)


def _picture(name: str, found: Attribution, draw: Callable[..., Any]) -> Picture:
    def spec(chart: Any) -> str:
        return str(chart.to_json(indent=None))

    light = draw(found, theme="light")
    return Picture(name, " ".join(light.title.text), spec(light), lambda: spec(draw(found, theme="dark")))


def _emissions(found: Attribution, zone: str | None) -> Emissions | None:
    from ...carbon import emissions

    try:
        return emissions(found, zone=zone)
    except NoDataError:
        return None


def _seconds(found: Attribution) -> float:
    first, last = ask.window(found)
    return float(found.recording.clock.seconds(last - first))


def _lead(found: Attribution) -> str:
    """Two or three sentences: how much, who, how much of it for nothing."""
    measured, idle = ask.total(found, "measured"), ask.total(found, "idle")
    devices = len(ask.summed(found))
    said = f"{devices} device{'s' if devices != 1 else ''} used {si(measured, 'J')} in {seconds(_seconds(found))}."
    energies = ask.by_frame(found)
    if energies and max(energies.values()) > 0:
        most = max(energies, key=lambda name: energies[name])
        label = names.shorten(names.plain(most), 60)
        said += f" {label} used most of it: {si(energies[most], 'J')}, {percent(energies[most], measured)}."
    return f"{said} {percent(idle, measured)} was measured while nobody used the device."


def _numbers(found: Attribution, emissions: Emissions | None) -> list[tuple[str, str]]:
    measured, idle, long = ask.total(found, "measured"), ask.total(found, "idle"), _seconds(found)
    numbers = [
        (ask.known(found), si(measured, "J")),
        ("in spans", f"{si(measured - idle, 'J')} ({percent(measured - idle, measured)})"),
        ("idle", f"{si(idle, 'J')} ({percent(idle, measured)})"),
        ("time", seconds(long)),
        ("mean power", si(measured / long, "W") if long else "–"),
    ]
    if emissions is not None:
        numbers.append(
            ("emissions", f"{si(emissions.total_g, 'g')} CO₂e" + (" (world average)" if emissions.assumed else ""))
        )
    return numbers


def _who(found: Attribution) -> Section:
    """The frames with most energy, with bounds."""
    rows = ask.ask(found, ("frame", "paradigm", "role")).rows
    measured = ask.total(found, "measured")
    labels = names.labels(rows.get_column("frame").to_list(), 56)
    table = []
    for row in rows.head(_ROWS).to_dicts():
        what = KINDS[kind(row["paradigm"], row["role"], row["frame"])][0]
        energy = bounded(row["self_j"], row.get("self_low_j"), row.get("self_high_j"))
        table.append([labels[row["frame"]], what, energy, percent(row["self_j"], measured),
                      seconds(row["self_ns"] / 1e9), si(row["power_w"], "W"), count(row["calls"])])  # fmt: skip
    rest = rows.slice(_ROWS)
    said = []
    if len(rest):
        rest_j = float(rest.get_column("self_j").sum())
        said = [f"{len(rest)} more frames used {si(rest_j, 'J')} ({percent(rest_j, measured)})."]
    columns = ["frame", "kind of work", "energy (self)", "of measured", "time (self)", "power", "calls"]
    return Section("Who used it", said, table=Table(columns, table, frozenset(range(2, 7))))


def _processes(found: Attribution) -> list[Section]:
    table = ask.ask(found, ("process", "frame"))
    if table.rows.get_column("process").n_unique() < 2:
        return []
    return [Section("By process", picture=_picture("heatmap", table, plot.heatmap))]


def _paths(found: Attribution) -> list[Section]:
    if not ask.has_stacks(found.recording):
        return []
    return [Section("Call paths", picture=_picture("flame", found, plot.flame))]


def _sensors(found: Attribution) -> Section:
    """Which sensor spoke for which device, how often, and how finely."""
    rows = []
    signals = {(signal.host, signal.name): signal for signal in found.recording.signals}
    for device in found.devices.to_dicts():
        signal = signals.get((device["host"], device["signal"]))
        readings = len(signal) if signal is not None else 0
        spacing = "–"
        if signal is not None and readings > 1:
            ticks = int(signal.times.max() - signal.times.min()) / (readings - 1)
            spacing = si(found.recording.clock.seconds(ticks), "s")
        coverage = "–" if device["coverage"] is None else f"{100 * device['coverage']:.0f} %"
        rows.append([
            ask.device_label(found, device["host"], device["device"]), names.clean(device["signal"]),
            "model" if device["estimated"] else signal.kind if signal is not None else "–", count(readings), spacing,
            si(device.get("resolution"), "J"), coverage, si(device["measured_j"], "J"),
        ])  # fmt: skip
    columns = ["device", "sensor", "kind", "readings", "every", "resolves", "covers spans", "measured"]
    return Section("Sensors", table=Table(columns, rows, frozenset(range(3, 8))))


def _how(found: Attribution, emissions: Emissions | None) -> Section:
    shares = {
        "even": "Users of a device that are active at the same time share its energy evenly.",
        "process": "Processes that are active at the same time share a device evenly, and so do the users of each.",
        "load": "Users that are active at the same time share a device by their load.",
        "full": "Each active user is given all of the energy: it is counted more than once on purpose.",
    }
    methods = {
        "linear": "Energy is taken to be used evenly between two readings, and a span gets what was used while it ran.",
        "window": "All energy between two readings goes to what ran between them, by busy time (biased if short).",
        "solve": "Each frame's power is fitted to how the counter rose (experimental), and ± are 95 % intervals.",
    }
    of = ", ".join(sorted(set(found.devices.get_column("of").to_list())))
    said = [f"Energy of {of}. {methods.get(found.method, '')} {shares.get(found.share, '')} Attributed and idle add up "
            "to what was measured, for every device."]  # fmt: skip
    if found.method != "solve":
        said.append("Bounds (±) hold whatever the power between two readings was, given these shares.")
    reasons = sorted({row["reason"] for row in found.devices.to_dicts() if row.get("reason")})
    if reasons:
        said.append(f"Who uses which device: {names.clean('; '.join(reasons[:3]))}.")
    if emissions is not None:
        place = f"{emissions.name} ({emissions.zone})"
        grams = f"Emissions: {emissions.g_per_kwh:.3g} g/kWh, {place}; {names.clean('; '.join(emissions.sources))}."
        if emissions.assumed:
            low, high = si(emissions.low_g, "g"), si(emissions.high_g, "g")
            grams += f" No zone was given; by country it would be {low} to {high}."
        said.append(grams)
    said.append(f"{_ran(found.recording)} Made by wattribute {__version__}.".strip())
    return Section("How we know", said)


def _ran(recording: Recording) -> str:
    hosts = [host for host in recording.hosts() if host]
    where = f"{len(hosts)} hosts" if len(hosts) > 3 else ", ".join(hosts)
    command = recording.metadata.get("command")
    words = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command or "")
    said = f"Ran on {names.clean(where)}." if where else ""
    return f"{said} Command: {names.shorten(names.clean(words), 200)}." if words else said


def _noticed(found: Attribution) -> list[Section]:
    told = [names.clean(problem.message) for problem in found.problems]
    if not told:
        return []
    more = [f"… and {len(told) - _PROBLEMS} more."] if len(told) > _PROBLEMS else []
    return [Section("Noticed", [*told[:_PROBLEMS], *more])]
