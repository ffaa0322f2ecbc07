"""The page as one HTML file: the same modules and style, and the answers to all questions it may ask, inside.

A small recording comes with every span and curve, so zooming, hovering and brushing are exact; a large one with bins
and with sums per frame and bin, and the page says so. Modules become ``data:`` addresses in the import map, so the file
works from ``file://`` and asks no network for anything (its Content-Security-Policy forbids it).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import NoDataError
from ...files import write_file
from ...model import Curve
from .. import names
from . import energy
from .energy import PageEnergy
from .facts import key, labels
from .server import static
from .session import Session, hosts_too

SMALL = 100_000  # spans: up to so many are all put into the file
BINS = 256  # sums per frame over so many bins, in the file of a large recording
MOST_SUMS = 200_000
_POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"


def write(session: Session, path: str | os.PathLike[str]) -> None:
    """Write the page of a session to ``path``, atomically."""
    write_file(path, page(contents(session)))


def page(data: Mapping[str, Any]) -> str:
    """The HTML: index.html with style, modules and data in place of links."""
    files = {name: body.decode("utf-8") for name, body in static().items()}
    modules = {
        f"wattribute/{name}": f"data:text/javascript;base64,{base64.b64encode(body.encode()).decode()}"
        for name, body in files.items()
        if name.endswith(".js") and name != "live.js"
    }
    # "<" never appears inside a script, so no name can end it
    embedded = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    text = files["index.html"]
    for old, new in (
        ('<link rel="stylesheet" href="static/style.css">', f"<style>{files['style.css']}</style>"),
        ('{"imports": {"wattribute/": "./static/"}}', json.dumps({"imports": modules})),
        ('<link rel="icon" href="data:,">', f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        ('<div id="card"', f'<script type="application/json" id="data">{embedded}</script>\n<div id="card"'),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def contents(session: Session) -> dict[str, Any]:
    """All the page may ask for."""
    tiles = session.tiles
    small = sum(lane.spans for lane in tiles.lanes.values()) <= SMALL
    data: dict[str, Any] = {
        "facts": {**session.facts(len(tiles.frames)), "live": False},
        "exact": small,
        "view": _text(tiles.everything() if small else tiles.whole()),
        "overview": tiles.whole_power(512),
        "burned": [_curve(curve) for curve in tiles.metered.burned],
        "table": session.table(),
        "flame": session.flame(),
        "heat": session.heat(),
        "compare": session.compare(),
    }
    if small:
        data["uses"] = _uses(session, tiles.metered)
        if hosts_too(session.question, tiles.facts):
            data["hosted"] = _hosted(session)
    else:
        data["bins"] = _bins(session)
    return data


def _uses(session: Session, metered: PageEnergy) -> dict[str, Any]:
    """Each lane's curves."""
    return {
        str(location): [
            {"device": use.device, "keep": _text(use.keep.astype(np.uint8).tobytes()), **_curve(use.curve)}
            for use in uses
        ]
        for location, uses in metered.uses.items()
        if location in session.tiles.lanes
    }


def _hosted(session: Session) -> dict[str, Any] | None:
    """The host's view of the devices, for the flame graph of a brushed range."""
    metered = session.view_of(of="host")
    if not metered.books:
        return None
    named = labels(session.tiles.facts["devices"])
    added = energy.addable(metered.books)
    devices = [
        {"key": key(book), "label": named[key(book)], "of": "host", "added": book in added} for book in metered.books
    ]
    return {"devices": devices, "uses": _uses(session, metered)}


def _bins(session: Session) -> dict[str, Any] | None:
    """Self joules per (device, frame, bin); None when there are none, or even that would be too much for a file."""
    per_s = session.tiles.facts["clock"]["ticks_per_s"]
    width_ns = -(-session.tiles.length * 10**9 // (per_s * BINS))
    named = labels(session.tiles.facts["devices"])
    try:
        rows = session.attribution(("device", "frame", f"bin={width_ns}ns"), None).rows.to_dicts()
    except NoDataError:
        return None
    if len(rows) > MOST_SUMS:
        return None
    out: dict[tuple[str, str], dict[str, Any]] = {}
    looks = session.looks()
    for row in rows:
        empty = {"key": key(row), "label": named[key(row)], "frame": names.full(row["frame"]), "at": [], "self_j": []}
        empty |= looks(row["frame"], row["of"])
        entry: dict[str, Any] = out.setdefault((key(row), row["frame"]), empty)
        entry["at"].append(row["bin"])
        entry["self_j"].append(row["self_j"])
    return {"ticks": width_ns * per_s / 1e9, "rows": list(out.values())}


def _curve(curve: Curve) -> dict[str, Any]:
    columns = {
        "times": curve.times,
        "values": curve.values,
        "edges": curve.edges,
        "low": curve.low,
        "high": curve.high,
        "from": curve.pieces.start,
        "to": curve.pieces.end,
    }
    packed = {
        name: None if column is None else _text(np.asarray(column, "<f8").tobytes()) for name, column in columns.items()
    }
    return {**packed, "latency": curve.latency_ticks}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
