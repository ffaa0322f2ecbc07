"""A run on one screen: what it took and cost, per device, with what is estimated and why numbers may be off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .numbers import bounded, seconds, si

_PLACES = 5  # more recordings than this are named by the first and the last


def run_screen(summary: Mapping[str, Any], folder: str = "") -> RenderableType:
    """The summary of one run."""
    parts: list[RenderableType] = [_headline(summary), _devices(summary)]
    if summary["share_rule"]:
        parts.append(Text(f"shares: {summary['share_rule']}"))
    if carbon := summary.get("carbon"):
        parts.append(_carbon(carbon, summary["estimated"]))
    for unseen in summary["unseen"]:
        parts.append(Text(f"! not metered: {unseen['reason']}; run: {unseen['fix']}", style="yellow"))
    if _costly(summary):
        part = summary["sampler_cpu_s"] / summary["duration_s"]
        parts.append(Text(f"sampling itself took {part:.1%} of a core; a longer --interval costs less"))
    notes = [
        *summary["notes"],
        *(carbon["problems"] if carbon else ()),
        *(note for device in summary["devices"] for note in device["notes"]),
    ]
    parts += [Text(f"! {note}", style="yellow") for note in dict.fromkeys(notes)]
    if folder:
        parts.append(Text(f"saved: {folder}", style="dim"))
    return Group(*parts)


def _costly(summary: Mapping[str, Any]) -> bool:
    """Whether the sampler took more than a hundredth of a core, over a run long enough to tell."""
    took_s, duration_s = float(summary.get("sampler_cpu_s") or 0.0), float(summary["duration_s"])
    return duration_s > 1 and took_s > 0.01 * duration_s


def _headline(summary: Mapping[str, Any]) -> Text:
    energy = bounded(summary["energy_j"], summary["low_j"], summary["high_j"])
    text = Text(energy if summary["energy_j"] is not None else "energy below resolution", style="bold")
    if summary["estimated"]:
        text.append(" estimated", style="yellow")
    text.append(f" in {seconds(summary['duration_s'])}, exit code {summary['exit_code']}", style="")
    if summary.get("score") is not None:
        text.append(f", score {_score(summary['score'])}")
    if summary["mean_w"] is not None:
        text.append(f", mean {si(summary['mean_w'], 'W')}" + (" estimated" if summary["estimated"] else ""))
    return text


def _score(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _devices(summary: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device")
    for name in ("energy", "mean", "peak", "use"):
        table.add_column(name, justify="right")
    table.add_column("")
    for device in summary["devices"]:
        estimated = " est." if device["estimated"] else ""
        joules = device["energy_j"]
        energy = (
            "below resolution" if joules is None else bounded(joules, device["low_j"], device["high_j"]) + estimated
        )
        use = device.get("utilisation_percent")
        powers = (si(device[key], "W") + (estimated if device[key] is not None else "") for key in ("mean_w", "peak_w"))
        cells = [device["device"], energy, *powers, "–" if use is None else f"{use:.0f} %", _remark(device)]
        table.add_row(*(Text(cell) for cell in cells), style="dim" if device["apart"] else "")
    return table


def _remark(device: Mapping[str, Any]) -> str:
    words = ["estimated" if device["estimated"] else "measured" if device["energy_j"] is not None else ""]
    words += device["causes"]
    if device["apart"]:
        words.append(f"not added: {device['apart']}")
    return "; ".join(filter(None, words))


def _carbon(carbon: Mapping[str, Any], estimated: bool) -> Text:
    words = f"CO2e {si(carbon['co2e_g'], 'g')}"
    if carbon["low_g"] is not None and carbon["high_g"] is not None:
        words += f" ({si(carbon['low_g'], 'g')} … {si(carbon['high_g'], 'g')})"
    words += f"{' estimated' if estimated else ''} at {carbon['g_per_kwh']:.4g} g/kWh, {carbon['name']}"
    words += ", assumed: name yours with --zone" if carbon["assumed"] else ""
    return Text(words + (" (fallback)" if carbon["fallback"] else ""))


def repeats_screen(told: Mapping[str, Any], saved: Sequence[str]) -> RenderableType:
    """Several runs: one row each, then mean and confidence interval; ``saved`` are the folders of the recordings."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", "time", "energy", "mean", "CO2e", "exit"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, run in enumerate(told["runs"], 1):
        mark = " est." if run["estimated"] else ""
        table.add_row(
            str(number), seconds(run["duration_s"]), si(run["energy_j"], "J") + mark, si(run["mean_w"], "W") + mark,
            si(run["co2e_g"], "g") + mark, str(run["exit_code"]),
        )  # fmt: skip
    statistics = told["statistics"]
    units = {"duration_s": "s", "energy_j": "J", "mean_w": "W", "co2e_g": "g"}
    cells = [_interval(statistics[key], unit) if key in statistics else "–" for key, unit in units.items()]
    mark = ", est." if any(run["estimated"] for run in told["runs"]) else ""
    table.add_section()
    table.add_row(f"mean{mark}", *cells, "", style="bold")
    places = saved if len(saved) <= _PLACES else [saved[0], "…", saved[-1]]
    where = f"; saved: {', '.join(places)}" if places else ""
    return Group(table, Text(f"± is the 95 % confidence interval of the mean{where}"))


def _interval(statistic: Mapping[str, Any], unit: str) -> str:
    return bounded(statistic["mean"], statistic["ci95_low"], statistic["ci95_high"], unit)
