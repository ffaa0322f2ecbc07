"""A Rich table that fits any terminal: it drops bars, then columns, then shortens names; a narrow one is a list.

Columns that are aligned to the right hold numbers and are never cut. Columns on the left are names, which are shortened
in the middle if they are ``no_wrap``, and wrapped if not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from .names import labels

LIST_WIDTH = 50  # columns of the terminal up to which a table is a list
_NAME, _SHORT = 24, 10  # columns that a name has before others are dropped for it, and at least
_GAP = 2
BAR_SIGNS = frozenset(" ▏▎▍▌▋▊▉█░")
_SIGNS = ("=", "+")  # between the columns of a sum


class FittedTable(Table):
    """``drop`` names the columns that a narrow terminal can do without, the first one first."""

    def __init__(self, drop: Sequence[str] = (), header: bool = True) -> None:
        super().__init__(box=None, pad_edge=False, header_style="bold", show_header=header)
        self.drop = tuple(drop)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if width <= LIST_WIDTH and self.show_header:
            yield from self._list(width)
            return
        kept = self._kept(width)
        if kept is None:
            yield from self._list(width)
            return
        table = Table(box=None, pad_edge=False, header_style="bold", show_header=self.show_header)
        rooms = _rooms(kept, width)
        for column, room in zip(kept, rooms, strict=True):
            table.add_column(column.header, justify=column.justify, style=column.style, no_wrap=not _wraps(column),
                             width=room, overflow=column.overflow if _wraps(column) else "crop")  # fmt: skip
        cells = [_fitted(column, room) for column, room in zip(kept, rooms, strict=True)]
        for row, line in zip(self.rows, zip(*cells, strict=True), strict=True):
            table.add_row(*line, style=row.style, end_section=row.end_section)
        yield from table.__rich_console__(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(options.max_width, 20), options.max_width)

    def _kept(self, width: int) -> list[Column] | None:
        """The columns that are shown at this width; None where even the least do not fit."""
        kept = list(self.columns)
        if _whole(_natural(column) for column in kept) > width:
            kept = [column for column in kept if not _is_bar(column)]
        for name in self.drop:
            if _whole(_least(column, _NAME) for column in kept) <= width:
                break
            kept = [column for column in kept if str(column.header) != name]
        return kept if _whole(_least(column, _SHORT) for column in kept) <= width else None

    def _list(self, width: int) -> Iterator[Text]:
        """A paragraph per row: its name, then numbers with their headings, never cut."""
        columns = [column for column in self.columns if not _is_bar(column)]
        for number, row in enumerate(self.rows):
            cells = [_text(list(column.cells)[number]) for column in columns]
            yield Text(cells[0].plain, style="bold" if not row.style else row.style, overflow="fold")
            line = ""
            for column, cell in zip(columns[1:], cells[1:], strict=True):
                text = cell.plain.strip()
                if not text or text in _SIGNS:
                    continue
                item = f"{column.header} {text}".strip()
                if line and cell_len(f"{line} · {item}") > width - 2:
                    yield Text(f"  {line}", style=row.style or "", overflow="fold")
                    line = ""
                line = f"{line} · {item}" if line else item
            if line:
                yield Text(f"  {line}", style=row.style or "", overflow="fold")


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def _is_bar(column: Column) -> bool:
    texts = [_text(cell).plain for cell in column.cells]
    return not str(column.header) and any(texts) and all(set(text) <= BAR_SIGNS for text in texts)


def _wraps(column: Column) -> bool:
    return column.justify != "right" and not column.no_wrap


def _natural(column: Column) -> int:
    widths = (cell_len(_text(cell).plain) for cell in column.cells)
    return max((cell_len(str(column.header)), *widths))


def _least(column: Column, name: int) -> int:
    """What a column takes if its names may be cut to ``name`` columns."""
    if column.justify == "right" or _is_bar(column):
        return _natural(column)
    return min(_natural(column), max(name, cell_len(str(column.header))))


def _whole(widths: Iterator[int]) -> int:
    known = list(widths)
    return sum(known) + _GAP * (len(known) - 1)


def _rooms(columns: Sequence[Column], width: int) -> list[int]:
    """The width of each column: numbers have theirs, names share what is left; words break only where they must."""
    rooms = [_natural(column) for column in columns]
    for least in ([max(_least(column, _SHORT), _longest_word(column)) for column in columns],
                  [_least(column, _SHORT) for column in columns]):  # fmt: skip
        while (over := _whole(iter(rooms)) - width) > 0:
            wide = [i for i, room in enumerate(rooms) if room > least[i]]
            if not wide:
                break
            widest = max(wide, key=lambda i: rooms[i])
            second = max((rooms[i] for i in wide if i != widest), default=0)
            rooms[widest] -= max(1, min(over, rooms[widest] - max(least[widest], second)))
    return rooms


def _longest_word(column: Column) -> int:
    """Of a column whose texts are wrapped; 0 of others, which are cut."""
    words = (word for cell in column.cells for word in _text(cell).plain.split()) if _wraps(column) else ()
    return max(map(cell_len, words), default=0)


def _fitted(column: Column, room: int) -> list[Text]:
    cells = [_text(cell) for cell in column.cells]
    if column.justify == "right" or _wraps(column) or room >= _natural(column):
        return cells
    short = labels((cell.plain for cell in cells), room)
    return [Text(short[cell.plain] if cell.plain else "", style=cell.style) for cell in cells]
