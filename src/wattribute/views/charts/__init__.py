"""Charts, one small module per family; ``views.plot`` is their front. Each takes an Attribution, returns Altair.

::

    of_paths | of_rows | of_time   ask attribution (``ask``), reduce to what can be shown, say what was merged
            ↓ rows of plain dicts, which hold all the numbers; nothing is summed by Vega
    flame, heatmap, timeline, …    marks over rows (``canvas``: title, axes, hover cards, caption)
"""

from __future__ import annotations

# kind of chart → what it shows; here, so that the command line can say it without loading anything
KINDS: dict[str, str] = {
    "power": "power of each device over time, what ran behind it",
    "timeline": "spans per device and stream, joules on hover",
    "node": "device power above the lanes of ranks, on one time axis",
    "flame": "call paths, width = joules, root at the bottom",
    "icicle": "call paths, width = joules, root at the top",
    "sunburst": "call paths as rings, angle = joules",
    "heatmap": "process × frame: energy or mean power",
    "distribution": "energy or power per call, a histogram per frame",
    "callgraph": "who called whom, colour = energy (.dot for Graphviz)",
    "panels": "utilisation, power, temperature, memory, clocks of a run",
    "memory": "memory of devices and processes over time",
    "runs": "energy against time of many runs",
    "history": "time, energy and emissions of an experiment's runs against time",
    "histogram": "the same as histograms per label: mean, median, quartiles",
    "carbon": "emissions and intensity over time",
    "books": "measured = attributed + idle, per device",
}
