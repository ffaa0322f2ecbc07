"""``wattribute info`` in the terminal: a description as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from .names import clean
from .numbers import count, seconds, si

_WIDTH = 160
_ROWS = 40  # of each table; JSON has them all


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
    parts += _titled("Who uses which device", _topology(about["topology"]))
    parts += _titled("Events", _events(about["events_by_kind"]))
    parts += _titled("Score-P metrics", _plugins(about.get("plugins", ())))
    parts += _checks(about["checks"])
    parts += [_text(f"! {one['message']}", "yellow") for one in about["problems"][:_ROWS]]
    if len(about["problems"]) > _ROWS:
        parts.append(
            Text(f"! … and {len(about['problems']) - _ROWS} more problems (--format json lists them)", "yellow")
        )
    return Group(*parts)


def _topology(links: Sequence[dict[str, Any]]) -> Table | None:
    def who(link: dict[str, Any]) -> str:
        number = len(link["locations"])
        return f"{number} {'stream' if link['kinds'] == ['gpu'] else 'thread'}{'' if number == 1 else 's'}"

    rows = ((link["device"], link["host"], who(link), link["reason"]) for link in links)
    return _table(("device", "host", "users", "because"), rows)


def _checks(checks: Sequence[dict[str, Any]]) -> list[RenderableType]:
    """Sensors to be wary of first; what is merely worth knowing is dim."""
    ordered = sorted(checks, key=lambda check: not check["warns"])
    return [_text(f"! {one['message']}", "yellow" if one["warns"] else "dim") for one in ordered[:_ROWS]]


def _head(about: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    kinds = Counter(place["kind"] for place in about["locations"])
    otf2 = about.get("otf2")
    made = f"OTF2 {otf2['version']} by {otf2['creator'] or 'an unknown tool'}" if otf2 else about["format"] or "–"
    contexts = sum(process["kind"] == "accelerator" for process in about["processes"])
    processes = f"{len(about['processes']) - contexts}" + (f", and {contexts} accelerator contexts" if contexts else "")
    paradigms = Counter(about["frames_by_paradigm"]).most_common(8)
    missing = sum(one["events"] for one in about["missing"])
    lines = {
        "recording": about["name"],
        "format": made,
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
    made = [f"{name.removeprefix('SCOREP_')}={settings.get(name, '')}" for name in chosen if "METRIC" not in name]
    return words + (
        f", {len(chosen)} set by hand: {', '.join(made[:5])}{' …' if len(made) > 5 else ''}" if made else ""
    )


def _text(words: str, style: str = "") -> Text:
    """A user's words: never markup, and no control characters, which would speak to the terminal."""
    return Text(clean(words) if words else "", style)


def _titled(title: str, table: Table | None) -> list[RenderableType]:
    return [] if table is None else [Text(title, style="bold underline"), table, Text()]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table | None:
    """A plain table of the first rows; None when there are none."""
    rows = list(rows)
    if not rows:
        return None
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows[:_ROWS]:
        table.add_row(*(_text(cell) for cell in row))
    if len(rows) > _ROWS:
        table.add_row(Text(f"… and {len(rows) - _ROWS} more", style="dim"))
    return table


def _places(about: dict[str, Any]) -> Table | None:
    columns = ("host", "process", "threads", "streams", "metrics", "created by")
    rows = []
    for process in about["processes"]:
        held = process["locations"]
        numbers = [str(held.get(kind, "")) for kind in ("cpu", "gpu", "metric")]
        rows.append((process["host"], process["name"], *numbers, process["creator"] or ""))
    return _table(columns, rows, right=("threads", "streams", "metrics"))


def _signals(signals: Sequence[dict[str, Any]]) -> Table | None:
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
    return _table(columns, rows, right=("readings", "interval"))


def _events(by_kind: dict[str, int]) -> Table | None:
    ordered = sorted(by_kind.items(), key=lambda item: (-item[1], item[0]))
    return _table(("kind", "events"), [(kind, f"{number:,}") for kind, number in ordered], right=("events",))


def _plugins(plugins: Sequence[dict[str, Any]]) -> Table | None:
    def names(metrics: Sequence[str]) -> str:
        return ", ".join(metrics[:4]) + (f" … {len(metrics)} in all" if len(metrics) > 4 else "")

    rows = [
        (one["name"], names(one["metrics"]), ", ".join(f"{k}={v}" for k, v in one["intervals"].items()) or "–")
        for one in plugins
    ]
    return _table(("plug-in", "metrics", "intervals"), rows)
