"""Charts of rolled-up rows: heatmap, distribution, books, and many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import OptionError
from ...model import Attribution
from .. import theme as themes
from ..numbers import percent, seconds, si
from . import ask
from . import books as bookish
from . import distribution as spread
from . import heatmap as heat
from . import runs as many
from .canvas import finish, legend
from .lanes import exact, per_call

if TYPE_CHECKING:
    from ...carbon import Emissions

VALUES = ("energy", "power")


def _value(value: str) -> str:
    if value not in VALUES:
        raise OptionError.unknown("value to show", value, VALUES)
    return value


def heatmap(attribution: Attribution, *, value: str = "energy", theme: str = "light", top: int = 24) -> Any:
    """Frames × processes: self energy, or mean power while they ran."""
    look = themes.theme(theme)
    _value(value)
    found = ask.ask(attribution, ("process", "frame"))
    whole = heat_table(found)
    shown = heat.reduce(whole, top)
    merged = []
    if shown.merged_frames:
        merged.append(f"{shown.merged_frames} frames with less energy are one row, “other”.")
    if shown.merged_processes:
        merged.append(f"A column adds up {shown.merged_processes} processes.")
    sums = dict(zip(whole.frames, whole.energy_j.sum(axis=1).tolist(), strict=True))
    return finish(
        heat.heatmap(shown, look, value),
        look,
        title=ask.finding(found, sums),
        subtitle=ask.subtitle(found),
        caption=ask.caption(found, " ".join(merged)),
        spacing=6,
    )


def heat_table(found: Attribution) -> heat.Table:
    """Rows by process and frame as a matrix; processes in the order of the recording, idle ones included."""
    rows = found.rows.select("process", "frame", "self_j", "power_w").rows()
    frames = list(dict.fromkeys(row[1] for row in rows))
    met = {row[0] for row in rows}
    processes = [name for name in _process_order(found) if name in met]
    processes += [name for name in dict.fromkeys(row[0] for row in rows) if name not in set(processes)]
    energy, covered = np.zeros((len(frames), len(processes))), np.zeros((len(frames), len(processes)))
    at_frame, at_process = ({name: i for i, name in enumerate(axis)} for axis in (frames, processes))
    for process, frame, joules, watts in rows:
        place = at_frame[frame], at_process[process]
        energy[place] += joules
        covered[place] += joules / watts if watts else 0.0
    kinds = ask.frame_kinds(found.recording)
    return heat.Table(frames, processes, [kinds.get(name, "other") for name in frames], energy, covered)


def _process_order(found: Attribution) -> list[str]:
    from ...attribution.labels import process_labels

    return process_labels(found.recording)


def distribution(attribution: Attribution, *, value: str = "energy", theme: str = "light", top: int = 8) -> Any:
    """How energy (self) or power spreads over the calls of each frame."""
    look = themes.theme(theme)
    found = ask.check(attribution)
    histograms = histograms_of(found, _value(value))
    shown = spread.reduce(histograms, top)
    calls = sum(float(one.calls.sum()) + one.none for one in histograms.values())
    said = f"{calls:,.0f} calls. Solid line: median; dotted: quartiles (to 1.2 %)."
    return finish(
        spread.distribution(shown, look, "J" if value == "energy" else "W"),
        look,
        title=_spread_title(shown, value),
        subtitle=ask.subtitle(found),
        caption=ask.caption(found, said),
        spacing=26,
    )


def histograms_of(found: Attribution, value: str) -> dict[str, spread.Histogram]:
    """A histogram per frame name, filled location by location."""
    users, clock = ask.Users(found), found.recording.clock
    kinds, frames = ask.frame_kinds(found.recording), found.recording.frames.name
    out: dict[str, spread.Histogram] = {}
    for of, location in users:
        calls = per_call(exact(users.spans(of, location), users.received(of, location)))
        long = clock.seconds(calls.busy.astype(np.float64))
        power = np.divide(calls.total_j, long, out=np.zeros(len(calls)), where=long > 0)
        for frame in np.unique(calls.frame):
            mine = calls.frame == frame
            one = out.setdefault(frames[frame], spread.Histogram(kinds.get(frames[frame], "other")))
            values = calls.self_j if value == "energy" else power
            one.add(values[mine], calls.self_j[mine], calls.calls[mine].astype(np.float64))
    return out


def _spread_title(shown: dict[str, spread.Histogram], value: str) -> str:
    from .. import names

    filled = [(name, one) for name, one in shown.items() if one.calls.sum()]
    if not filled:
        return "No call received any energy"
    name, one = filled[0]
    unit = "J" if value == "energy" else "W"
    label = names.shorten(names.plain(name), 60)
    if one.calls.sum() < 4:
        return f"{label}: {si(one.most, unit)} in {'its call' if one.calls.sum() == 1 else 'its largest call'}"
    return f"{label}: half of the calls used less than {si(one.quantile(0.5), unit)}"


def books(attribution: Attribution, *, theme: str = "light", top: int = 32) -> Any:
    """Per device: measured = attributed (by kind of work) + idle."""
    look = themes.theme(theme)
    found = ask.check(attribution)
    every = [bookish.Book(*row) for row in ask.books(found)]
    shown = sorted(every, key=lambda book: -book.measured_j)[:top] if len(every) > top else every
    rest = [book for book in every if book not in shown]
    if rest:
        names = {kind for book in rest for kind in book.by_kind}
        by_kind = {kind: sum(book.by_kind.get(kind, 0.0) for book in rest) for kind in names}
        shown.append(bookish.Book(f"other ({len(rest)} devices)", by_kind, sum(book.idle_j for book in rest)))
    measured, idle = ask.total(found, "measured"), ask.total(found, "idle")
    kinds = [kind for book in every for kind in book.by_kind] + ["idle"]
    return finish(
        [legend(kinds, look), bookish.books(shown, look)],
        look,
        title=f"{si(measured, 'J')} {ask.known(found)}, {percent(measured - idle, measured)} of it in spans",
        subtitle=ask.subtitle(found),
        caption=ask.caption(found),
    )


def runs(
    attributions: Sequence[Attribution], emissions: Sequence[Emissions] | None = None, *, theme: str = "light"
) -> Any:
    """Energy against time of many runs; with five or more also how they, and their emissions if given, spread."""
    look = themes.theme(theme)
    if not attributions:
        raise OptionError("a chart of runs needs at least one recording")
    points = [run_of(attribution) for attribution in attributions]
    grams = [None] * len(points) if emissions is None else [one.co2e_g for one in emissions]
    points = [
        many.Run(label, point.duration_s, point.energy_j, co2e_g)
        for label, point, co2e_g in zip(_labels(points), points, grams, strict=True)
    ]
    least = min(points, key=lambda run: run.energy_j)
    energies = np.array([run.energy_j for run in points])
    parts = [many.scatter(points, look), *(many.spread(points, look) if len(points) >= 5 else [])]
    low, mean, high = (si(float(value), "J") for value in (energies.min(), energies.mean(), energies.max()))
    said = f"{len(points)} runs, mean {mean}, from {low} to {high}." if len(points) > 1 else f"One run of {mean}."
    said += " On a dotted line power is the same."
    if len(points) >= 5:
        said += " Below: solid median, dotted quartiles, dashed mean."
    if emissions:
        said += f" CO2e at {', '.join(dict.fromkeys(f'{one.g_per_kwh:.3g} g/kWh ({one.zone})' for one in emissions))}."
    least_words = "" if len(points) == 1 else "least energy, "
    title = f"{least.label}: {least_words}{si(least.energy_j, 'J')} in {seconds(least.duration_s)}"
    return finish(parts, look, title=title, subtitle="measured energy against time", caption=[said], spacing=30)


def run_of(attribution: Attribution) -> many.Run:
    """One run as a point: all it measured, from its start to its end."""
    ask.check(attribution)
    first, last = ask.window(attribution)
    duration = attribution.recording.clock.seconds(last - first)
    return many.Run(ask.run_name(attribution.recording), duration, ask.metered_j(attribution))


def _labels(points: Sequence[many.Run]) -> list[str]:
    """Names of runs, numbered where one repeats."""
    names = [run.label for run in points]
    return [name if names.count(name) == 1 else f"{name} #{i + 1}" for i, name in enumerate(names)]
