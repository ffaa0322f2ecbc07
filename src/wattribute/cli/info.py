"""``wattribute info``: what a recording holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .reading import ExcludeFrame, Frame, Metric, MetricKinds, Process, Threads, progress_bar


def command(
    path: Annotated[Path, typer.Argument(help="A trace, archive or profile.")],
    process: Process = None,
    frame: Frame = None,
    exclude_frame: ExcludeFrame = None,
    metric: Metric = None,
    metric_kind: MetricKinds = None,
    threads: Threads = None,
    format: Annotated[Literal["table", "json"], typer.Option(help="How to print.")] = "table",
) -> None:
    from ..readers import read
    from ..views.description import describe

    with progress_bar("reading") as progress:
        recording = read(
            path,
            process=process,
            frame=frame,
            exclude_frame=exclude_frame,
            metric=metric,
            metric_kinds=metric_kind or (),
            threads=threads,
            progress=progress,
        )
        about = describe(recording, threads, progress)
    if format == "json":
        import json

        print(json.dumps(about, ensure_ascii=False, indent=1))
        return
    from ..views.console_info import show_info

    show_info(about)
