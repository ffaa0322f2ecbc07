"""A run on one screen: what it took and cost, per device, with what is estimated and why numbers may be off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..comparison.repeats import Repeats
from ..model import DeviceSummary, Interval, Summary
from .fitted_table import FittedTable
from .names import clean
from .numbers import bill_words, bounded, count, lower_limit, seconds, si

_PLACES = 5  # more recordings than this are named by the first and the last


def run_screen(summary: Summary, folder: str = "", per: str | None = None) -> RenderableType:
    """The summary of one run; ``per`` is the unit of work to show, by default all that were counted."""
    parts: list[RenderableType] = [_headline(summary)]
    parts += [Text(line)] if (line := bill_line(summary)) else []
    parts.append(_devices(summary))
    parts += [_per_unit(summary, unit) for unit in ([per] if per else summary.counts)]
    if summary.share_rule:
        parts.append(Text(f"shares: {summary.share_rule}"))
    if carbon := summary.carbon:
        parts.append(_carbon(summary, carbon))
    for unseen in summary.unseen:
        parts.append(Text(f"! not metered: {unseen['reason']}; run: {unseen['fix']}", style="yellow"))
    if _costly(summary):
        part = (summary.sampler_cpu_s or 0.0) / summary.duration_s
        parts.append(Text(f"sampling itself took {part:.1%} of a core; a longer --interval costs less"))
    notes = [
        *summary.notes,
        *(carbon["problems"] if carbon else ()),
        *(note for device in summary.devices for note in device.notes),
    ]
    parts += [Text(f"! {note}", style="yellow") for note in dict.fromkeys(notes)]
    if folder:
        parts.append(Text(f"saved: {folder}", style="dim"))
    return Group(*parts)


def bill_line(summary: Summary) -> str:
    """ "301 J on this machine: 180 J this command, 45 J other processes, 76 J static", as far as it is known."""
    if summary.others_j is None and summary.static_j is None:
        return ""
    words = {"this command": summary.command_j, "other processes": summary.others_j, "static": summary.static_j}
    known = {name: joules for name, joules in words.items() if joules is not None}
    unknown = "" if summary.static_j is not None else "; static is not known: see wattribute baseline"
    return bill_words(sum(known.values()), known, "estimated" if summary.estimated else "measured") + unknown


def _costly(summary: Summary) -> bool:
    """Whether the sampler took more than a hundredth of a core, over a run long enough to tell."""
    took_s, duration_s = float(summary.sampler_cpu_s or 0.0), float(summary.duration_s)
    return duration_s > 1 and took_s > 0.01 * duration_s


def _headline(summary: Summary) -> Text:
    energy = _energy(summary)
    if summary.energy_j is None:
        energy = f"energy {_unknown(summary)}" if summary.devices else "no energy: nothing was metered here"
    text = Text(energy, style="bold")
    if summary.estimated:
        text.append(" estimated", style="yellow")
    text.append(f" in {seconds(summary.duration_s)}, exit code {summary.exit_code}", style="")
    if summary.score is not None:
        text.append(f", score {_score(summary.score)}")
    if summary.mean_w is not None:
        text.append(f", mean {si(summary.mean_w, 'W')}" + (" estimated" if summary.estimated else ""))
    return text


def _energy(used: Summary | DeviceSummary) -> str:
    return _limited(used.partial, used.energy_j, used.low_j, used.high_j)


def _limited(partial: bool, value: float | None, low: float | None, high: float | None, unit: str = "J") -> str:
    """A value with its range; what was not seen whole has a lower limit only."""
    return lower_limit(value, low, unit) if partial and value is not None else bounded(value, low, high, unit)


def _unknown(used: Summary | DeviceSummary) -> str:
    """Why there is no energy: the sensor was not read during the run, or did not move."""
    return "not known" if used.partial else "below resolution"


def _per_unit(summary: Summary, unit: str) -> Text:
    one = summary.per(unit)
    if one is None:
        known = ", ".join(summary.counts) or "nothing"
        return Text(f"! the program counted no {clean(unit)} (it counted {known}): nothing to divide by", "yellow")
    mark = " estimated" if summary.estimated else ""
    energy = _limited(summary.partial, one.energy_j, one.low_j, one.high_j)
    words = f"per {clean(unit)}: {energy}{mark}, {si(one.duration_s, 's')}"
    if one.co2e_g is not None:
        words += f", CO2e {_limited(summary.partial, one.co2e_g, one.co2e_low_g, one.co2e_high_g, 'g')}"
    return Text(f"{words}  ({count(one.count)} counted)")


def _score(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _devices(summary: Summary) -> FittedTable:
    table = FittedTable(drop=("use", "peak"))
    table.add_column("device", no_wrap=True)
    for name in ("energy", "mean", "peak", "use"):
        table.add_column(name, justify="right")
    table.add_column("")
    for device in summary.devices:
        estimated = " est." if device.estimated else ""
        joules = device.energy_j
        energy = _unknown(device) if joules is None else _energy(device) + estimated
        use = device.gauges.get("utilisation_percent")
        powers = (
            si(getattr(device, key), "W") + (estimated if getattr(device, key) is not None else "")
            for key in ("mean_w", "peak_w")
        )
        cells = [device.device, energy, *powers, "–" if use is None else f"{use:.0f} %", _remark(device)]
        table.add_row(*(Text(cell) for cell in cells), style="dim" if device.apart else "")
    return table


def _remark(device: DeviceSummary) -> str:
    words = ["estimated" if device.estimated else "measured" if device.energy_j is not None else ""]
    words += device.causes
    if device.apart:
        words.append(f"not counted: {device.apart}")
    return "; ".join(filter(None, words))


def _carbon(summary: Summary, carbon: Mapping[str, Any]) -> Text:
    words = f"CO2e {_limited(summary.partial, summary.co2e_g, *summary.co2e_range_g, 'g')}"
    words += f"{' estimated' if summary.estimated else ''} at {carbon['g_per_kwh']:.4g} g/kWh, {carbon['name']}"
    words += ", assumed: name yours with --zone" if carbon["assumed"] else ""
    return Text(words + (" (fallback)" if carbon["fallback"] else ""))


def repeats_screen(repeats: Repeats, saved: Sequence[str], per: str | None = None) -> RenderableType:
    """Several runs: one row each, then mean and confidence interval; ``saved`` are the folders of the recordings."""
    table = FittedTable(drop=("exit", "CO2e"))
    for name in ("run", "time", "energy", "mean", "CO2e", "exit"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, run in enumerate(repeats.runs, 1):
        mark = " est." if run.estimated else ""
        table.add_row(
            str(number), seconds(run.duration_s), si(run.energy_j, "J") + mark, si(run.mean_w, "W") + mark,
            si(run.co2e_g, "g") + mark, str(run.exit_code),
        )  # fmt: skip
    statistics = repeats.statistics
    units = {"duration_s": "s", "energy_j": "J", "mean_w": "W", "co2e_g": "g"}
    cells = [_interval(statistics[key], unit) if key in statistics else "–" for key, unit in units.items()]
    mark = ", est." if any(run.estimated for run in repeats.runs) else ""
    table.add_section()
    table.add_row(f"mean{mark}", *cells, "", style="bold")
    places = saved if len(saved) <= _PLACES else [saved[0], "…", saved[-1]]
    where = f"; saved: {', '.join(places)}" if places else ""
    lines = [_repeats_per_unit(repeats, unit) for unit in ([per] if per else repeats.units)]
    return Group(table, *lines, Text(f"± is the 95 % confidence interval of the mean{where}"))


def _repeats_per_unit(repeats: Repeats, unit: str) -> Text:
    mean = repeats.per(unit)
    if not mean:
        return Text(f"! no run counted {clean(unit)}: nothing to divide by", "yellow")
    units = {"energy_j": ("", "J"), "duration_s": ("", "s"), "co2e_g": ("CO2e ", "g")}
    cells = [f"{word}{_interval(mean[name], symbol)}" for name, (word, symbol) in units.items() if name in mean]
    return Text(f"per {clean(unit)}: {', '.join(cells)}  ({count(mean['count'].mean)} counted per run)")


def _interval(statistic: Interval, unit: str) -> str:
    return bounded(statistic.mean, statistic.ci95_low, statistic.ci95_high, unit)
