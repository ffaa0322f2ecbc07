"""An attribution in the terminal: the books of each device, then whose joules, with bars and bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from ..model import Attribution
from ..model.recording import REMARKS
from .description import missing_events
from .fitted_table import FittedTable
from .kinds import KINDS, kinds_by_name
from .names import clean, labels
from .numbers import amount, bounded, count, own_amount, percent, row_range, seconds, si, together, unsure
from .per_unit import line_per_unit, row_per_unit
from .selection import line_left_out
from .terminal import Console

if TYPE_CHECKING:
    from ..model import Answer

_ROWS = 15  # of each device, unless asked for more
_BAR = 12
_NUMBERS = 82  # columns that bar and numbers take
_WIDTH = 160  # where the terminal's width is unknown
_ALIKE = 3  # problems of one kind
_DEVICES = 6  # devices named in one line
_BOOKS = 100  # devices in the table of books, on a terminal
_TABLES = 32  # devices with a table of their rows, on a terminal
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def show_attribution(attribution: Answer, top: int | None = None, output: Path | None = None) -> None:
    """Print an attribution, or write it as plain text."""
    if output is None or str(output) == "-":
        console = _console()
        console.print(attribution_tables(attribution, top, console.width, limited=console.is_terminal))
        _console(stderr=True).print(problem_lines(attribution))
        return
    from ..errors import OutputError

    try:
        with output.open("w", encoding="utf-8") as file:
            console = Console(file=file, width=_WIDTH, no_color=True)
            console.print(attribution_tables(attribution, top, _WIDTH), problem_lines(attribution), sep="\n")
    except OSError as error:
        raise OutputError(f"{output}: cannot be written: {error.strerror or error}") from error


def _console(stderr: bool = False) -> Console:
    """As wide as the terminal; where there is none, wide enough."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDTH)


def attribution_tables(
    attribution: Answer, top: int | None = None, width: int = _WIDTH, limited: bool = False
) -> RenderableType:
    """Books, then rows: one table per device when rows are by device, else one for all.

    With ``limited`` only the first of many devices are shown.
    """
    unit, common = attribution.suffix, _Common.of(attribution)
    parts: list[RenderableType] = [attribution_head(attribution, limited=limited)]
    if "device" not in attribution.rows.columns:
        every = together(attribution.devices.to_dicts())
        return Group(*parts, Text(), _rows(attribution, attribution.rows, unit, top, None, every, width, common))
    keys = [key for key in ("run", "host", "device", "of") if key in attribution.devices.columns]
    rows = attribution.rows.partition_by(keys, as_dict=True, maintain_order=True)
    named = dict.fromkeys(tuple(device[key] for key in keys) for device in attribution.devices.to_dicts())
    shown = {*[name for name in named if name in rows][: _TABLES if limited else None]}
    for device in attribution.devices.to_dicts():
        name = tuple(device[key] for key in keys)
        if name in shown:
            same = rows[name]
            run = f"{clean(device['run'])}  " if "run" in device else ""
            title = Text.assemble(
                run, (clean(device["device"]), "bold"), " estimated" if device["estimated"] else "",
                f"  {clean(device['host'])}  of {device['of']}" if device["host"] else f"  of {device['of']}",
            )  # fmt: skip
            table = _rows(attribution, same, unit, top, device[f"measured_{unit}"], device, width, common)
            parts += [Text(), title, table]
    if len(rows) > len(shown):
        words = f"… and {len(rows) - len(shown):,} more devices; --by frame has one table for all, -o FILE every device"
        parts += [Text(), Text(words, style="dim")]
    return Group(*parts)


class _Common(NamedTuple):
    """What the tables of all devices need."""

    kinds: dict[str, dict[str, str]]
    by_signal: dict[str, float]
    wholes: dict[str, float]

    @classmethod
    def of(cls, attribution: Answer) -> _Common:
        unit = attribution.suffix
        by_signal = _by_signal(attribution, unit) if "signal" in attribution.by else {}
        return cls(_kinds(attribution), by_signal, wholes(attribution, unit))


def attribution_head(attribution: Answer, share_of: str = "", limited: bool = False) -> RenderableType:
    """The books of each device, the rules they follow, and what the rows that were not selected received.

    ``share_of`` says what the column share refers to, if not to all that was measured. With ``limited`` the books of
    many devices end with the sum of the others.
    """
    lines: list[RenderableType] = [
        *_missing(attribution),
        _books(attribution, attribution.suffix, limited),
        *_not_counted(attribution),
        _caption(attribution, share_of),
    ]
    lines += _per_unit(attribution)
    if attribution.left_out:
        lines.append(Text(line_left_out(attribution)))
    return Group(*lines)


def _missing(attribution: Answer) -> list[Text]:
    """What could not be read, before any number that is without it."""
    text = missing_events(attribution.recording) if isinstance(attribution, Attribution) else ""
    return [Text(f"! {text}", style="yellow")] if text else []


def _per_unit(attribution: Answer) -> list[Text]:
    """What was measured per unit of work, of one run."""
    words = line_per_unit(attribution) if isinstance(attribution, Attribution) else ""
    return [Text(words)] if words else []


def wholes(attribution: Answer, unit: str) -> dict[str, float]:
    """The whole that shares refer to, for each view: all that the counted devices measured."""
    sums: dict[str, float] = defaultdict(float)
    for device in _shown_books(attribution):
        sums[device["of"]] += device[f"measured_{unit}"] or 0.0
    return sums


def _caption(attribution: Answer, share_of: str = "") -> Text:
    if attribution.in_seconds:
        return Text("seconds of each thread and stream", style="dim")
    words = f"method {attribution.question.method}, share {attribution.question.share}"
    if attribution.question.share == "full":
        words += " (every active user gets all of it: sums count double)"
    if attribution.unit and "signal" not in attribution.by:
        whole = ", ".join(si(whole, attribution.unit) for whole in wholes(attribution, attribution.suffix).values())
        what = "estimated" if any(device["estimated"] for device in _shown_books(attribution)) else "measured"
        words += f"; the column share is of {share_of or f'{whole} {what}'}"
    return Text(words, style="dim")


def _books(attribution: Answer, unit: str, limited: bool) -> FittedTable:
    table = FittedTable(drop=("users", "of", "signal", "coverage"))
    hosts = attribution.devices["host"].n_unique() > 1
    named: list[str] = [
        name for name in ("run", "device", "host", "signal", "of") if name in attribution.devices.columns
    ]
    one = {"host": not hosts, "signal": not attribution.devices.select(set(named) - {"signal"}).is_duplicated().any()}
    named = [name for name in named if not one.get(name)]
    for name in named:
        table.add_column(name, no_wrap=True)
    for name in ("measured", "", "attributed", "", "idle", "", "coverage", "users"):
        table.add_column(name, justify="right", no_wrap=True)
    books = _shown_books(attribution)
    shown = books[:_BOOKS] if limited else books
    for row in shown:
        amounts = [row[f"{name}_{unit}"] for name in ("measured", "attributed", "idle")]
        measured, attributed, idle = (amount(one, row["unit"]) for one in amounts)
        if row["estimated"] and row["gain_error"]:
            measured = bounded(amounts[0], *((1 + e) * amounts[0] for e in (-row["gain_error"], row["gain_error"])))
        notes = " estimated" if row["estimated"] else ""
        names = (Text(clean(row[name]) + (notes if name == "device" else "")) for name in named)
        table.add_row(
            *names,
            *(measured, "=", attributed, "+", idle),
            bar(amounts[1], amounts[0], "kernel" if row["of"].startswith("kernels") else "user"),
            "–" if row["coverage"] is None else percent(row["coverage"], 1.0),
            count(row["users"]) if row["users"] else "nobody",
        )
    if more := books[len(shown) :]:
        blank: list[Text] = [Text()] * (len(named) - 1)
        table.add_row(Text(f"… and {len(more):,} more", style="dim"), *blank, *_sums(more, unit))
    return table


def _sums(books: Sequence[Mapping[str, Any]], unit: str) -> list[str]:
    """What devices measured, gave to rows and had idle together; nothing where their units differ."""
    if len({row["unit"] for row in books}) > 1:
        return []
    names = ("measured", "attributed", "idle")
    whole, used, idle = (amount(sum(row[f"{name}_{unit}"] or 0.0 for row in books), books[0]["unit"]) for name in names)
    return [whole, "=", used, "+", idle]


def _shown_books(attribution: Answer) -> list[dict[str, Any]]:
    """The devices that count; all of them when rows are by signal or nothing counts."""
    rows: list[dict[str, Any]] = attribution.devices.to_dicts()
    counted = [row for row in rows if row["counted"]]
    return rows if "signal" in attribution.by or not counted else counted


def _not_counted(attribution: Answer) -> list[Text]:
    """The devices that do not count, a line for each reason."""
    hosts = attribution.devices["host"].n_unique() > 1
    names: dict[str, list[str]] = {}
    for row in attribution.devices.to_dicts():
        if not row["counted"]:
            measured = row[f"measured_{attribution.suffix}"]
            size = f" {amount(measured, row['unit'])}" if measured else ""
            host = f" on {clean(row['host'])}" if hosts and row["host"] else ""
            names.setdefault(row["why"], []).append(f"{clean(row['device'])}{host}{size}")
    lines = []
    for why, devices in names.items():
        more = f" and {len(devices) - _DEVICES} more" if len(devices) > _DEVICES else ""
        lines.append(Text(f"not counted: {', '.join(devices[:_DEVICES])}{more} ({why})", style="dim"))
    return lines


def bar(part: float, whole: float, what: str) -> Text:
    """A bar of eighths in the colour of a kind of work."""
    filled = max(0, min(_BAR * 8, round(_BAR * 8 * part / whole))) if whole > 0 else 0
    full, rest = divmod(filled, 8)
    text = "█" * full + (_EIGHTHS[rest] if rest else "")
    return Text(text.ljust(_BAR, "░"), style=KINDS[what][1])


def _rows(
    attribution: Answer,
    rows: Any,
    unit: str,
    top: int | None,
    used: float | None,
    device: Mapping[str, Any],
    width: int,
    common: _Common,
) -> FittedTable:
    """Rows as a table; bars are of ``used``, what the device measured, or else, as shares are, of all devices."""
    keys = [name for name in rows.columns[: rows.columns.index(f"self_{unit}")] if _worth_showing(attribution, name)]
    shown = rows.head(top or _ROWS).to_dicts()
    room = max(24, (width - _NUMBERS) // max(1, len(keys)))  # long names share what the numbers leave
    names = {key: labels((_cell(row, key) for row in shown), room) for key in keys}
    kinds, by_signal, all_used = common
    table = FittedTable(drop=("mean", "min", "max", "calls", "power", "rate", "time", "total"))
    for key in keys:
        table.add_column(key, no_wrap=True)
    table.add_column("")
    rates = () if attribution.in_seconds else ("time", "power" if unit == "j" else "rate")
    for name in ("self", "share", "total", *rates, "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    extra = [name for name in ("mean", "min", "max") if name in rows.columns]
    grams = ["co2e_g"] if "co2e_g" in rows.columns else []
    heads, each = _per_columns(attribution, rows, unit, device)
    for name in (*extra, *("CO2e" for _ in grams), *heads):
        table.add_column(name, justify="right", no_wrap=True)
    timed = all(
        one.metadata.get("timeline") != "samples" for one in attribution.recordings
    )  # which were laid end to end, a made-up time each
    for row in shown:
        symbol = "J" if unit == "j" else row["unit"]
        rate = row["power_w"] if unit == "j" else row["self_rate"]
        whole = by_signal.get(row.get("signal"), all_used.get(row["of"], 0.0))
        cells = (
            seconds(row["self_ns"] / 1e9) if row["self_ns"] and timed else "–",
            si(rate if timed else None, "W" if unit == "j" else _rate_unit(symbol)),
        )
        table.add_row(
            *(Text(names[key][_cell(row, key)]) for key in keys),
            bar(
                row[f"self_{unit}"],
                whole if used is None or by_signal else used,
                kinds[row["of"]].get(row.get("frame") or _last(row.get("path")), "user"),
            ),
            *own_amount(row, unit, symbol, whole, device),
            amount(row[f"total_{unit}"], symbol),
            *cells[: len(rates)],
            _calls(row),
            *(si(row[name], "W" if unit == "j" else _rate_unit(symbol)) for name in extra),
            *(si(row[name], "g") for name in grams),
            *each(row, symbol),
            style="dim" if unsure(row[f"self_{unit}"], *row_range(row, device, unit)) else "",
        )
    if len(rows) > len(shown) and "signal" in keys:  # signals of different units have no sum
        table.add_row(Text(f"… and {len(rows) - len(shown):,} more", style="dim"))
    elif len(rows) > len(shown):
        rest = rows.tail(len(rows) - len(shown))[f"self_{unit}"].sum()
        symbol = "J" if unit == "j" else shown[0]["unit"]
        more = Text(f"… and {len(rows) - len(shown):,} more", style="dim")
        blank: list[Text] = [Text()] * (len(keys) - 1)
        whole = sum(all_used[of] for of in rows["of"].unique())
        table.add_row(*([more, *blank] if keys else []), "", amount(rest, symbol), percent(rest, whole))
    return table


def _per_columns(
    attribution: Answer, rows: Any, unit: str, device: Mapping[str, Any]
) -> tuple[list[str], Callable[[Mapping[str, Any], str], list[str]]]:
    """Heads and cells of ``--per``: what was counted in a row and its total per unit of it; where nothing was counted
    inside any row, what each contributed to a unit of the run."""
    if attribution.question.per is None:
        return [], lambda row, symbol: []
    per = clean(attribution.question.per)
    if not (rows["count"] > 0).any():
        return [f"self per {per} of the run"], lambda row, symbol: [si(row[f"run_{unit}_per_unit"], symbol)]

    grams = ["co2e_g"] if "co2e_g_per_unit" in rows.columns else []

    def cells(row: Mapping[str, Any], symbol: str) -> list[str]:
        amounts = [row_per_unit(row, device, unit, symbol), *(row_per_unit(row, device, name, "g") for name in grams)]
        return [count(row["count"]) if row["count"] else "–", *amounts, si(row["s_per_unit"], "s")]

    return [per, f"total per {per}", *(f"CO2e per {per}" for _ in grams), f"time per {per}"], cells


def _by_signal(attribution: Answer, unit: str) -> dict[str, float]:
    """What shares are shares of when rows are by signal: signals may have different units."""
    sums: dict[str, float] = defaultdict(float)
    for signal, measured in zip(attribution.devices["signal"], attribution.devices[f"measured_{unit}"], strict=True):
        sums[signal] += measured
    return sums


def _rate_unit(symbol: str) -> str:
    """The unit of a quantity per second: a gauge's own, when the quantity is its integral."""
    return symbol.removesuffix("·s") if symbol.endswith("·s") else {"J": "W", "#": "/s"}.get(symbol, f"{symbol}/s")


def _cell(row: Mapping[str, Any], key: str) -> str:
    """The name of a row under a key; of a bin or a reading, where it begins."""
    if key not in ("bin", "reading"):
        return _name(row[key])
    return f"{row['begin_ns'] / 1e9:.6f}".rstrip("0").rstrip(".") + " s"


def _worth_showing(attribution: Answer, key: str) -> bool:
    """What was asked for, unless the heading of a device says it."""
    return key in attribution.by and ("device" not in attribution.by or key not in ("device", "host", "of"))


def _calls(row: Mapping[str, Any]) -> str:
    """All calls; those of a recursive function as pstats prints them, "15/1": one of them came from outside of it."""
    primitive = row.get("primitive_calls")
    calls = count(row["calls"]) if "calls" in row else "1"
    return calls if primitive in (None, row.get("calls")) else f"{calls}/{count(primitive)}"


def _name(value: Any) -> str:
    return " > ".join(value) if isinstance(value, list) else str(value)


def _last(path: list[str] | None) -> str:
    return path[-1] if path else ""


def _kinds(attribution: Answer) -> dict[str, dict[str, str]]:
    """Kinds of work by frame name, for each view of the rows."""
    tables = [recording.frames for recording in attribution.recordings]
    return {
        of: {name: what for table in tables for name, what in kinds_by_name(table, of).items()}
        for of in attribution.rows["of"].unique()
    }


def problem_lines(attribution: Answer) -> Group:
    """Remarks, then what is wrong, marked "!"; a few lines of each kind (JSON has all)."""
    by_kind: dict[str, list[str]] = {}
    for problem in attribution.problems:
        by_kind.setdefault(problem.kind, []).append(clean(problem.message))
    lines = []
    for what, messages in sorted(by_kind.items(), key=lambda item: item[0] not in REMARKS):
        lines += [problem_line(what, message) for message in messages[:_ALIKE]]
        if len(messages) > _ALIKE:
            lines.append(problem_line(what, f"… and {len(messages) - _ALIKE} more of the kind {what!r}"))
    return Group(*lines)


def problem_line(kind: str, message: str) -> Text:
    """One problem of a kind: a remark dim, what is wrong yellow and marked "!"."""
    return Text(message, style="dim") if kind in REMARKS else Text(f"! {message}", style="yellow")
