"""What can be metered here, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from .._core.shared import FIX
from .fitted_table import FittedTable
from .numbers import si


def doctor_screen(report: Mapping[str, Any]) -> RenderableType:
    """The screen of ``doctor``: every meter and its sensors, findings, and the command that fixes what is missing."""
    parts: list[RenderableType] = [_sensors(report), *_lines(report)]
    for meter in report["meters"]:
        if not meter["ok"]:
            parts.append(Text(f"– {meter['meter']}: {meter['reason']}", style="dim"))
            if meter["fix"]:
                parts.append(Text(f"  run: {meter['fix']}", style="bold"))
        others = sorted({s["name"] for s in meter["sensors"] if s["unit"] not in ("J", "W")})
        if others:
            parts.append(Text(f"{meter['meter']} reads {', '.join(others)} too", style="dim"))
    parts += [Text(f"! {finding['message']}", style="yellow") for finding in report["findings"]]
    core = "the C core" if report["core"] == "c" else f"NumPy twins (no C core: {FIX})"
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items() if name != "executable")
    parts.append(Text(f"runs on {core}; {versions}"))
    return Group(*parts)


def _lines(report: Mapping[str, Any]) -> list[Text]:
    """How the sensors measure, as the sensor table says; one line for all that share it."""
    named: dict[str, list[str]] = {}
    for meter in report["meters"]:
        for sensor in meter["sensors"]:
            if sensor.get("line"):
                named.setdefault(sensor["line"], []).append(f"{sensor['device']} {sensor['name']}")
    return [Text(f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''}: {line}") for line, names in named.items()]


def _sensors(report: Mapping[str, Any]) -> FittedTable:
    table = FittedTable(drop=("jitter",))
    for name in ("meter", "device", "sensor"):
        table.add_column(name, no_wrap=True)
    for name in ("power", "updates", "jitter"):
        table.add_column(name, justify="right")
    table.add_column("")
    for meter in report["meters"]:
        for sensor in (s for s in meter["sensors"] if s["unit"] in ("J", "W")):
            cells = [
                meter["meter"].partition(":")[0], sensor["device"], sensor["name"], si(sensor["power_w"], "W"),
                si(sensor["update_period_s"], "s"), si(sensor["jitter_s"], "s"), _remark(sensor),
            ]  # fmt: skip
            table.add_row(*(Text(cell) for cell in cells), style="red" if sensor["state"] == "dead" else "")
    return table


def _remark(sensor: Mapping[str, Any]) -> str:
    words = [sensor["state"] if sensor["state"] != "live" else "", "estimated" if sensor["estimated"] else ""]
    words.append(f"never added: {sensor['apart']}" if sensor["apart"] else "")
    if sensor["gain_error"]:
        words.append(f"± {sensor['gain_error']:.0%}")
    return "; ".join(filter(None, words))
