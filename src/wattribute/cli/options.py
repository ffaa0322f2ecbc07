"""The flags that choose what is attributed, shared by every verb that attributes.

A verb takes a parameter ``selection`` and wears the decorator; Typer then sees the flags below instead, and the verb
gets them as the keyword arguments of ``wattribute.attribute``::

    @with_selection
    def command(path: Annotated[Path, typer.Argument()], selection: dict[str, Any]) -> None:
        attribution = attribute(path, by=("device", "frame"), **selection)
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Optional

import typer

from .flags import with_flags
from .reading import ExcludeFrame, Frame, MetricKinds, Process, Threads

# Typer reads these types at run time, on Python 3.10 too, and wants Optional
Text = Optional[str]  # noqa: UP045
Texts = Optional[list[str]]  # noqa: UP045


def _flags(
    metric: Annotated[
        Text,
        typer.Option(metavar="RE", help="Only metrics whose name matches; without it one energy source per device."),
    ] = None,
    of: Annotated[
        Texts,
        typer.Option(
            help="Who counts: kernels, copies, host; a comma joins, repeating the flag gives views side by side."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="linear; window: all energy between two readings to what ran there (biased); solve (experimental): "
            "spans shorter than the sensor's period, by regression, or a refusal that says why."
        ),
    ] = "linear",
    share: Annotated[
        str, typer.Option(help="How simultaneous users split a device: even, process, load, full (counts double).")
    ] = "even",
    load: Annotated[Text, typer.Option(metavar="RE", help="The load signals of --share load.")] = None,
    integrate: Annotated[str, typer.Option(help="How power becomes energy: trapezoid or step.")] = "trapezoid",
    bounds: Annotated[bool, typer.Option(help="Compute rigorous bounds.")] = True,
    topology: Annotated[
        Text, typer.Option(metavar="FILE", help="A TOML file that says which locations use which device.")
    ] = None,
    map: Annotated[
        Texts,
        typer.Option(metavar="MAP", help="Who uses a device: '[HOST/]SIGNAL_RE -> NAME, NAME'; may be repeated."),
    ] = None,
    begin: Annotated[
        Text, typer.Option("--from", metavar="T", help="From here: seconds since the start, or ISO 8601.")
    ] = None,
    end: Annotated[Text, typer.Option("--to", metavar="T", help="Up to here.")] = None,
    signals: Annotated[
        Texts,
        typer.Option(
            metavar="FILE", help="A power log of another tool, joined by wall clock or marks; may be repeated."
        ),
    ] = None,
    offset: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="S", help="Seconds to add to the times of --signals."),
    ] = None,
    process: Process = None,
    frame: Frame = None,
    exclude_frame: ExcludeFrame = None,
    metric_kind: MetricKinds = None,
    threads: Threads = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Where it is computed: local; dask[:SCHEDULER] (tcp://HOST:8786; else workers started here); "
            "arkouda[:HOST:PORT] (a running server)."
        ),
    ] = "local",
) -> None:
    """Only its signature counts."""


_RENAMED = {"map": "maps", "metric_kind": "metric_kinds"}


def selection(**flags: Any) -> dict[str, Any]:
    """Keyword arguments of ``attribute``: what was left at its default is left out."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(_flags).parameters.items()}
    return {
        _RENAMED.get(name, name): value
        for name, value in flags.items()
        if value is not None and value != defaults[name] and value != []
    }


with_selection = with_flags("selection", _flags, selection)
