"""Container images as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from ..recorders.daemon import Image, shorter
from .fitted_table import FittedTable
from .numbers import si


def image_table(images: Sequence[Image]) -> RenderableType:
    if not images:
        return Text("no image here; build one, or fetch it: wattribute run --pull --image NAME")
    table = FittedTable(drop=("id", "created"))
    for name, side in (("image", "left"), ("id", "left"), ("size", "right"), ("created", "left")):
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for image in images:
        cells = shorter(image.name), image.id, si(image.size_bytes, "B"), image.created[:19].replace("T", " ")
        table.add_row(*(Text(cell) for cell in cells))
    return table
