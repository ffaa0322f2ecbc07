"""What can be metered here, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .numbers import si


def doctor_screen(told: Mapping[str, Any]) -> RenderableType:
    """Every meter and its sensors, findings, the command that would mend what is missing."""
    parts: list[RenderableType] = [_sensors(told)]
    for meter in told["meters"]:
        if not meter["ok"]:
            parts.append(Text(f"– {meter['meter']}: {meter['reason']}", style="dim"))
            if meter["fix"]:
                parts.append(Text(f"  run: {meter['fix']}", style="bold"))
        others = sorted({s["name"] for s in meter["sensors"] if s["unit"] not in ("J", "W")})
        if others:
            parts.append(Text(f"{meter['meter']} reads {', '.join(others)} too", style="dim"))
    parts += [Text(f"! {finding['message']}", style="yellow") for finding in told["findings"]]
    core = "the C core" if told["core"] == "c" else "NumPy twins (no C core: install a compiler and reinstall)"
    versions = ", ".join(f"{name} {number}" for name, number in told["versions"].items() if name != "executable")
    parts.append(Text(f"runs on {core}; {versions}"))
    return Group(*parts)


def _sensors(told: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("meter", "device", "sensor"):
        table.add_column(name, no_wrap=True)
    for name in ("power", "updates", "jitter"):
        table.add_column(name, justify="right")
    table.add_column("")
    for meter in told["meters"]:
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
