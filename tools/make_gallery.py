"""Draws the pictures of docs/gallery.md and lists them there: ``python tools/make_gallery.py [CHART…]``.

Every chart of the registry is drawn: of the made-up job of examples/make_trace.py, or of a made-up experiment. Further
pictures come from real traces in ../shared, and keep their old file where that is not there. Needs Pillow.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import wattribute
from wattribute import plot
from wattribute.model import Device, Link, Signal
from wattribute.plugins import Chart
from wattribute.sessions.experiment import Experiment, RunRow
from wattribute.views import charts

ROOT = Path(__file__).parent.parent
PAGE, OUT = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery"
SHARED = Path(os.environ.get("WATTRIBUTE_SHARED", ROOT.parent / "shared")) / "traces"
LIST = "<!-- charts: written by tools/make_gallery.py -->"

DARK = ("icicle", "memory", "sunburst")
# chart → (trace, title, options of ``draw``); signals are drawn of these only
REAL: dict[str, list[tuple[str, str, dict[str, str]]]] = {
    "power": [("simple-mi300", "Four GPUs while two kernels ran", {})],
    "panels": [("simple-mi300", "Utilisation, power, memory and clocks", {})],
    "memory": [("simple-mi300", "On a dark ground", {})],
    "timeline": [("frontier-hpl-partial", "199 thousand kernels in bins, as opaque as they are busy", {})],
    "heatmap": [
        ("frontier-hpl-partial", "HPL on eight ranks", {}),
        ("frontier-hpl-partial", "Kernels that are templates", {"frame": "rocblas"}),
    ],
    "distribution": [("frontier-hpl-partial", "The kernels of HPL", {})],
    "callgraph": [
        ("cloverleaf-openacc-cuda", "A frame that many call (power made up: the trace has none)", {}),
        ("simple-mi300", "Kernels below the calls that launched them", {"of": "kernels"}),
        ("frontier-hpl-partial", "Kernels whose launching threads were not recorded", {"of": "kernels"}),
    ],
}
BEFORE = {  # how a chart looked before it was changed
    "heatmap": ("heatmap-before.png", "Before: the kernels that are templates were “64>” and “32>”"),
    "callgraph": ("callgraph-before.png", "Before: the same calls, with lines behind boxes"),
}


def save(drawn: Any, name: str) -> None:
    """A PNG in full colour, compressed as well as that can be."""
    from PIL import Image

    picture = plot.save(drawn, OUT / name, scale=1.0)
    Image.open(picture).convert("RGB").save(picture, optimize=True)


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


def powered(recording: wattribute.Recording) -> wattribute.Recording:
    """A recording that has energy; one that has none gets a made-up 150 W for each of its streams."""
    if any(signal.unit in ("J", "W") for signal in recording.signals):
        return recording
    ends = np.array([0, recording.clock.length_ticks])
    joules = np.array([0.0, 150.0 * recording.clock.seconds(recording.clock.length_ticks)])
    signals, devices, links = [], [], []
    for row in range(len(recording.locations)):
        if recording.locations.kind[row] == "gpu":
            host, name = recording.location_host(row), f"GPU {len(signals)}"
            signals.append(Signal("made up", "counter", "J", ends, joules, host=host, device=name))
            devices.append(Device(name, "gpu", host))
            links.append(Link(host, name, (row,), "made up"))
    return replace(recording, signals=tuple(signals), devices=tuple(devices), topology=tuple(links))


def example(chart: Chart[Any], made: wattribute.Recording, looks: dict[str, Any]) -> Any:
    """A chart of something made up; None where the made-up job has nothing to show."""
    if chart.needs == "experiment":
        return chart(made_up_experiment(), **looks)
    if chart.needs == "runs":
        ends = [(0.5 * i, 0.5 * i + 0.5 + 0.03 * (i % 4)) for i in range(9)]
        return chart([wattribute.attribute(made, begin=begin, end=end) for begin, end in ends], **looks)
    return None if chart.needs == "signals" else plot.draw(chart.name, [made], looks=looks)


def pictures(chart: Chart[Any], made: wattribute.Recording) -> list[tuple[str, str]]:
    """Draw the pictures of a chart: (file, title) of each."""
    looks = {"theme": "dark" if chart.name in DARK else "light"}
    drawn = example(chart, made, looks)
    files = []
    if drawn is not None:
        files.append((f"{chart.name}.png", chart.about))
        save(drawn, files[0][0])
    for trace, title, options in REAL.get(chart.name, []):
        files.append(("-".join([chart.name, trace, *options.values()]) + ".png", title))
        if (SHARED / trace).is_dir():
            recording = powered(wattribute.read(SHARED / trace))
            drawn = plot.draw(chart.name, [recording], looks=looks, **options)
            save(drawn, files[-1][0])
    return files + [BEFORE[name] for name in BEFORE if name == chart.name]


def section(chart: Chart[Any], files: list[tuple[str, str]]) -> str:
    about = f"{chart.about[0].upper()}{chart.about[1:]}."
    return "\n\n".join([f"## {chart.name}", about, *(f"![{title}](gallery/{name})" for name, title in files)])


def main() -> None:
    only = sys.argv[1:]
    OUT.mkdir(parents=True, exist_ok=True)
    page, _, before = PAGE.read_text().partition(LIST)
    sections = {text.split()[1]: text.strip() for text in re.split(r"(?m)^(?=## )", before) if text.startswith("## ")}
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        subprocess.run([sys.executable, str(ROOT / "examples" / "make_trace.py"), str(trace)], check=True)
        made = wattribute.read(trace)
        for chart in charts.every():
            if not only or chart.name in only:
                sections[chart.name] = section(chart, pictures(chart, made))
    PAGE.write_text("\n\n".join([page + LIST, *(sections[name] for name in sorted(sections))]) + "\n")


if __name__ == "__main__":
    main()
