"""How often a printed range holds the truth, with the real clock: regions and whole blocks on a replayed counter.

Run it with ``python benchmarks/bounds.py [--count 200]``; a counter of 300 W that moves every millisecond is read every
2 ms, or as often as it is by default; prints how many ranges hold the truth and how wide they are.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from wattribute import record, region
from wattribute.views.regions import used

WATTS = 300.0


def tried(meter: str, interval_s: float | None, longest_s: float, count: int) -> str:
    """One row: regions of random lengths in one recording."""
    lengths_s = np.random.default_rng(1).uniform(0.002, longest_s, count)
    with record(meters=[meter], interval_s=interval_s) as recorder:
        for number, length_s in enumerate(lengths_s):
            with region(f"r{number}"):
                time.sleep(length_s)
    rows = [row for row in used(recorder.recording) if row.name.startswith("r")]
    truths = [WATTS * row.seconds for row in rows]
    held = sum(row.low_j <= truth <= row.high_j for row, truth in zip(rows, truths, strict=True))
    widths = [(row.high_j - row.low_j) / truth for row, truth in zip(rows, truths, strict=True)]
    errors = [abs(row.energy_j - truth) / truth for row, truth in zip(rows, truths, strict=True)]
    every = "as by default" if interval_s is None else f"every {interval_s * 1e3:g} ms"
    words = f"regions of 2 … {longest_s * 1e3:g} ms, read {every}: {held} of {len(rows)} ranges hold the truth"
    return f"{words}; median width {np.median(widths):.1%}, median error {np.median(errors):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "meter.csv")
        rows = "\n".join(f"{ms / 1000},{WATTS * ms / 1000}" for ms in range(300_000))
        path.write_text(f"time_s,GPU 0:energy_j\n{rows}\n")
        for interval_s, longest_s in ((0.002, 0.02), (0.002, 0.2), (None, 0.02), (None, 0.2)):
            print(tried(f"replay:{path}", interval_s, longest_s, count), flush=True)


if __name__ == "__main__":
    main()
