"""What there is to say about a run: numbers first, then where the energy went, when, who used it, and how we know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import NoDataError
from ...model import Attribution, Problem, Recording
from ...model.constants import OTHERS, STATIC
from ...model.coverage import is_partial
from .. import charts, names
from ..charts.captions import by_frame, device_label, run_name
from ..charts.curves import attributed_ticks
from ..charts.tables import has_stacks, one_view, regrouped
from ..charts.totals import known, summed, total
from ..description import missing_events
from ..kinds import KINDS, kind
from ..numbers import (
    amount,
    at_least,
    bill_words,
    bounded,
    count,
    measured_range,
    own_amount,
    percent,
    row_range,
    seconds,
    si,
    together,
)
from ..per_unit import row_per_unit, whole_per_unit
from ..plot import read_source

if TYPE_CHECKING:
    from ...carbon import Emissions

_ROWS = 12
_PROBLEMS = 12
_OTHER_VIEW = (
    "This view gives the same energy to the host threads that ran or waited meanwhile, not to kernels; "
    "the two views are never added."
)


@dataclass(frozen=True)
class Picture:
    """A chart; ``title`` is what it says, ``light`` its Vega-Lite, ``dark`` draws it on a dark ground."""

    name: str
    title: str
    light: str
    dark: Callable[[], str]


@dataclass(frozen=True)
class StoryTable:
    """Cells are plain text; ``right`` are the columns of numbers."""

    columns: list[str]
    rows: list[list[str]]
    right: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    """A heading with any of: sentences, a picture, a table."""

    title: str
    sentences: list[str] = field(default_factory=list)
    picture: Picture | None = None
    table: StoryTable | None = None


@dataclass(frozen=True)
class Story:
    """A report before it is a file."""

    title: str
    lead: str
    numbers: list[tuple[str, str]]  # (what, how much)
    sections: list[Section]
    missing: str = ""  # what could not be read: it stands at the top, because every number is without it


def story(source: Any, *, zone: str | None = None, **selection: Any) -> Story:
    """The story of a recording, or of what a path holds."""
    from ...engines import attribute

    recording = read_source(source, selection)
    view = one_view(attribute(recording, by=("device", "frame"), **selection))
    view, emissions = with_emissions_of(view, zone)
    quiet = replace(view, problems=())  # listed once, at the end, and not under every picture
    sections = [
        Section(f"Where the {'time' if view.unit == 's' else 'energy'} went", picture=picture("books", quiet)),
        *_bill(quiet),
        Section("When", picture=picture("timeline" if view.unit == "s" else "power", quiet)),
        _who(view, zone),
        *_processes(quiet),
        *_paths(quiet),
        *([_sensors(view)] if view.unit == "J" else []),
        method(view, emissions),
        *noticed(view.problems),
    ]
    lost = missing_events(recording)
    return Story(run_name(recording), _lead(view), numbers_of(view, emissions), sections, lost)


def picture(chart: str, attribution: Attribution, name: str = "") -> Picture:
    """A chart by its name, drawn from an attribution, or from its recording alone; ``name`` is its file's."""
    known = charts.get(chart)

    def draw(attribution: Attribution, theme: str) -> Any:
        try:
            return known(attribution, theme=theme)
        except NoDataError as error:
            if known.fallback is None:
                raise
            metric = attribution.question.metric
            return known.fallback(attribution.recording, metric=metric, because=f"{error}.", theme=theme)

    def spec(chart: Any) -> str:
        return str(chart.to_json(indent=None))

    light = draw(attribution, theme="light")
    title = " ".join(light.title.text)
    return Picture(name or chart, title, spec(light), lambda: spec(draw(attribution, theme="dark")))


def with_emissions_of(attribution: Attribution, zone: str | None) -> tuple[Attribution, Emissions | None]:
    """The emissions, and the attribution with grams where rows are divided by a unit of work."""
    from ...carbon import emissions, with_emissions

    try:
        if attribution.question.per is not None and attribution.unit == "J":
            return with_emissions(attribution, zone=zone)
        return attribution, emissions(attribution, zone=zone)
    except NoDataError:
        return attribution, None


def _seconds(attribution: Attribution) -> float:
    first, last = attributed_ticks(attribution)
    return float(attribution.recording.clock.seconds(last - first))


def _lead(attribution: Attribution) -> str:
    """Two or three sentences: how much, who, how much of it for nothing."""
    measured, idle = total(attribution, "measured"), total(attribution, "idle")
    devices, duration = len(summed(attribution)), seconds(_seconds(attribution))
    if attribution.unit == "s":
        users = sum(device["users"] for device in summed(attribution))
        text = f"{users} threads and streams, {duration}; no energy was metered, so this is about time."
    else:
        text = f"{devices} device{'s' if devices != 1 else ''} used {si(measured, 'J')} in {duration}."
    energies = by_frame(attribution)
    if shares := _shares(attribution)[1]:
        text += f" {amount(shares['this command'], attribution.unit)} of it went to this command."
    elif energies and max(energies.values()) > 0:
        most = max(energies, key=lambda name: energies[name])
        label = names.shorten(names.plain(most), 60)
        energy = amount(energies[most], attribution.unit)
        text += f" {label} used more than any other: {energy}, {percent(energies[most], measured)} of it."
    if attribution.unit == "s":
        return f"{text} {percent(idle, measured)} of their time was outside of any span."
    return f"{text} {percent(idle, measured)} fell into time in which nobody used the device." if idle else text


def numbers_of(attribution: Attribution, emissions: Emissions | None) -> list[tuple[str, str]]:
    """The numbers at the head of a report: the whole with its range, its parts, time, power, emissions."""
    measured, idle, long = total(attribution, "measured"), total(attribution, "idle"), _seconds(attribution)
    numbers = [
        (known(attribution), at_least(measured, *measured_range(summed(attribution)), attribution.unit)),
        ("in spans", f"{amount(measured - idle, attribution.unit)} ({percent(measured - idle, measured)})"),
        ("idle", f"{amount(idle, attribution.unit)} ({percent(idle, measured)})"),
        ("time", seconds(long)),
    ]
    if words := whole_per_unit(attribution):
        numbers.append((f"per {names.clean(str(attribution.question.per))}", words))
    if attribution.unit == "J":
        numbers.append(("mean power", si(_mean_w(attribution, long), "W") if long else "–"))
    if emissions is not None:
        part = "" if abs(emissions.energy_j - measured) <= 0.001 * measured else f" of {si(emissions.energy_j, 'J')}"
        place = " (world average)" if emissions.assumed else ""
        numbers.append(("emissions", f"{si(emissions.total_g, 'g')} CO₂e{part}{place}"))
    return numbers


def _mean_w(attribution: Attribution, long: float) -> float:
    """The sum of the devices' mean powers, each over the time that it was metered, as ``run`` prints it."""
    metered = [(float(device["measured_j"]), device["metered"]) for device in summed(attribution)]
    return sum(joules / (long * (part if part and is_partial(part) else 1.0)) for joules, part in metered)


def _who(attribution: Attribution, zone: str | None) -> Section:
    """The frames with most energy, with bounds."""
    frames = regrouped(attribution, ("frame", "paradigm", "role"))
    rows = (frames if frames.question.per is None else with_emissions_of(frames, zone)[0]).rows
    measured = total(attribution, "measured")
    labels = names.labels(rows.get_column("frame").to_list(), 56)
    table, devices = [], together(summed(attribution))
    for row in rows.head(_ROWS).to_dicts():
        what = KINDS[kind(row["paradigm"], row["role"], row["frame"], row["of"])][0]
        energy, share = own_amount(row, "j", attribution.unit, measured, devices)
        long = seconds(row["self_ns"] / 1e9) if row["self_ns"] else "–"
        cells = [labels[row["frame"]], what, energy, share, long, si(row["power_w"], "W"), count(row["calls"])]
        table.append(cells)
    rest = rows.slice(_ROWS)
    notes = []
    if len(rest):
        rest_j = float(rest.get_column("self_j").sum())
        notes = [f"{len(rest)} more frames used {amount(rest_j, attribution.unit)} ({percent(rest_j, measured)})."]
    columns = ["frame", "kind of work", "energy (self)", "of measured", "time (self)", "power", "calls"]
    if attribution.question.per is not None:
        per = names.clean(attribution.question.per)
        amounts = {"j": ("total", attribution.unit), "co2e_g": ("CO₂e", "g")}
        amounts = {unit: words for unit, words in amounts.items() if f"{unit}_per_unit" in rows.columns}
        columns += [per, *(f"{what} per {per}" for what, _ in amounts.values()), f"time per {per}"]
        for line, row in zip(table, rows.head(_ROWS).to_dicts(), strict=True):
            line.append(count(row["count"]) if row["count"] else "–")
            line += [row_per_unit(row, devices, unit, symbol) for unit, (_, symbol) in amounts.items()]
            line.append(si(row["s_per_unit"], "s"))
    if attribution.unit == "s":  # which the energy's column shows already
        columns[2] = "time (self)"
        columns, *table = ([*line[:4], line[6]] for line in (columns, *table))
    return Section("Who used it", notes, table=StoryTable(columns, table, frozenset(range(2, len(columns)))))


def _shares(attribution: Attribution) -> tuple[Attribution, dict[str, float]]:
    """What went to the command, other processes and static, and its attribution; nothing where they are one."""
    from ...engines import scope_fields

    table = regrouped(attribution, ("device", "frame"), **scope_fields(attribution.recording))
    parts = by_frame(table)
    apart = {name: parts.pop(name) for name in (OTHERS, STATIC) if name in parts}
    return table, {"this command": sum(parts.values()), **apart} if apart else {}


def _bill(attribution: Attribution) -> list[Section]:
    """The section on the command, other processes and static energy; none where they are not known apart."""
    table, shown = _shares(attribution)
    if not shown:
        return []
    sentence = bill_words(total(table, "measured"), shown, known(table), table.unit)
    return [Section("Whose it was", [f"{sentence}."], picture("bill", attribution))]


def _processes(attribution: Attribution) -> list[Section]:
    table = regrouped(attribution, ("process", "frame"))
    if table.rows.get_column("process").n_unique() < 2:
        return []
    return [Section("By process", picture=picture("heatmap", table))]


def _paths(attribution: Attribution) -> list[Section]:
    if not has_stacks(attribution.recording):
        return []
    views = {device["of"] for device in summed(attribution)}
    other = "" if attribution.unit == "s" or attribution.question.of or views == {"host"} else _OTHER_VIEW
    return [Section("Call paths", [other] if other else [], picture=picture("flame", attribution))]


def _sensors(attribution: Attribution) -> Section:
    """Which sensor spoke for which device, how often, and how finely."""
    rows = []
    recorded = attribution.recording.signals
    by_name = {(signal.host, signal.name): signal for signal in recorded}
    of_device = {(signal.host, signal.device, signal.name): signal for signal in recorded}
    for device in attribution.devices.to_dicts():
        named = (device["host"], device["signal"])
        signal = of_device.get((device["host"], device["device"], device["signal"])) or by_name.get(named)
        readings = len(signal) if signal is not None else 0
        spacing = "–"
        if signal is not None and readings > 1:
            ticks = int(signal.times.max() - signal.times.min()) / (readings - 1)
            spacing = si(attribution.recording.clock.seconds(ticks), "s")
        coverage = "–" if device["coverage"] is None else f"{100 * device['coverage']:.0f} %"
        rows.append([
            device_label(attribution, device["host"], device["device"]), names.clean(device["signal"]),
            "model" if device["estimated"] else signal.kind if signal is not None else "–", count(readings), spacing,
            si(device.get("resolution"), "J"), coverage,
            at_least(device["measured_j"], *row_range(device, device, which="measured")),
        ])  # fmt: skip
    columns = ["device", "sensor", "kind", "readings", "every", "resolves", "covers spans", "measured"]
    return Section("Sensors", table=StoryTable(columns, rows, frozenset(range(3, 8))))


def method(attribution: Attribution, emissions: Emissions | None) -> Section:
    """The section on the rules behind the numbers."""
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
    if attribution.unit == "s":
        sentences = ["Every thread and every stream has its own time: in spans, and idle outside of them."]
        return Section(
            "How we know", [*sentences, f"{_ran(attribution.recording)} Made by wattribute {__version__}.".strip()]
        )
    of = ", ".join(sorted({device["of"] for device in summed(attribution)}))
    rules = f"{methods.get(attribution.question.method, '')} {shares.get(attribution.question.share or '', '')}"
    sentences = [f"Energy of {of}. {rules} Attributed and idle add up to what was measured, for every device."]
    if attribution.question.method != "solve":
        sentences.append("Bounds (±) hold whatever the power between two readings was, given these shares.")
    reasons = sorted({row["reason"] for row in attribution.devices.to_dicts() if row.get("reason")})
    if reasons:
        sentences.append(f"Who uses which device: {names.clean('; '.join(reasons[:3]))}.")
    if emissions is not None:
        place = f"{emissions.name} ({emissions.zone})"
        grams = f"Emissions: {emissions.g_per_kwh:.3g} g/kWh, {place}; {names.clean('; '.join(emissions.sources))}."
        if None not in (emissions.energy_low_j, emissions.energy_high_j):
            grams_range = bounded(emissions.co2e_g, *emissions.range_g, "g")
            grams += f" With the range of the energy{' and of countries' * emissions.assumed}: {grams_range}."
        if emissions.assumed:
            low, high = si(emissions.low_g, "g"), si(emissions.high_g, "g")
            grams += f" No zone was given; by country it would be {low} to {high}."
        sentences.append(grams)
    sentences.append(f"{_ran(attribution.recording)} Made by wattribute {__version__}.".strip())
    return Section("How we know", sentences)


def _ran(recording: Recording) -> str:
    hosts = [host for host in recording.hosts() if host]
    where = f"{len(hosts)} hosts" if len(hosts) > 3 else ", ".join(hosts)
    command = recording.metadata.get("command")
    words = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command or "")
    text = f"Ran on {names.clean(where)}." if where else ""
    return f"{text} Command: {names.shorten(names.clean(words), 200)}." if words else text


def noticed(problems: Sequence[Problem]) -> list[Section]:
    """The section of problems, the first of them if there are many; none without problems."""
    messages = [names.clean(problem.message) for problem in problems]
    more = [f"… and {len(messages) - _PROBLEMS} more."] if len(messages) > _PROBLEMS else []
    return [Section("Noticed", [*messages[:_PROBLEMS], *more])] if messages else []
