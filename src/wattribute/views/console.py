"""An attribution in the terminal: the books of each device, then whose joules, with bars and bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .kinds import KINDS, kind
from .names import clean, labels
from .numbers import bounded, count, percent, seconds, si

if TYPE_CHECKING:
    from ..model import Attribution

_ROWS = 15  # of each device, unless asked for more
_BAR = 12
_NUMBERS = 82  # columns that bar and numbers take
_WIDTH = 160  # when nobody says how wide the terminal is
_ALIKE = 3  # problems of one kind
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def show_attribution(found: Attribution, top: int | None = None, output: Path | None = None) -> None:
    """Print an attribution, or write it as plain text."""
    if output is None:
        console = _console()
        console.print(attribution_tables(found, top, console.width))
        _console(stderr=True).print(problem_lines(found))
        return
    from ..errors import OutputError

    try:
        with output.open("w", encoding="utf-8") as file:
            console = Console(file=file, width=_WIDTH, no_color=True)
            console.print(attribution_tables(found, top, _WIDTH), problem_lines(found), sep="\n")
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error.strerror or error}") from error


def _console(stderr: bool = False) -> Console:
    """As wide as the terminal; where there is none, wide enough."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDTH)


def attribution_tables(found: Attribution, top: int | None = None, width: int = _WIDTH) -> RenderableType:
    """Books, then rows: one table per device when rows are by device, else one for all."""
    unit = "j" if "self_j" in found.rows.columns else "value"
    parts: list[RenderableType] = [attribution_head(found)]
    if "device" not in found.rows.columns:
        return Group(*parts, Text(), _rows(found, found.rows, unit, top, _whole(found, unit), _all(found), width))
    for device in found.devices.to_dicts():
        same = found.rows
        for key in ("run", "host", "device", "of"):
            same = same.filter(same[key] == device[key]) if key in device else same
        if len(same):
            run = f"{clean(device['run'])}  " if "run" in device else ""
            title = Text.assemble(
                run, (clean(device["device"]), "bold"), " estimated" if device["estimated"] else "",
                f"  {clean(device['host'])}  of {device['of']}",
            )  # fmt: skip
            parts += [Text(), title, _rows(found, same, unit, top, device[f"measured_{unit}"], device, width)]
    return Group(*parts)


def attribution_head(found: Attribution) -> RenderableType:
    """The books of each device, and the rules they follow."""
    return Group(_books(found, "j" if "self_j" in found.rows.columns else "value"), _caption(found))


def _whole(found: Attribution, unit: str) -> float:
    """What shares are shares of when rows add up devices: everything that was attributed to anyone."""
    return float(found.rows[f"self_{unit}"].sum())


def _caption(found: Attribution) -> Text:
    words = f"method {found.method}, share {found.share}"
    if found.share == "full":
        words += " (every active user gets all of it: sums count double)"
    return Text(words, style="dim")


def _books(found: Attribution, unit: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    hosts = found.devices["host"].n_unique() > 1
    named: list[str] = [name for name in ("run", "device", "host", "signal", "of") if name in found.devices.columns]
    one = {"host": not hosts, "signal": not found.devices.select(set(named) - {"signal"}).is_duplicated().any()}
    named = [name for name in named if not one.get(name)]
    for name in named:
        table.add_column(name)
    for name in ("measured", "", "attributed", "", "idle", "", "coverage", "users"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.devices.to_dicts():
        amounts = [row[f"{name}_{unit}"] for name in ("measured", "attributed", "idle")]
        measured, attributed, idle = (si(amount, row["unit"]) for amount in amounts)
        if row["estimated"] and row["gain_error"]:
            measured = bounded(amounts[0], *((1 + e) * amounts[0] for e in (-row["gain_error"], row["gain_error"])))
        notes = " estimated" if row["estimated"] else "" if amounts[0] else " (did not move)"
        table.add_row(
            *(Text(clean(row[name]) + (notes if name == "device" else "")) for name in named),
            *(measured, "=", attributed, "+", idle),
            bar(amounts[1], amounts[0], "kernel" if row["of"].startswith("kernels") else "user"),
            "–" if row["coverage"] is None else percent(row["coverage"], 1.0),
            count(row["users"]) if row["users"] else "nobody",
        )
    return table


def bar(part: float, whole: float, what: str) -> Text:
    """A bar of eighths in the colour of a kind of work."""
    filled = max(0, min(_BAR * 8, round(_BAR * 8 * part / whole))) if whole > 0 else 0
    full, rest = divmod(filled, 8)
    text = "█" * full + (_EIGHTHS[rest] if rest else "")
    return Text(text.ljust(_BAR, "░"), style=KINDS[what][1])


def _all(found: Attribution) -> dict[str, Any]:
    """What rows that add up devices are of: an estimate, with the largest error of any, if all of them are."""
    errors = found.devices["gain_error"].fill_null(0.0)
    return {"estimated": bool(found.devices["estimated"].all()), "gain_error": errors.max()}


def _rows(
    found: Attribution, rows: Any, unit: str, top: int | None, whole: float, device: Mapping[str, Any], width: int
) -> Table:
    keys = [name for name in rows.columns[: rows.columns.index(f"self_{unit}")] if _worth_showing(found, name)]
    shown = rows.head(top or _ROWS).to_dicts()
    room = max(12, (width - _NUMBERS) // max(1, len(keys)))  # long names share what the numbers leave
    names = {key: labels((_name(row[key]) for row in shown), room) for key in keys}
    kinds = _kinds(found)
    wholes = _by_signal(found, unit) if "signal" in keys else {}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_column(key, no_wrap=True)
    table.add_column("")
    for name in ("self", "share", "total", "time", "power" if unit == "j" else "rate", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    extra = [name for name in ("mean", "min", "max") if name in rows.columns]
    grams = ["co2e_g"] if "co2e_g" in rows.columns else []
    for name in (*extra, *("CO2e" for _ in grams)):
        table.add_column(name, justify="right")
    timed = found.recording.metadata.get("timeline") != "samples"  # which were laid end to end, a made-up time each
    for row in shown:
        symbol = "J" if unit == "j" else row["unit"]
        rate = row["power_w"] if unit == "j" else row["self_rate"]
        table.add_row(
            *(Text(names[key][_name(row[key])]) for key in keys),
            bar(
                row[f"self_{unit}"],
                wholes.get(row.get("signal"), whole),
                kinds.get(row.get("frame") or _last(row.get("path")), "user"),
            ),
            *_own(row, unit, symbol, wholes.get(row.get("signal"), whole), device),
            si(row[f"total_{unit}"], symbol),
            seconds(row["self_ns"] / 1e9) if row["self_ns"] and timed else "–",
            si(rate if timed else None, "W" if unit == "j" else _rate_unit(symbol)),
            count(row["calls"]) if "calls" in row else "1",
            *(si(row[name]) for name in extra),
            *(si(row[name], "g") for name in grams),
        )
    if len(rows) > len(shown) and "signal" in keys:  # signals of different units have no sum
        table.add_row(Text(f"… and {len(rows) - len(shown):,} more", style="dim"))
    elif len(rows) > len(shown):
        rest = rows.tail(len(rows) - len(shown))[f"self_{unit}"].sum()
        symbol = "J" if unit == "j" else shown[0]["unit"]
        more = Text(f"… and {len(rows) - len(shown):,} more", style="dim")
        blank: list[Text] = [Text()] * (len(keys) - 1)
        table.add_row(*([more, *blank] if keys else []), "", si(rest, symbol), percent(rest, whole))
    return table


def _by_signal(found: Attribution, unit: str) -> dict[str, float]:
    """What shares are shares of when rows are by signal: signals may have different units."""
    sums: dict[str, float] = defaultdict(float)
    for signal, measured in zip(found.devices["signal"], found.devices[f"measured_{unit}"], strict=True):
        sums[signal] += measured
    return sums


def _rate_unit(symbol: str) -> str:
    """The unit of a quantity per second: a gauge's own, when the quantity is its integral."""
    return symbol.removesuffix("·s") if symbol.endswith("·s") else {"J": "W"}.get(symbol, f"{symbol}/s")


def _worth_showing(found: Attribution, key: str) -> bool:
    """What the heading of a device says, or what nobody asked for, is not repeated in every row."""
    return key in found.by and key not in ("device", "host", "of")


def _name(value: Any) -> str:
    return " > ".join(value) if isinstance(value, list) else str(value)


def _last(path: list[str] | None) -> str:
    return path[-1] if path else ""


def _own(row: Mapping[str, Any], unit: str, symbol: str, whole: float, device: Mapping[str, Any]) -> tuple[str, str]:
    """What a row has without what it called, and its share; what was never on top of a stack has nothing to say."""
    value = row[f"self_{unit}"]
    if not row["self_ns"] and not value:
        return "–", "–"
    return bounded(value, *self_bounds(row, device, unit), symbol), percent(value, whole)


def self_bounds(
    row: Mapping[str, Any], device: Mapping[str, Any], unit: str = "j"
) -> tuple[float | None, float | None]:
    """The bounds of a row; of an estimate, which has none, what its model says of its error."""
    low, high = row.get(f"self_low_{unit}"), row.get(f"self_high_{unit}")
    error = device["gain_error"] if device["estimated"] else None
    if low is not None or high is not None or not error:
        return low, high
    value = row[f"self_{unit}"]
    return value * (1 - error), value * (1 + error)


def _kinds(found: Attribution) -> dict[str, str]:
    frames = found.recording.frames
    rows = zip(frames.paradigm, frames.role, frames.name, strict=True)
    return {name: kind(paradigm, role, name) for paradigm, role, name in rows}


def problem_lines(found: Attribution) -> Group:
    """What is wrong, a few lines of each kind (JSON has all)."""
    by_kind: dict[str, list[str]] = {}
    for problem in found.problems:
        by_kind.setdefault(problem.kind, []).append(clean(problem.message))
    lines = []
    for what, messages in by_kind.items():
        lines += [Text(f"! {message}", style="yellow") for message in messages[:_ALIKE]]
        if len(messages) > _ALIKE:
            lines.append(Text(f"! … and {len(messages) - _ALIKE} more of the kind {what!r}", style="yellow"))
    return Group(*lines)
