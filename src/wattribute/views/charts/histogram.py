"""Histograms of an experiment's runs per label, with mean, median and quartiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plugins import chart
from .. import names
from ..theme import theme as theme_of
from .canvas import altair, finish, layer
from .history import LABEL, finding, groups, panels, subtitle, values, warnings
from .runs import histogram as histogram_bars

if TYPE_CHECKING:
    from ...sessions.experiment import Experiment

_WIDE = 168
_ABREAST = 4


@chart("histogram", about="runs of an experiment per label: mean, median, quartiles", needs="experiment")
def histogram(experiment: Experiment, *, by: Sequence[str] = (), top: int = 8, theme: str = "light") -> Any:
    """Histograms of time, energy, emissions, their rate and, where known, energy and power of each device."""
    alt = altair()
    look = theme_of(theme)
    parted, merged = groups(experiment, by, top)
    parts: list[Any] = []
    for at, (name, runs) in enumerate(parted.items()):
        colour = look.series[at % len(look.series)]
        drawn = [values(run) for run in runs]
        line = [
            histogram_bars(panel, unit, np.array(data), look, _WIDE, colour)
            for panel, unit in panels(experiment).items()
            if (data := [value for of in drawn if (value := of.get(panel)) is not None])
        ]
        if len(parted) > 1:
            line[0] += _heading(f"{names.shorten(names.clean(name), LABEL)}, {len(runs)} runs", colour)
        for first in range(0, len(line), _ABREAST):
            parts.append(alt.hconcat(*line[first : first + _ABREAST], spacing=70, bounds="flush"))
    note = "Solid: median; dotted: quartiles; dashed: mean. Each histogram has its own scale."
    return finish(
        parts, look, title=finding(parted), subtitle=subtitle(experiment, parted),
        caption=[note, merged, *warnings(experiment, by)], spacing=34,
    )  # fmt: skip


def _heading(text: str, colour: str) -> Any:
    alt = altair()
    return layer([{"text": text}]).mark_text(
        align="left", baseline="bottom", dy=-38, fontWeight=600, fontSize=13, color=colour
    ).encode(x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N"))  # fmt: skip
