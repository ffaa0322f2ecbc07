"""The live table of a running command: an observer that draws at the foot of the terminal.

The lowest lines are taken out of the scrolling region while the command runs, so its own output scrolls above them
undisturbed (the way apt shows its progress). Only for a terminal; given back on every exit.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

from rich.text import Text

from ..model.status import Status
from .console_monitor import PowerHistory, device_lines, sums
from .numbers import seconds
from .terminal import Console

MOST_DEVICES = 8
_SAVE, _RESTORE, _CLEAR_LINE = "\x1b7", "\x1b8", "\x1b[2K"


class LiveTable:
    """Use as a context manager; call with each status."""

    def __init__(self, stream: TextIO, size: Callable[[], os.terminal_size] | None = None) -> None:
        self._stream = stream
        self._size = size or (lambda: os.get_terminal_size(stream.fileno()))
        self._height = 0
        self._history = PowerHistory()

    def __enter__(self) -> LiveTable:
        return self

    def __call__(self, status: Status) -> None:
        self._history.add(status)
        lines, columns = self._size().lines, self._size().columns
        living = [device for device in status.devices if not device.note]
        if lines < min(len(living), MOST_DEVICES) + 6:
            return
        table = self._render(replace(status, devices=living[:MOST_DEVICES]), columns, len(living) - MOST_DEVICES)
        if len(table) != self._height:
            self._reserve(len(table), lines)
        first = lines - self._height + 1
        drawn = "".join(f"\x1b[{first + i};1H{_CLEAR_LINE}{line}" for i, line in enumerate(table))
        self._write(_SAVE + drawn + _RESTORE)

    def _render(self, status: Status, columns: int, more: int) -> list[str]:
        tail = f" (and {more} more devices)" if more > 0 else ""
        first = Text(f"{seconds(status.elapsed_s)}  {sums(status)}{tail}", no_wrap=True, overflow="ellipsis")
        console = Console(file=io.StringIO(), force_terminal=True, width=columns, color_system="standard")
        with console.capture() as captured:
            console.print(first, *device_lines(status, self._history, columns), sep="\n")
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
