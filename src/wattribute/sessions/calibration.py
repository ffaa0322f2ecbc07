"""Calibrate a sensor: read a recording, fit its power gauge, write a sensor file and a picture of the fit."""

from __future__ import annotations

import os
from typing import Any

from ..engines.middle import Calibration
from ..engines.middle import calibrate as fit
from ..files import check_writable, write_file
from ..model import Recording
from ..reading import read


def calibrate(
    source: Recording | str | os.PathLike[str],
    *,
    meter: str | os.PathLike[str] | None = None,
    metric: str | None = None,
    output: str | os.PathLike[str] | None = None,
    picture: str | os.PathLike[str] | None = None,
    **reading: Any,
) -> Calibration:
    """What the power gauge of a recording with a known load is: period, window, lag; beside a meter gain and offset.

    ``source`` is that recording or its path, ``metric`` (a regular expression) the gauge. ``meter`` is an external
    meter's log, a CSV of Unix seconds and watts. ``output`` gets a sensor file for ``attribute(sensors=FILE)``,
    ``picture`` a chart of the fit (.svg, .png, .pdf, .html). Further keyword arguments are those of ``read`` (signals,
    offset, …).
    """
    if picture is not None:
        from ..views.save import format_of

        format_of(picture)
        check_writable(picture)
    recording = source if isinstance(source, Recording) else read(source, **reading)
    calibration = fit(recording, meter, metric)
    if output is not None:
        write_file(output, calibration.as_toml())
    if picture is not None:
        from ..views.charts.sensor_fit import sensor_fit
        from ..views.save import save

        save(sensor_fit(calibration), picture)
    return calibration
