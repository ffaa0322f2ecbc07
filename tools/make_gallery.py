"""Draws the pictures of docs/gallery.md: ``python tools/make_gallery.py``.

Most come from the made-up job of examples/make_trace.py; some from real traces in ../shared, and keep their old picture
where that is not there. Needs Pillow to keep the files small.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import wattribute
from wattribute import plot
from wattribute.outputs.experiment import Experiment, RunRow

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


def made_up_experiment() -> Experiment:
    """Sixty runs of three kinds that warm up, wander and now and then stumble; the same every time."""
    chance = random.Random(7)
    runs = []
    for number in range(60):
        mode, power_w, usual_s = (("train", 310.0, 42.0), ("validate", 180.0, 12.0), ("export", 95.0, 6.0))[number % 3]
        duration_s = usual_s * (1 + 0.08 * 0.8 ** (number // 3) + chance.gauss(0, 0.012) + (number in (27, 40)) * 0.16)
        energy_j = duration_s * power_w * (1 + chance.gauss(0, 0.01))
        fate = "its exit code is 1" if number == 33 else ""
        start_ns = 1_714_557_600 * 10**9 + number * 35 * 10**9
        labels, grams = {"mode": mode}, energy_j / 3.6e6 * 56
        runs.append(
            RunRow(f"#{number}", "", labels, start_ns, duration_s, energy_j, grams, 56.0, "France", False, fate)
        )
    return Experiment(tuple(runs), ("#33 is left out: its exit code is 1",))


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
    for kind in plot.OF_EXPERIMENTS:
        shrink(plot.save(plot.draw(kind, [made_up_experiment()]), OUT / f"{kind}.png", scale=1.0))
    for trace_name, kinds in REAL.items():
        if (SHARED / trace_name).is_dir():
            real = wattribute.read(SHARED / trace_name)
            for kind in kinds:
                draw(kind, real, f"{kind}-{trace_name}")


if __name__ == "__main__":
    main()
