"""The fit of a calibration: what a gauge read, what the fitted sensor would have read, and what a meter read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..panel_lines import PanelLine
from ..theme import THEMES
from .canvas import finish, time_axis, time_unit
from .panels import panel

if TYPE_CHECKING:
    from ...engines.middle import Calibration


def sensor_fit(calibration: Calibration, theme: str = "light") -> Any:
    """The picture of a calibration: readings and fit above, their difference below."""
    look, fit = THEMES[theme], calibration.fit
    last = float(fit.times_s[-1])
    lines = [
        _series("readings", fit.times_s, fit.readings_w, last),
        _series("fit", fit.times_s, fit.fitted_w, last),
    ]
    if len(fit.meter_s):
        lines.append(_series("meter", fit.meter_s, fit.meter_w, last))
    left = np.abs(fit.readings_w - fit.fitted_w)
    per_s, unit = time_unit(last - float(fit.times_s[0]))
    window, misfit = (float(fit.times_s[0]), last), [_series("misfit", fit.times_s, left, last)]
    parts = [
        panel("power", "W", lines, look, window, per_s, None, 220),
        panel("|readings − fit|", "W", misfit, look, window, per_s, time_axis(unit), 70),
    ]
    return finish(
        parts,
        look,
        title=f"Calibration of {calibration.signal}",
        subtitle=calibration.summary,
        caption=calibration.notes,
    )


def _series(label: str, times_s: Any, values: Any, last: float) -> PanelLine:
    return PanelLine(label, times_s, values, values, values, last, len(times_s), label)
