"""A chart → a file: PNG, SVG, PDF, JSON (Vega-Lite), or HTML that needs no network.

Written beside the target and moved into place, so that a reader never sees half a picture. HTML embeds the JavaScript
that vl-convert carries; the chart's specification goes in as JSON in which no "<" is left, so that users' text cannot
end the script.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, OptionError, OutputError

FORMATS = ("png", "svg", "pdf", "html", "json")


def convert() -> Any:
    """vl-convert, or the command that installs it."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("plot", "vl-convert-python") from None
    return vl_convert


def format_of(path: str | os.PathLike[str], known: tuple[str, ...] = FORMATS) -> str:
    """The format a path's ending asks for."""
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in known:
        raise OptionError.unknown("ending of the output file", f".{ending}", [f".{name}" for name in known])
    return ending


def check_place(path: str | os.PathLike[str]) -> None:
    """Say at once that a file cannot be written there, and not after minutes of work."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: the folder {folder} cannot be written to")


def save(chart: Any, path: str | os.PathLike[str], scale: float = 2.0) -> Path:
    """Write a chart; the path's ending says how."""
    ending = format_of(path)
    spec = chart.to_json(indent=None)
    title = Path(path).stem
    if ending == "html":
        data: bytes | str = html(spec, title)
    elif ending == "png":
        data = convert().vegalite_to_png(still(spec), scale=scale)
    elif ending == "svg":
        data = svg(spec)
    elif ending == "pdf":
        data = pdf(spec)
    else:
        data = spec
    return write(path, data)


def svg(spec: str) -> str:
    """The chart as SVG text."""
    return str(convert().vegalite_to_svg(still(spec)))


def pdf(spec: str) -> bytes:
    """The chart as a PDF of one page."""
    return bytes(convert().vegalite_to_pdf(still(spec)))


def still(spec: str) -> dict[str, Any]:
    """The chart without what only a pointer can see: hover cards, the unseen marks that carry them, mark labels."""
    whole: dict[str, Any] = json.loads(spec)
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


def write(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Put data into a file all at once."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)
        os.replace(partial, target)
    except OSError as error:
        raise OutputError(f"{target}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return target


@lru_cache(maxsize=1)
def _bundle() -> str:
    """Vega, Vega-Lite and the embedder in one script that sets ``window.vegaEmbed``."""
    return str(convert().javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def html(spec: str, title: str) -> str:
    """A page that shows the chart with hover cards, without any network."""
    safe = json.dumps(json.loads(spec), ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    ground = json.loads(spec).get("config", {}).get("background", "#fff")
    script = _bundle().replace("</script", "<\\/script")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(title)}</title>
<style>body {{ margin: 0; background: {escape(str(ground))}; }} #chart {{ overflow-x: auto; }}</style>
</head>
<body>
<div id="chart"></div>
<script type="module">
{script}
const actions = {{ export: true, source: false, compiled: false, editor: false }};
window.vegaEmbed("#chart", {safe}, {{ renderer: "svg", actions }});
</script>
</body>
</html>
"""
