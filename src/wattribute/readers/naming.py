"""What names of columns and counters say: a unit in them, and the device they speak of.

Tools that know no schema put both into the name: ``power.draw [W]``, ``gpu0_power_w``, ``Package Energy (uJ)``.
"""

from __future__ import annotations

import re

from .. import sensors, units
from ..errors import OptionError
from ..model import Device

_BRACKETS = re.compile(r"^(.*?)\s*[\[(]\s*([^\])]+?)\s*[\])]\s*$")
_SUFFIX = re.compile(r"^(.*)[ _.](uj|mj|kj|j|nj|uw|mw|kw|w|kwh|wh|mwh|joules|watts)$", re.IGNORECASE)
_SPELT = {"kwh": "kWh", "wh": "Wh", "mwh": "mWh", "joules": "joules", "watts": "watts", "c": "°C", "celsius": "°C"}
_DEVICES = (
    (re.compile(r"(?:gpu|accel|device|cuda|hip)[\W_]*(\d+)", re.IGNORECASE), "gpu", "GPU {}"),
    (re.compile(r"(?:gpu|accel)", re.IGNORECASE), "gpu", "GPU"),
    (re.compile(r"(?:package|pkg|cpu|socket)[\W_]*(\d+)", re.IGNORECASE), "cpu", "package {}"),
    (re.compile(r"(?:package|pkg|cpu|socket)", re.IGNORECASE), "cpu", "CPU"),
    (re.compile(r"d?ram[\W_]*(\d*)|memory_?(?:power|energy)", re.IGNORECASE), "dram", "DRAM"),
    (re.compile(r"psys|platform", re.IGNORECASE), "psys", "psys"),
    (re.compile(r"node|system|total|wall|machine|socket|plug|meter", re.IGNORECASE), "node", "node"),
)


def unit_of(name: str) -> tuple[str, str]:
    """(name, unit) of ``power.draw [W]`` or ``power_w``; the unit is "" where the name has none."""
    if (match := _BRACKETS.match(name)) and (unit := _known(match[2])):
        return match[1], unit
    if match := _SUFFIX.match(name):
        return name, _known(match[2])
    return name, ""


def _known(text: str) -> str:
    """A unit as ``units`` spells it, or "": column names are often in lower case, where m is milli."""
    small = text.lower()
    for spelt in (text, _SPELT.get(small, ""), small[:-1] + small[-1].upper()):
        try:
            if spelt and spelt not in ("1", "#"):
                units.parse(spelt)
                return spelt
        except OptionError:
            continue
    return ""


def declared(unit: str, kind: str = "") -> sensors.Declaration:
    """What a file that names only a unit declares: energy counts up, anything else is a value of now."""
    try:
        symbol = units.parse(unit).symbol
    except OptionError:
        unit, symbol = "", "#"
    return sensors.Declaration(kind or ("counter" if symbol == "J" else "gauge"), unit)


def is_energy(unit: str) -> bool:
    return units.parse(unit).symbol in ("J", "W")


def device_of(name: str, host: str = "") -> Device | None:
    """The device that a metric in joules or watts names, or None."""
    for pattern, kind, label in _DEVICES:
        if match := pattern.search(name):
            number = next((group for group in match.groups() if group), "")
            return Device(label.format(number), kind, host)
    return None
