"""What measuring costs: ``wattribute run`` beside codecarbon and zeus, on simulated GPUs, in one run.

    python benchmarks/overhead.py [--peers PYTHON] [--seconds 20] [--repeats 10] [--gpus 1 8]

* start-up: from launch to the first instruction of the command, minus the same without the tool (median of repeats)
* sampling: CPU time per second of the sampler (or of the peer's thread) at its default rate, in % of one core;
  two lengths are run and subtracted, so imports do not count

PYTHON is an interpreter with codecarbon and zeus-ml installed (default: $WATTRIBUTE_PEERS); without one only wattribute
is measured. The GPUs are the fake libnvidia-ml of tests/meters/fakes: every tool reads the same one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.meters.fakes import FakeNvml, Wave

NOW = "import time; print(time.monotonic_ns())"
SHORT_S = 1.0

CODECARBON = """
import sys, time, resource
t = time.monotonic()
from codecarbon import OfflineEmissionsTracker
tracker = OfflineEmissionsTracker(country_iso_code="FRA", save_to_file=False, log_level="critical")
tracker.start()
ready = time.monotonic() - t
time.sleep(float(sys.argv[1]))
tracker.stop()
usage = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(ready, sum(u.ru_utime + u.ru_stime for u in usage))
"""
ZEUS = """
import multiprocessing, os, sys, time
def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
t = time.monotonic()
from zeus.monitor import PowerMonitor
monitor = PowerMonitor(update_period=0.05)
ready = time.monotonic() - t
time.sleep(float(sys.argv[1]))
print(ready, time.process_time() + sum(cpu_s(child.pid) for child in multiprocessing.active_children()))
"""


def started_s(prefix: list[str], environment: dict[str, str]) -> float:
    """Seconds from launch to the first instruction of the command."""
    begin = time.monotonic_ns()
    command = [*prefix, sys.executable, "-I", "-S", "-c", NOW]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return (int(done.stdout.split()[0]) - begin) / 1e9


def start_up_s(environment: dict[str, str], folder: Path, repeats: int) -> float:
    """The median of interleaved differences."""
    program = [sys.executable, "-m", "wattribute", "run", "--quiet", "-o"]
    extra = []
    for number in range(repeats + 1):  # the first one warms the caches
        bare = started_s([], environment)
        extra.append(started_s([*program, str(folder / f"s{number}.watt"), "--"], environment) - bare)
    return statistics.median(extra[1:])


def sampler_cpu_s(environment: dict[str, str], folder: Path, seconds: float) -> tuple[float, float]:
    """(CPU seconds of the sampler, readings per second of the signal that is read most)."""
    code = (
        "import json, sys; from wattribute.recorders.command import record\n"
        "done = record(['sleep', sys.argv[2]], sys.argv[1])\n"
        "print(json.dumps([done.sampling.cpu_s, max(map(len, done.recording().signals))]))"
    )
    target = folder / f"c{time.monotonic_ns()}.watt"
    command = [sys.executable, "-c", code, str(target), str(seconds)]
    cpu_s, readings = json.loads(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
    return cpu_s, readings / seconds


def peer(python: str, code: str, environment: dict[str, str], *arguments: str) -> tuple[float, float] | None:
    """(seconds until it measures, CPU seconds of the whole process), or None when it fails."""
    done = subprocess.run([python, "-c", code, *arguments], capture_output=True, text=True, env=environment, cwd="/tmp")
    if done.returncode:
        print(f"  (failed: {done.stderr.strip().splitlines()[-1]})")
        return None
    ready, cpu = done.stdout.split()[-2:]
    return float(ready), float(cpu)


def line(tool: str, start_s: float, cpu_percent: float, rate: str) -> None:
    print(f"{tool:<32}{start_s * 1e3:>12.0f} ms{cpu_percent:>12.3f} %   {rate}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default=os.environ.get("WATTRIBUTE_PEERS"))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(f"{'tool':<32}{'start-up':>15}{'of a core':>14}   default rate")
        for gpus in [0, *asked.gpus]:
            environment = FakeNvml(folder, [Wave(300)] * gpus).environment() if gpus else dict(os.environ)
            label = f"{gpus} GPU" if gpus else "no sensor"
            start_s = start_up_s(environment, folder / label.replace(" ", ""), asked.repeats)
            short, _ = sampler_cpu_s(environment, folder, SHORT_S)
            long, rate = sampler_cpu_s(environment, folder, SHORT_S + asked.seconds)
            line(f"wattribute run ({label})", start_s, 100 * (long - short) / asked.seconds, f"{rate:.0f} Hz")
            if not gpus or not asked.peers:
                continue
            for name, code, rate_told in (("codecarbon", CODECARBON, "1/15 Hz"), ("zeus PowerMonitor", ZEUS, "20 Hz")):
                first = peer(asked.peers, code, environment, str(SHORT_S))
                second = peer(asked.peers, code, environment, str(SHORT_S + asked.seconds))
                if first and second:
                    line(f"{name} ({label})", second[0], 100 * (second[1] - first[1]) / asked.seconds, rate_told)


if __name__ == "__main__":
    main()
