"""Streaming a Chrome trace of 1 GB (PyTorch's layout, generated once) into spans: MB/s and peak memory.

``python benchmarks/chrome.py [--megabytes 1000] [--folder DIR]``. The peers parse a tenth of it and keep nothing: json
of the standard library the whole document, ijson (if installed) event by event.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = '{\n  "schemaVersion": 1,\n  "baseTimeNanoseconds": 1790857026000000000,\n  "traceEvents": [\n'
TAIL = '  {"ph": "i", "name": "end", "pid": 1, "tid": 1, "ts": 0}\n  ]\n}\n'
STEP_US, NAMES = 25, 200
BOUND = 0.5  # of the file's size


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--work":
        work(sys.argv[2], Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wattribute-benchmarks")
    parser.add_argument("--megabytes", type=int, default=1000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before; fresh processes")
    big, small = (generate(given.folder, size) for size in (given.megabytes, given.megabytes // 10))
    ours = measured("wattribute", big)
    measured("wattribute", small)
    measured("json.load", small)
    measured("ijson", small)
    ratio = ours["peak_bytes"] / big.stat().st_size
    verdict = "ok" if ratio <= BOUND else "TOO MUCH"
    each = ours["peak_bytes"] / ours["events"]
    print(f"peak memory of wattribute: {ratio:.2f} of the file, {each:.0f} bytes a span; at most {BOUND}: {verdict}")


def generate(folder: Path, megabytes: int) -> Path:
    """Operators on one thread, each launching a kernel on one of two streams."""
    path = folder / f"chrome-{megabytes}MB.json"
    if path.exists():
        return path
    names = [f"void at::native::vectorized_elementwise_kernel<4, functor_{i}<float>>(int)" for i in range(NAMES)]
    at = 0
    with open(path.with_suffix(".part"), "w", encoding="utf-8") as file:
        file.write(HEAD)
        while file.tell() < megabytes * 10**6:
            file.write("".join(events(at, names) for at in range(at, at + 5000)))
            at += 5000
        file.write(TAIL)
    path.with_suffix(".part").replace(path)
    return path


def events(at: int, names: list[str]) -> str:
    ts = at * STEP_US
    return f"""  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op_{at % NAMES}", "pid": 4711, "tid": 4711,
    "ts": {ts}.125, "dur": 20.250,
    "args": {{
      "External id": {at}, "Record function id": 0, "Ev Idx": {at}
    }}
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{names[at % NAMES]}", "pid": 0, "tid": {7 + at % 2},
    "ts": {ts + 5}.500, "dur": 19.000,
    "args": {{
      "queued": 0, "device": 0, "context": 1, "stream": {7 + at % 2}, "correlation": {at}, "grid": [80, 1, 1]
    }}
  }},
"""


def measured(peer: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--work", peer, str(path)], capture_output=True, text=True)
    if done.returncode:
        print(f"{peer:12} {done.stderr.strip().splitlines()[-1]}")
        return {}
    found: dict[str, float] = json.loads(done.stdout)
    size = path.stat().st_size / 1e6
    speed = f"{size / found['wall_s']:6.1f} MB/s ({size / found['cpu_s']:.1f} of CPU time)"
    peak = f"peak {found['peak_bytes'] / 1e6:.0f} MB"
    print(f"{peer:12} {size:6.0f} MB  {found['events']:>10,} spans  {found['wall_s']:6.1f} s  {speed}  {peak}")
    return found


def work(peer: str, path: Path) -> None:
    """One peer in this process; what it took is printed as JSON, imports and what they hold apart."""
    import wattribute.readers

    begin, cpu = time.perf_counter(), time.process_time()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if peer == "wattribute":
        found = wattribute.read(path)
        count = sum(len(found.spans.spans(at)) for at in found.spans.locations())
    elif peer == "json.load":
        with open(path, encoding="utf-8") as file:
            count = sum(event["ph"] == "X" for event in json.load(file)["traceEvents"])
    else:
        import ijson

        with open(path, "rb") as file:
            count = sum(event["ph"] == "X" for event in ijson.items(file, "traceEvents.item"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base
    took = {"wall_s": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu}
    print(json.dumps({"events": count, "peak_bytes": peak * 1024, **took}))


if __name__ == "__main__":
    main()
