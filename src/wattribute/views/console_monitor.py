"""The screen of ``monitor``: what every device draws now, how it went, and what that adds up to.

``Screen`` shows statuses (``model.status``) on a terminal's second screen and gives the terminal back on every exit;
``monitor_screen`` is the picture itself. ``line`` is a status as one line of text, for where there is no terminal.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..model.status import DeviceStatus, Status
from .names import clean, shorten
from .numbers import count, seconds, si
from .terminal import Console

KEPT = 600  # statuses that a curve remembers
WIDE = 76  # columns from which devices are rows of a table
_BLOCKS = " ▁▂▃▄▅▆▇█"
_PLAIN_BLOCKS = " ..::==##"
_COLOURS = {"gpu": "#D55E00", "dram": "#009E73"}
_OTHERS = "#0072B2"
_CURVE_ROWS = 6

History = Mapping[str, Sequence[float]]


class PowerHistory(dict[str, "deque[float]"]):
    """The power of every device and, under "", of all, as far back as a curve reaches."""

    def add(self, status: Status) -> None:
        for name, power_w in (("", status.power_w), *((row.device, row.power_w) for row in status.devices)):
            if power_w is not None:
                self.setdefault(name, deque(maxlen=KEPT)).append(power_w)


def line(status: Status) -> str:
    """A status as one line."""
    at = time.strftime("%H:%M:%S", time.localtime(status.epoch_ns / 1e9))
    parts = [f"{at}  {sums(status)}"]
    parts += [f"{clean(row.device)} {' '.join(_said(row))}" for row in status.devices]
    return " | ".join(parts)


def last_words(status: Status) -> str:
    """What monitoring came to, in one line."""
    if status.energy_j is None or not status.elapsed_s:
        return "no sensor gave a reading"
    mean = si(status.energy_j / status.elapsed_s, "W")
    energy = f"{si(status.energy_j, 'J')} {_how(status)} in {seconds(status.elapsed_s)}"
    return f"{energy}, mean {mean}; {_carbon(status)}"


def _how(row: Status | DeviceStatus) -> str:
    return "estimated" if row.estimated else "measured"


def sums(status: Status) -> str:
    """Power, energy and grams of all devices that count."""
    if status.power_w is None and status.energy_j is None:
        return "waiting for the sensors"
    text = f"{si(status.power_w, 'W')}, {si(status.energy_j, 'J')} {_how(status)}, {_carbon(status)}"
    return f"{text}, {per_unit(status)}" if status.per else text


def per_unit(status: Status) -> str:
    """Energy per unit of work: of the last ones, and since the start."""
    unit = clean(status.per)
    if not status.count:
        return f"no {unit} counted yet"
    mark = " est." if status.estimated else ""
    recent, whole = si(status.recent_j_per_unit, "J"), si(status.j_per_unit, "J")
    grams = f", CO2e {si(status.carbon.co2e_g / status.count, 'g')}" if status.carbon.co2e_g else ""
    return f"per {unit}: {recent} now, {whole}{mark}{grams} since the start ({count(status.count)} counted)"


def _carbon(status: Status) -> str:
    carbon = status.carbon
    mark = " est." if status.estimated else ""
    assumed = ", assumed" if carbon.assumed else ", fallback" if carbon.fallback else ""
    grams = si(carbon.co2e_g or None, "g")
    return f"CO2e {grams}{mark} at {carbon.g_per_kwh:.4g} g/kWh ({clean(carbon.name)}{assumed})"


def _said(row: DeviceStatus) -> list[str]:
    """Everything a device says, as words."""
    if row.note:
        return [row.note]
    words = [si(row.power_w, "W"), si(row.energy_j, "J"), _how(row)]
    return words + [value for value in (_use(row), _temperature(row), _device_memory(row)) if value]


def _use(row: DeviceStatus) -> str:
    use = row.gauges.get("utilisation_percent")
    return "" if use is None else f"{use:.0f} %"


def _temperature(row: DeviceStatus) -> str:
    degrees = row.gauges.get("temperature_c")
    return "" if degrees is None else f"{degrees:.0f} °C"


def _memory(used: float | None, total: float | None) -> str:
    if used is None or not total:
        return si(used, "B") if used is not None else ""
    text, whole = si(used, "B"), si(total, "B")
    return f"{text.split()[0] if text.split()[1:] == whole.split()[1:] else text} of {whole}"  # the unit once


def _device_memory(row: DeviceStatus) -> str:
    return _memory(row.gauges.get("memory_bytes"), row.memory_total_bytes)


# ---------------------------------------------------------------------------------------------------------- the screen


def monitor_screen(status: Status, history: History, console: Console, foot: str = "") -> RenderableType:
    """The screen for a console of any size; ``history`` has the power of every device and, under "", of all."""
    width, height = console.size
    blocks = _PLAIN_BLOCKS if console.options.ascii_only else _BLOCKS
    colour = _COLOURS.get(_chief(status), _OTHERS)
    parts: list[RenderableType] = [*_head(status, width)]
    notes = [Text(f"! {note}", style="yellow", no_wrap=True, overflow="ellipsis") for note in _notes(status)]
    room = height - len(parts) - len(notes) - 1  # one line for the keys
    body = device_lines(status, history, width, blocks) if width >= WIDE else _stack(status, history, width, blocks)
    if len(body) > room and width < WIDE:
        body = [row for at, row in enumerate(body) if at % 3 != 2]  # without the curves
    if room >= len(body) + _CURVE_ROWS + 2 and status.power_w is not None:
        parts += _curve(history.get("", ()), width, blocks, colour)
        room -= _CURVE_ROWS + 2
    parts += _fitting(body, room)
    parts += process_lines(status, width)[: max(0, room - len(body))]
    keys = Text(" · ".join(filter(None, ("q quits", foot))), style="dim", no_wrap=True, overflow="ellipsis")
    return Group(*parts, *notes, keys)


def process_lines(status: Status, width: int) -> list[Text]:
    """The processes that use most, and what no process used; nothing where it is not known."""
    if not status.processes:
        return []
    static = f"   static {si(status.static_w, 'W')}" if status.static_w is not None else ""
    head = f"{'processes':<24}{'cpu':>8}{'power':>10}{static}"
    lines = [Text(), Text(head[:width], style="bold", no_wrap=True)]
    for one in status.processes:
        name = clean(one.name if one.count == 1 else f"{one.name} x {one.count}")
        watts = si(one.power_w, "W") + (" est." if status.estimated and one.power_w is not None else "")
        text = f"{shorten(name, 23):<24}{one.cpu_percent:>6.0f} %{watts:>10}"
        lines.append(Text(text[:width], no_wrap=True))
    return lines


def _chief(status: Status) -> str:
    """The kind of device that draws most."""
    rows = [row for row in status.devices if row.power_w is not None]
    return max(rows, key=lambda row: row.power_w or 0.0).kind if rows else ""


def _head(status: Status, width: int) -> list[Text]:
    where = f"{clean(status.host)} · {seconds(status.elapsed_s)}"
    machine = []
    if status.cpu_percent is not None:
        machine.append(f"CPU {status.cpu_percent:.0f} % of {status.cpus} cores")
    if status.memory_bytes is not None:
        machine.append(f"memory {_memory(status.memory_bytes, status.memory_total_bytes)}")
    first = Text(no_wrap=True, overflow="ellipsis")
    first.append(si(status.power_w, "W"), style="bold")
    first.append(f" {_how(status)}" if status.power_w is not None else " waiting for the sensors", style="bold")
    first.append(f"  {where}", style="")
    energy = Text(no_wrap=True, overflow="ellipsis")
    if status.energy_j is not None:
        energy.append(f"{si(status.energy_j, 'J')} {_how(status)} so far, {_carbon(status)}")
    rest = Text(" · ".join(machine), style="dim", no_wrap=True, overflow="ellipsis")
    if width < WIDE:  # the same in shorter lines
        carbon = Text(_carbon(status) if status.energy_j is not None else "", no_wrap=True, overflow="ellipsis")
        short = f"{si(status.energy_j, 'J')} {_how(status)}" if status.energy_j is not None else ""
        return [first, Text(short), carbon, rest, Text("")]
    return [first, energy, rest, Text("")]


def _notes(status: Status) -> list[str]:
    notes = list(status.problems)
    notes += [f"{clean(row.device)}: {row.note}" for row in status.devices if row.note]
    apart: dict[str, list[str]] = {}
    for row in status.devices:
        if row.apart:
            apart.setdefault(row.apart, []).append(clean(row.device))
    return notes + [f"not added: {', '.join(names)} ({why})" for why, names in apart.items()]


def _fitting(body: Sequence[RenderableType], room: int) -> list[RenderableType]:
    if len(body) <= room:
        return list(body)
    shown = max(0, room - 1)
    rest = Text(f"… {len(body) - shown} more lines: a taller window", style="dim", no_wrap=True, overflow="ellipsis")
    return [*body[:shown], rest]


def device_lines(status: Status, history: History, width: int, blocks: str = _BLOCKS) -> list[RenderableType]:
    """A line per device; what no device says has no column."""
    live = status.devices
    columns: list[tuple[str, list[str]]] = [
        ("device", [clean(row.device) for row in live]),
        ("power", [si(row.power_w, "W") + (" est." if row.estimated else "") for row in live]),
        ("limit", [si(row.power_limit_w, "W") if row.power_limit_w else "" for row in live]),
        ("energy", [si(row.energy_j, "J") + (" est." if row.estimated else "") for row in live]),
        ("use", [_use(row) for row in live]),
        ("temp", [_temperature(row) for row in live]),
        ("memory", [_device_memory(row) for row in live]),
        ("", [_how(row) if not row.note else "dead" for row in live]),
    ]
    columns = [(name, cells) for name, cells in columns if any(cells) or name == "device"]
    sizes = {name: max(len(name), *map(len, cells)) if cells else len(name) for name, cells in columns}
    sizes["device"] = min(sizes["device"], 24)
    for name in ("limit", "memory", "temp", "use"):  # a curve of ten columns says more
        if width - sum(size + 2 for size in sizes.values()) < 10:
            columns = [(other, cells) for other, cells in columns if other != name]
            sizes.pop(name, None)
    spark = min(KEPT, width - sum(size + 2 for size in sizes.values()))
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, _ in columns:
        table.add_column(width=sizes[name], justify="left" if name in ("device", "") else "right", no_wrap=True)
    table.add_column(width=max(1, spark), no_wrap=True)
    table.add_row(*(Text(name, style="bold") for name, _ in columns), Text(""))
    for at, row in enumerate(live):
        cells = [Text(cells[at], no_wrap=True, overflow="ellipsis") for _, cells in columns]
        cells[1].stylize("bold")
        curve = sparkline(history.get(row.device, ()), max(1, spark), blocks, row.power_limit_w)
        table.add_row(*cells, Text(curve, style=_style(row)), style="dim" if row.apart or row.note else "")
    console = Console(width=width, color_system="truecolor", force_terminal=True, legacy_windows=False)
    return [Text("").join(_texts(segments)) for segments in console.render_lines(table, pad=False)]


def _texts(segments: Sequence[Any]) -> Iterator[Text]:
    for segment in segments:
        yield Text(segment.text, style=segment.style or "")


def _stack(status: Status, history: History, width: int, blocks: str) -> list[RenderableType]:
    """Two lines per device and its curve, for narrow windows."""
    body: list[RenderableType] = []
    for row in status.devices:
        how = "dead" if row.note else _how(row)
        first = Text(f"{clean(row.device)}  ", no_wrap=True, overflow="ellipsis")
        first.append(si(row.power_w, "W"), style="bold")
        first.append(f" {how}")
        energy = si(row.energy_j, "J") + (" est." if row.estimated else "")
        rest = " · ".join(filter(None, [energy, _use(row), _temperature(row), _device_memory(row)]))
        body += [first, Text(f"  {rest}", style="dim", no_wrap=True, overflow="ellipsis")]
        curve = sparkline(history.get(row.device, ()), width, blocks, row.power_limit_w)
        body.append(Text(curve, style=_style(row), no_wrap=True))
    return body


def _style(row: DeviceStatus) -> str:
    return _COLOURS.get(row.kind, _OTHERS)


def sparkline(values: Sequence[float], width: int, blocks: str = _BLOCKS, limit: float | None = None) -> str:
    """The last values as blocks, from 0 to the greatest of them (or a limit), the newest on the right."""
    last = list(values)[-width:]
    most = max(last, default=0.0)
    most = max(most, limit or 0.0)
    top = len(blocks) - 1
    drawn = "".join(blocks[max(1, round(value / most * top)) if value > 0 else 0] if most else " " for value in last)
    return drawn.rjust(width)


def _curve(values: Sequence[float], width: int, blocks: str, colour: str) -> list[RenderableType]:
    """The power of all devices over time as an area of several lines, with its scale."""
    most = max(values, default=0.0)
    label = si(most, "W")
    gutter = max(len(label), 1) + 1
    wide = width - gutter
    last = list(values)[-wide:]
    top = len(blocks) - 1
    lines: list[RenderableType] = []
    for row in range(_CURVE_ROWS - 1, -1, -1):
        levels = (value / most * _CURVE_ROWS - row if most else 0.0 for value in last)
        drawn = "".join(blocks[min(top, max(0, round(level * top)))] for level in levels)
        name = label if row == _CURVE_ROWS - 1 else "0" if row == 0 else ""
        text = Text(name.rjust(gutter - 1) + " ", style="dim", no_wrap=True)
        lines.append(text.append(drawn.rjust(wide), style=colour))
    return [*lines, Text("power, newest on the right".rjust(width), style="dim"), Text("")]


class Screen:
    """An observer that draws; a context manager. ``stop`` is set when the user presses q, ``foot`` is a last line."""

    def __init__(self, stop: threading.Event, foot: str = "", console: Console | None = None) -> None:
        self._stop, self._foot = stop, foot
        self._console = console or Console(highlight=False)
        self._status: Status | None = None
        self._history = PowerHistory()
        self._exits = contextlib.ExitStack()
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, get_renderable=self._draw, vertical_overflow="crop"
        )

    def __enter__(self) -> Screen:
        self._exits.enter_context(_keys({"q": self._stop.set, "Q": self._stop.set}))
        self._exits.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def __call__(self, status: Status) -> None:
        self._history.add(status)
        self._status = status
        self.refresh()

    def refresh(self) -> None:
        """Draw again, at the size of the window now (which $COLUMNS does not know)."""
        with contextlib.suppress(OSError):
            self._console.size = os.get_terminal_size(self._console.file.fileno())
        self._live.refresh()

    def _draw(self) -> RenderableType:
        if self._status is None:
            return Text("waking the sensors …", style="dim")
        return monitor_screen(self._status, self._history, self._console, self._foot)


@contextlib.contextmanager
def _keys(actions: Mapping[str, Any]) -> Iterator[None]:
    """Call what belongs to a key when it is pressed; the terminal's own settings come back at the end."""
    if not sys.stdin.isatty():
        yield
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    ours, theirs = os.pipe()
    reader = threading.Thread(target=_listen, args=(file, ours, actions), daemon=True)
    try:
        tty.setcbreak(file)
        calm = termios.tcgetattr(file)
        calm[6][termios.VSUSP] = b"\0"  # a stopped process would leave the second screen behind
        termios.tcsetattr(file, termios.TCSADRAIN, calm)
        reader.start()
        yield
    finally:
        os.close(theirs)
        reader.join(1)
        os.close(ours)
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _listen(file: int, end: int, actions: Mapping[str, Any]) -> None:
    while True:
        ready, _, _ = select.select([file, end], [], [])
        pressed = os.read(file, 64) if file in ready else b""
        if end in ready or not pressed:
            return
        for key in pressed.decode("utf-8", "replace"):
            actions.get(key, lambda: None)()
