"""The live table of a running command: an observer that draws at the foot of the terminal.

The lowest lines are taken out of the scrolling region while the command runs, so its own output scrolls above them
undisturbed (the way apt shows its progress). Only for a terminal; given back whatever happens.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from typing import Any, TextIO

from .numbers import seconds, si

MOST_DEVICES = 8
_SAVE, _RESTORE, _CLEAR_LINE = "\x1b7", "\x1b8", "\x1b[2K"


class LiveTable:
    """Use as a context manager; call with each status of the sampler."""

    def __init__(
        self,
        stream: TextIO,
        size: Callable[[], os.terminal_size] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._clock = stream, clock
        self._size = size or (lambda: os.get_terminal_size(stream.fileno()))
        self._height = 0
        self._begin_s = clock()
        self._last: dict[str, tuple[float, float]] = {}  # device → (time in s, energy so far)

    def __enter__(self) -> LiveTable:
        return self

    def __call__(self, status: dict[str, Any]) -> None:
        rows = [self._row(row) for row in status["live"][:MOST_DEVICES]]
        lines, columns = self._size().lines, self._size().columns
        if lines < len(rows) + 6:
            return
        table = self._render(rows, columns, len(status["live"]) - len(rows))
        if len(table) != self._height:
            self._reserve(len(table), lines)
        first = lines - self._height + 1
        drawn = "".join(f"\x1b[{first + i};1H{_CLEAR_LINE}{line}" for i, line in enumerate(table))
        self._write(_SAVE + drawn + _RESTORE)

    def _row(self, row: dict[str, Any]) -> tuple[str, str, str]:
        power_w = row.get("power_w")
        energy_j = row.get("energy_j")
        at_s = row["at"] / 1e9
        if power_w is None and energy_j is not None:
            before_s, before_j = self._last.get(row["device"], (at_s, energy_j))
            power_w = (energy_j - before_j) / (at_s - before_s) if at_s > before_s else None
            self._last[row["device"]] = at_s, energy_j
        mark = " est." if row.get("estimated") else ""
        return row["device"], si(power_w, "W") + mark, si(energy_j, "J") + mark

    def _render(self, rows: list[tuple[str, str, str]], columns: int, more: int) -> list[str]:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        tail = f" (and {more} more)" if more else ""
        table.add_column(f"{seconds(self._clock() - self._begin_s)}{tail}")
        for name in ("power", "energy"):
            table.add_column(name, justify="right", min_width=12)
        for cells in rows:
            table.add_row(*(Text(cell) for cell in cells))
        console = Console(file=io.StringIO(), force_terminal=True, width=columns, color_system="standard")
        with console.capture() as captured:
            console.print(table)
        return captured.get().rstrip("\n").split("\n")

    def _reserve(self, height: int, lines: int) -> None:
        """Scroll what is there up and keep the lowest lines to ourselves."""
        free = "\n" * max(0, height - self._height)
        up = f"\x1b[{max(0, height - self._height)}A" if free else ""
        self._write(f"{free}{_SAVE}\x1b[1;{lines - height}r{_RESTORE}{up}")
        self._height = height

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def __exit__(self, *_: object) -> None:
        if not self._height:
            return
        first = self._size().lines - self._height + 1
        cleared = "".join(f"\x1b[{first + i};1H{_CLEAR_LINE}" for i in range(self._height))
        self._write(f"{_SAVE}\x1b[r{cleared}{_RESTORE}")
        self._height = 0
