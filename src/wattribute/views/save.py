"""A chart → a file: PNG, SVG, PDF, JSON (Vega-Lite), or HTML that needs no network.

Written beside the target and moved into place, so that a reader never sees half a picture. HTML embeds the JavaScript
that vl-convert carries; the chart's specification goes in as JSON in which no "<" is left, so that users' text cannot
end the script.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, OptionError
from ..files import STANDARD_OUTPUT, check_writable, user_folder, write_file
from .theme import WIDTH

_ROUNDS = 5
_CLOSE = 0.02  # of the proportions asked for
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_USUAL_SIZE = 300  # of a view in Vega-Lite
_LEAST_STEP = 2.0
_LINE = 30  # points: a view that is no taller is a line of text or of a legend
TIME = ("time since start", "time (UTC)")  # how the title of an axis of time begins
FORMATS = ("png", "svg", "pdf", "html", "json")
BINARY = ("png", "pdf")


def convert() -> Any:
    """Import vl-convert, or raise with the command that installs it."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("plot", "vl-convert-python") from None
    return vl_convert


def format_of(path: str | os.PathLike[str], known: tuple[str, ...] = FORMATS, format: str | None = None) -> str:
    """The format that was asked for, or that a path's ending stands for; on standard output the first one of text."""
    if format is not None:
        if format not in known:
            raise OptionError.unknown("format", format, known)
        return format
    if os.fspath(path) == STANDARD_OUTPUT:
        return next(name for name in known if name not in BINARY)
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in known:
        raise OptionError.unknown("ending of the output file", f".{ending}", [f".{name}" for name in known])
    return ending


def check_place(path: str | os.PathLike[str], format: str) -> None:
    """Raise early if a file in this format cannot go there."""
    check_writable(path)
    if os.fspath(path) == STANDARD_OUTPUT and format in BINARY and sys.stdout.isatty():
        raise OptionError(f"a terminal cannot show .{format}: write it to a file or a pipe")


def save(
    chart: Any,
    path: str | os.PathLike[str],
    scale: float = 2.0,
    size: tuple[float, float] | None = None,
    format: str | None = None,
) -> Path:
    """Write a chart in a format, by default that of the path's ending; ``-`` is standard output (SVG).

    ``size`` is the width and height of the picture in points.
    """
    ending = format_of(path, format=format)
    spec = chart.to_json(indent=None)
    factor = 1.0
    if size is not None:
        if ending in ("html", "json"):
            raise OptionError(f"--size is for pictures (.png, .svg, .pdf); a .{ending} fits itself to its window")
        spec, factor = resized(spec, size)
    title = "wattribute" if os.fspath(path) == STANDARD_OUTPUT else Path(path).stem
    if ending == "html":
        data: bytes | str = html(spec, title)
    elif ending == "png":
        data = convert().vegalite_to_png(still(spec), scale=scale * factor)
    elif ending == "svg":
        data = _scaled(svg(spec), factor)
    elif ending == "pdf":
        data = pdf(spec) if factor == 1.0 else bytes(convert().svg_to_pdf(_scaled(svg(spec), factor)))
    else:
        data = spec
    return write_file(path, data)


def resized(spec: str, size: tuple[float, float]) -> tuple[str, float]:
    """The chart in the proportions of a size, and the factor that brings it to that size.

    Views are only made wider or taller, since titles and legends need their room; the factor shrinks all alike.
    """
    whole: dict[str, Any] = json.loads(spec)
    width, height = _extent(svg(spec))
    for _ in range(_ROUNDS):  # titles and axes do not stretch, so that each round comes closer
        ratio = (size[0] / size[1]) / (width / height)
        if abs(ratio - 1) < _CLOSE:
            break
        _stretch(whole, max(ratio, 1.0), max(1 / ratio, 1.0))
        width, height = _extent(svg(json.dumps(whole)))
    return json.dumps(whole), min(size[0] / width, size[1] / height)


def _extent(picture: str) -> tuple[float, float]:
    """Width and height of an SVG in points."""
    match = _SIZE.search(picture)
    if match is None:
        raise OptionError("this chart has no size of its own; leave out --size")
    return float(match[1]), float(match[2])


def _scaled(picture: str, factor: float) -> str:
    """An SVG shown at another size; what is drawn follows its viewBox."""
    width, height = _extent(picture)
    if factor == 1.0:
        return picture
    return _SIZE.sub(f'width="{width * factor:g}" height="{height * factor:g}"', picture, count=1)


def _stretch(whole: dict[str, Any], wider: float, taller: float) -> None:
    """Multiply the sizes of all views; one that states none gets the usual size first."""
    usual = whole.get("config", {}).get("view", {})
    waiting = [whole]
    while waiting:
        view = waiting.pop()
        parts = [part for name in ("vconcat", "hconcat", "concat") for part in view.get(name, ())]
        waiting += parts
        if parts:
            continue
        words = _mark(view).get("type") == "text"  # a caption
        for name, ratio in (("width", wider), ("height", taller)):
            now = view.get(name, usual.get(f"continuous{name.title()}", _USUAL_SIZE))
            if isinstance(now, dict) and "step" in now:
                view[name] = {**now, "step": max(_LEAST_STEP, now["step"] * ratio)}
            elif isinstance(now, int | float) and (name == "width" or (now > _LINE and not words)):
                view[name] = max(_LEAST_STEP, now * ratio)


def svg(spec: str) -> str:
    """The chart as SVG text."""
    return str(convert().vegalite_to_svg(still(spec)))


def pdf(spec: str) -> bytes:
    """The chart as a PDF of one page."""
    return bytes(convert().vegalite_to_pdf(still(spec)))


def still(spec: str) -> dict[str, Any]:
    """The chart without what only a pointer can see: hover cards, the unseen marks that carry them, mark labels."""
    whole: dict[str, Any] = json.loads(spec)
    whole.pop("usermeta", None)
    whole.setdefault("config", {})["aria"] = False
    waiting = [whole]
    while waiting:
        view = waiting.pop()
        view.get("encoding", {}).pop("tooltip", None)
        if "layer" in view:
            view["layer"] = [part for part in view["layer"] if _mark(part).get("opacity") != 0]
        for parts in ("layer", "vconcat", "hconcat"):
            waiting.extend(view.get(parts, ()))
    return whole


def _mark(view: dict[str, Any]) -> dict[str, Any]:
    mark = view.get("mark", {})
    return mark if isinstance(mark, dict) else {}


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Vega, Vega-Lite and the embedder in one script that sets ``window.vegaEmbed``.

    vl-convert puts it together for a second or more, so it is kept in the user's cache; without one it is made.
    """
    cached = user_folder("CACHE", "charts") / f"vega-{convert().__version__}.js"
    with suppress(OSError, ValueError):
        return cached.read_text(encoding="utf-8")
    script = str(convert().javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    with suppress(OSError):
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_file(cached, script)
    return script


def zoomable(spec: str) -> dict[str, Any]:
    """The chart in which wheel and drag move all views along time at once; others stay as they are."""
    whole: dict[str, Any] = json.loads(spec)
    parts = [(part, list(_units(part))) for part in whole.get("vconcat", ())]
    axes = [unit["encoding"]["x"] for _, units in parts for unit in units if "x" in unit.get("encoding", {})]
    along_time = [x for x in axes if str((x.get("axis") or {}).get("title", "")).startswith(TIME)]
    times = [x["scale"]["domain"] for x in along_time if "domain" in (x.get("scale") or {})]
    views = []
    for at, (_, units) in enumerate(parts):
        along = [
            unit for unit in units if unit.get("encoding", {}).get("x", {}).get("scale", {}).get("domain") in times
        ]
        for unit in units if along else ():  # words beside the view stay; Vega-Lite would cut them off
            unit["mark"] = {**(_mark(unit) or {"type": unit["mark"]}), "clip": any(unit is other for other in along)}
        if along:
            along[0]["name"] = f"time_{at}"
            views.append(f"time_{at}")
    if views:
        select = {"type": "interval", "encodings": ["x"]}
        whole["params"] = [
            *whole.get("params", ()),
            {"name": "zoom", "select": select, "bind": "scales", "views": views},
        ]
    return whole


def _units(view: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The view, or the views that are laid over one another in it."""
    layers = view.get("layer")
    if layers is None:
        yield view
    for part in layers or ():
        yield from _units(part)


def html(spec: str, title: str) -> str:
    """A page that fills its window with the chart, with hover cards.

    Along time the wheel zooms and dragging moves all views; bins give way to single spans where the chart has them.
    Other charts are zoomed and moved as a whole, and a double click shows all again.
    """
    whole = zoomable(spec)
    spans = whole.pop("usermeta", {}).get("spans", {})
    safe = _in_script(whole)
    ground = json.loads(spec).get("config", {}).get("background", "#fff")
    script = _bundle().replace("</script", "<\\/script")
    page = _PAGE.replace("$GROUND", escape(str(ground))).replace("$TITLE", escape(title))
    here = Path(__file__).parent
    own = "\n".join((here / name).read_text(encoding="utf-8") for name in ("span_zoom.js", "saved_chart.js"))
    own = own.replace("$USUAL", str(WIDTH))
    return page.replace("$SCRIPT", f"{script}\nconst spans = {_in_script(spans)};\nconst spec = {safe};\n{own}")


def _in_script(value: Any) -> str:
    """JSON in which no "<" is left, so that users' text cannot end the script."""
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>$TITLE</title>
<style>body { margin: 0; background: $GROUND; } #chart { overflow-x: auto; }</style>
</head>
<body>
<div id="chart"></div>
<script type="module">
$SCRIPT
</script>
</body>
</html>
"""
