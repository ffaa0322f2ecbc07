"""Themes of pictures: light and dark grounds, type, axes. Colours of kinds of work are in ``kinds``.

``config(theme)`` is a Vega-Lite configuration; the report's style sheet uses the same names. No dependencies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..errors import OptionError

FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
WIDTH = 900
ROW = 18  # the height of a row of a heatmap, a bar chart, a lane
SIZE = 11  # of ordinary text


@dataclass(frozen=True)
class Theme:
    """Everything that differs between light and dark; text on ``ground`` has a contrast of at least 4.5."""

    name: str
    ground: str
    text: str
    muted: str
    grid: str
    idle: str  # the light grey of idle, and of its hatch
    hatch: str
    line: str  # power curves: neutral, so that colour stays with kinds of work
    scheme: list[str]  # sequential, from nothing to most
    series: list[str]  # lines that are no kind of work (devices, runs); always labelled as well

    def ramp(self, share: float) -> str:
        """The colour of a share from 0 to 1 on the sequential scale."""
        at = min(1.0, max(0.0, share)) * (len(self.scheme) - 1)
        low, high = (self.scheme[min(len(self.scheme) - 1, int(at) + i)] for i in (0, 1))
        mixed = (
            int(low[i : i + 2], 16) + (at - int(at)) * (int(high[i : i + 2], 16) - int(low[i : i + 2], 16))
            for i in (1, 3, 5)
        )
        return "#" + "".join(f"{round(part):02X}" for part in mixed)


_VIRIDIS = ["#440154", "#472D7B", "#3B528B", "#2C728E", "#21918C", "#28AE80", "#5EC962", "#ADDC30", "#FDE725"]
LIGHT = Theme(
    name="light",
    ground="#FFFFFF",
    text="#1F2328",
    muted="#59636E",
    grid="#E4E7EB",
    idle="#E3E3E3",
    hatch="#B9B9B9",
    line="#3D4650",
    scheme=["#FCFDF3", "#EDF8B1", "#C7E9B4", "#7FCDBB", "#41B6C4", "#1D91C0", "#225EA8", "#253494"],  # little is light
    series=["#332288", "#117733", "#882255", "#44AA99", "#AA4499", "#999933", "#661100", "#6699CC"],
)
DARK = Theme(
    name="dark",
    ground="#15181D",
    text="#E6EAEF",
    muted="#9BA6B2",
    grid="#2C323A",
    idle="#3A3F46",
    hatch="#5B626B",
    line="#C4CCD6",
    scheme=["#1B1E2B", *_VIRIDIS[1:]],
    series=["#99DDFF", "#BBCC33", "#FFAABB", "#44BB99", "#EE8866", "#EEDD88", "#AAAA00", "#DDDDDD"],
)
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


SCHEMES = {  # from nothing to most, on a light ground
    "viridis": _VIRIDIS[::-1],
    "blues": ["#F7FBFF", "#DEEBF7", "#C6DBEF", "#9ECAE1", "#6BAED6", "#4292C6", "#2171B5", "#08519C", "#08306B"],
    "reds": ["#FFF5F0", "#FEE0D2", "#FCBBA1", "#FC9272", "#FB6A4A", "#EF3B2C", "#CB181D", "#A50F15", "#67000D"],
    "greys": ["#FFFFFF", "#F0F0F0", "#D9D9D9", "#BDBDBD", "#969696", "#737373", "#525252", "#252525", "#000000"],
    "magma": ["#FCFDBF", "#FEC488", "#FB8861", "#E75263", "#B63679", "#822681", "#51127C", "#1D1147", "#000004"],
}
_HEX = re.compile(r"#?[0-9a-fA-F]{6}")


def theme(name: str) -> Theme:
    """The theme of this name; "light:viridis" or "dark:#000000,#FF0000" has other colours for more and less."""
    name, _, colours = name.partition(":")
    if name not in THEMES:
        raise OptionError.unknown("theme", name, THEMES)
    return replace(THEMES[name], scheme=_scheme(colours, name == "dark")) if colours else THEMES[name]


def _scheme(colours: str, dark: bool) -> list[str]:
    """A scheme of ours, dark for little on a dark ground, or two and more colours as written."""
    if colours in SCHEMES:
        return SCHEMES[colours][::-1] if dark else SCHEMES[colours]
    given = [part.strip() for part in colours.split(",")]
    if len(given) < 2 or not all(map(_HEX.fullmatch, given)):
        raise OptionError.unknown("colours", colours, [*SCHEMES, "#FFFFFF,#FF0000"])
    return [f"#{one.lstrip('#').upper()}" for one in given]


def config(theme: Theme) -> dict[str, Any]:
    """The Vega-Lite configuration of a theme."""
    return {
        "background": theme.ground,
        "font": FONT,
        "padding": 14,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": theme.text,
            "subtitleColor": theme.muted,
            "fontSize": 16,
            "fontWeight": 600,
            "subtitleFontSize": 12,
            "subtitlePadding": 5,
            "offset": 12,
            "limit": 0,
        },
        "axis": {
            "labelSeparation": 6,
            "labelColor": theme.muted,
            "titleColor": theme.muted,
            "labelFontSize": SIZE,
            "titleFontSize": SIZE,
            "titleFontWeight": "normal",
            "gridColor": theme.grid,
            "domainColor": theme.grid,
            "tickColor": theme.grid,
            "tickSize": 4,
            "labelLimit": 0,
            "titleLimit": 0,
        },
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            "labelColor": theme.text,
            "titleColor": theme.muted,
            "titleFontWeight": "normal",
            "labelFontSize": SIZE,
            "titleFontSize": SIZE,
            "labelLimit": 0,
        },
        "text": {"color": theme.text, "fontSize": SIZE},
        "rule": {"color": theme.muted},
        "concat": {"spacing": 12},
    }
