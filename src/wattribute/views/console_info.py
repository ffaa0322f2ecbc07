"""``wattribute info`` in the terminal: a description as tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..model.recording import REMARKS
from .fitted_table import FittedTable
from .names import clean
from .numbers import count, seconds, si
from .terminal import Console

_WIDTH = 160
_ROWS = 40  # of each table; JSON has them all
_NUMBER = re.compile(r"\d[\d,.]*")


def show_info(about: dict[str, Any]) -> None:
    """Print a description, as wide as the terminal; where there is none, wide enough."""
    console = Console()
    console = console if console.is_terminal else Console(width=_WIDTH)
    console.print(info_tables(about))


def info_tables(about: dict[str, Any]) -> RenderableType:
    """Head, what ran where, signals, events, and problems last, where they are seen."""
    parts: list[RenderableType] = [_head(about), Text()]
    parts += _titled("What ran where", _places(about))
    parts += _titled("Signals", _signals(about["signals"]))
    parts += _titled("Sensors", _sensors(about["signals"]))
    parts += _titled("Who uses which device", _topology(about["topology"]))
    parts += _titled("Events", _events(about["events_by_kind"]))
    parts += _titled("Score-P metrics", _plugins(about.get("plugins", ())))
    parts += _remarks((one["message"] for one in about["checks"] if not one["warns"]), "", "dim")
    parts += _remarks((one["message"] for one in about["checks"] if one["warns"]), "! ", "yellow")
    remarks = [one["message"] for one in about["problems"] if one["kind"] in REMARKS]
    parts += _remarks(remarks, "", "dim")
    parts += _remarks((one["message"] for one in about["problems"] if one["kind"] not in REMARKS), "! ", "yellow")
    return Group(*parts)


def _topology(links: Sequence[dict[str, Any]]) -> FittedTable | None:
    def who(link: dict[str, Any]) -> str:
        number = len(link["locations"])
        return f"{number} {'stream' if link['kinds'] == ['gpu'] else 'thread'}{'' if number == 1 else 's'}"

    rows = ((link["device"], link["host"], who(link), link["reason"]) for link in links)
    return _table(("device", "host", "users", "because"), rows)


def _remarks(messages: Iterable[str], mark: str, style: str) -> list[RenderableType]:
    """A line for each remark; those that differ in names and numbers only are one line with their count."""
    alike: dict[str, list[str]] = {}
    for message in messages:
        alike.setdefault(_NUMBER.sub("0", message.partition(": ")[2] or message), []).append(message)
    lines = []
    for same in list(alike.values())[:_ROWS]:
        words = "times" if len({*same}) == 1 else "of this kind"
        more = "" if len(same) == 1 else f" ({len(same)} {words})"
        lines.append(_text(f"{mark}{same[0]}{more}", style))
    if len(alike) > _ROWS:
        hidden = sum(map(len, list(alike.values())[_ROWS:]))
        lines.append(_text(f"{mark}… and {hidden:,} more remarks (--format json lists them)", style))
    return list(lines)


def _head(about: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    kinds = Counter(place["kind"] for place in about["locations"])
    otf2 = about.get("otf2")
    written_as = f"OTF2 {otf2['version']} by {otf2['creator'] or 'an unknown tool'}" if otf2 else about["format"] or "–"
    contexts = sum(process["kind"] == "accelerator" for process in about["processes"])
    processes = f"{len(about['processes']) - contexts}" + (f", and {contexts} accelerator contexts" if contexts else "")
    paradigms = Counter(about["frames_by_paradigm"]).most_common(8)
    missing = sum(one["events"] for one in about["missing"])
    lines = {
        "recording": about["name"],
        "format": written_as,
        "time": seconds(about["seconds"]),
        "hosts": f"{len(about['hosts'])}: {', '.join(about['hosts'][:8])}{' …' if len(about['hosts']) > 8 else ''}",
        "processes": processes,
        "locations": ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none",
        "devices": ", ".join(dict.fromkeys(device["name"] for device in about["devices"])) or "none metered",
        "frames": f"{count(about['frames'])}: {', '.join(f'{n} {name}' for name, n in paradigms)}",
        "events": f"{about['events']:,}"
        + (f" read, {missing:,} missing in {len(about['missing'])} locations" if missing else ""),
        "core": about["core"],
    }
    if "scorep.cfg" in about:
        lines["Score-P"] = _settings(about["scorep.cfg"], about.get("manifest", ()))
    for name, words in lines.items():
        table.add_row(name, _text(words))
    return table


def _settings(settings: dict[str, str], chosen: Sequence[str]) -> str:
    """How the run was configured: the settings that the user made, as far as the manifest tells."""
    words = f"{len(settings)} settings in scorep.cfg"
    assignments = [
        f"{name.removeprefix('SCOREP_')}={settings.get(name, '')}" for name in chosen if "METRIC" not in name
    ]
    return words + (
        f", {len(chosen)} set by hand: {', '.join(assignments[:5])}{' …' if len(assignments) > 5 else ''}"
        if assignments
        else ""
    )


def _text(words: str, style: str = "") -> Text:
    """A user's words: never markup, and no control characters, which would speak to the terminal."""
    return Text(clean(words) if words else "", style)


def _titled(title: str, table: FittedTable | None) -> list[RenderableType]:
    return [] if table is None else [Text(title, style="bold underline"), table, Text()]


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), drop: Sequence[str] = ()
) -> FittedTable | None:
    """A plain table of the first rows; None when there are none."""
    rows = list(rows)
    if not rows:
        return None
    table = FittedTable(drop=drop)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows[:_ROWS]:
        table.add_row(*(_text(cell) for cell in row))
    if len(rows) > _ROWS:
        table.add_row(Text(f"… and {len(rows) - _ROWS} more", style="dim"))
    return table


def _places(about: dict[str, Any]) -> FittedTable | None:
    columns = ("host", "process", "threads", "streams", "metrics", "created by")
    rows = []
    for process in about["processes"]:
        held = process["locations"]
        numbers = [str(held.get(kind, "")) for kind in ("cpu", "gpu", "metric")]
        rows.append((process["host"], process["name"], *numbers, process["creator"] or ""))
    return _table(columns, rows, right=("threads", "streams", "metrics"))


def _signals(signals: Sequence[dict[str, Any]]) -> FittedTable | None:
    columns = ("signal", "kind", "unit", "device", "host", "readings", "interval", "")
    rows = [
        (
            one["name"],
            one["kind"],
            one["unit"],
            one["device"] or "–",
            one["host"],
            count(one["readings"]),
            "–" if one["interval_ns"] is None else si(one["interval_ns"] / 1e9, "s"),
            "never changes" if one["constant"] else "",
        )
        for one in signals
    ]
    return _table(columns, rows, right=("readings", "interval"), drop=("", "host", "device"))


def _sensors(signals: Sequence[dict[str, Any]]) -> FittedTable | None:
    """Which line of the sensor table speaks for which signals."""
    named: dict[str, list[str]] = {}
    for one in signals:
        if one.get("sensor"):
            named.setdefault(one["sensor"], []).append(one["name"])
    rows = [
        (names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else ""), line) for line, names in named.items()
    ]
    return _table(("signals", "measure as"), rows) if rows else None


def _events(by_kind: dict[str, int]) -> FittedTable | None:
    ordered = sorted(by_kind.items(), key=lambda item: (-item[1], item[0]))
    return _table(("kind", "events"), [(kind, f"{number:,}") for kind, number in ordered], right=("events",))


def _plugins(plugins: Sequence[dict[str, Any]]) -> FittedTable | None:
    def names(metrics: Sequence[str]) -> str:
        return ", ".join(metrics[:4]) + (f" … {len(metrics)} in all" if len(metrics) > 4 else "")

    rows = [
        (one["name"], names(one["metrics"]), ", ".join(f"{k}={v}" for k, v in one["intervals"].items()) or "–")
        for one in plugins
    ]
    return _table(("plug-in", "metrics", "intervals"), rows)
