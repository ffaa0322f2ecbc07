"""Draws the pictures of docs/gallery.md: ``python tools/make_gallery.py``.

Most come from the made-up job of examples/make_trace.py; some from real traces in ../shared, and keep their old picture
where that is not there. Needs Pillow to keep the files small.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import wattribute
from wattribute import plot

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "gallery"
SHARED = Path(os.environ.get("WATTRIBUTE_SHARED", ROOT.parent / "shared")) / "traces"

MADE = ("books", "timeline", "node", "flame", "icicle", "sunburst", "heatmap", "callgraph", "carbon")
REAL = {"simple-mi300": ("power", "panels", "memory"), "frontier-hpl-partial": ("distribution", "heatmap", "timeline")}
DARK = {"icicle", "memory", "sunburst"}


def draw(kind: str, recording: wattribute.Recording, name: str) -> None:
    """One picture, on the ground its page shows it on."""
    looks = {"theme": "dark" if kind in DARK else "light"}
    shrink(plot.save(plot.draw(kind, [recording], looks=looks), OUT / f"{name}.png", scale=1.0))


def shrink(picture: Path) -> None:
    """A palette of 64 colours is a quarter of the size, and nobody sees the difference."""
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        subprocess.run([sys.executable, str(ROOT / "examples" / "make_trace.py"), str(trace)], check=True)
        made = wattribute.read(trace)
        for kind in MADE:
            draw(kind, made, kind)
        parts = [wattribute.attribute(made, begin=0.5 * i, end=0.5 * i + 0.5 + 0.03 * (i % 4)) for i in range(9)]
        shrink(plot.save(plot.runs(parts), OUT / "runs.png", scale=1.0))
    for trace_name, kinds in REAL.items():
        if (SHARED / trace_name).is_dir():
            real = wattribute.read(SHARED / trace_name)
            for kind in kinds:
                draw(kind, real, f"{kind}-{trace_name}")


if __name__ == "__main__":
    main()
