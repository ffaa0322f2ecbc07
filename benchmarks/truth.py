"""Energy tools against a truth: wattribute and its peers on simulated sensors and on recorded GPUs with a real meter.

    python benchmarks/truth.py [--tools wattribute zeus …] [--cases gpu-constant …] [--jobs 2] [-o FOLDER] [--publish]

Every tool has a virtual environment of its own (build/truth/venv) and is called as its documentation says (see
helpers/truth_tool.py). The sensors are a fake libnvidia-ml and a /sys/class/powercap in a mount namespace (root needed;
without it the CPU cases are skipped). The truth is the integral of the simulated power, or of the meter, between the
first and last instant of the work. Writes truth.md, truth.json and truth.svg; ``--publish`` puts them into docs.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import datetime
import functools
import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.meters.fakes import FakeNvml, FakePowercap, Wave

ROOT = Path(__file__).parent.parent
HELPER = Path(__file__).parent / "helpers" / "truth_tool.py"
RECORDED = ROOT.parent / "shared" / "truth-gpu"
LIMIT_S = 90
RANGE_UJ = 262_143_328_850
NVML_STEP_S, RAPL_STEP_S = 0.1, 0.001
REGIONS, OVERHEAD_S = 20, (2.0, 22.0)
MAX_LATE_STEPS, ATTEMPTS = 5, 3  # a run in which the simulated counter was later than that is repeated


@dataclass(frozen=True)
class Tool:
    """A tool, what pip installs for it, what it can be asked, and how it was called."""

    name: str
    packages: tuple[str, ...]
    parts: frozenset[str]
    called: str
    own: bool = False  # has a mode that counts one program
    counter: bool = False  # needs the energy counter of cards like the recorded ones


ALL = frozenset({"gpu", "cpu", "dram"})
TOOLS = (
    Tool("wattribute", (f"{ROOT}[nvidia]",), ALL,
         "`with wattribute.record()`, the work in `with wattribute.region(…)`, "
         "then `wattribute.attribute(recording, by=(\"frame\", \"device\"))`; `scope=\"process\"` for one program",
         True),
    Tool("codecarbon", ("codecarbon",), ALL, "`OfflineEmissionsTracker(measure_power_secs=1)`, `start()`, `stop()`; "
         "`cpu_energy`, `gpu_energy`; `rapl_include_dram` for DRAM; `tracking_mode=\"process\"` for one program", True),
    Tool("zeus", ("zeus",), ALL, "`ZeusMonitor(approx_instant_energy=True)`, `begin_window`, `end_window`",
         counter=True),
    Tool("carbontracker", ("carbontracker", "setuptools<81"), ALL, "`CarbonTracker(epochs=1, update_interval=0.1, "
         "components=…)`, `epoch_start()`, `epoch_end()`; the energy that it sums per epoch, divided by its PUE "
         "(1.58)"),
    Tool("pyJoules", ("pyJoules[nvidia]",), ALL, "`EnergyMeter(DeviceFactory.create_devices())`, `start`, `stop`",
         counter=True),
    Tool("eco2ai", ("eco2ai", "setuptools<81", "pandas<3"), frozenset({"gpu"}),
         "`Tracker(measure_period=1)`, `start()`, `stop()`; "
         "with pandas 2 (it fails with 3); its CPU is a model from the TDP that reads no counter: not asked"),
    Tool("perun", ("perun", "nvidia-ml-py"), ALL, "`@perun(sampling_period=0.1)` around the program, "
         "`@monitor()` around the work; the region's mean power × its runtime, from `register_callback`"),
    Tool("pyRAPL", ("pyRAPL", "pymongo", "pandas"), frozenset({"cpu", "dram"}),
         "`pyRAPL.setup()`, `Measurement.begin()`, `end()`"),
)  # fmt: skip
LEFT_OUT = {
    "powerletrics": "estimates per process without a sensor; prints a running table and no energy of a region",
}


@dataclass(frozen=True)
class Case:
    """What the sensors do, what the program does, and what is asked."""

    name: str
    text: str
    parts: tuple[str, ...]
    gpus: tuple[Wave, ...] = ()
    zones: tuple[tuple[str, str, str, Wave], ...] = ()  # (folder, name, part, wave)
    seconds: float = 2.0
    base_uj: int = 0
    fails: tuple[str, ...] = ()  # lines of the fake's state half-way through
    lost: int | None = None  # the GPU that falls off the bus half-way through
    freezes: bool = False
    command: bool = False
    own: bool = False
    recording: str = ""
    note: str = ""
    step_s: float = RAPL_STEP_S  # of the CPU's counters
    regions: int = 0  # empty ones, before the work


PACKAGE = ("intel-rapl:0", "package-0", "cpu", Wave(80))
WAVES = Wave(300, 60, 0.5, 0.4)
CASES = (
    Case("gpu-constant", "one GPU at 300 W for 2 s", ("gpu",), (Wave(300),)),
    Case("gpu-square", "one GPU, 300 W and 60 W in turn (0.2 s, 0.3 s)", ("gpu",), (WAVES,)),
    Case("cpu-constant", "one package at 80 W for 2 s", ("cpu",), zones=(PACKAGE,)),
    Case("cpu-square", "one package, 120 W and 20 W in turn (0.2 s, 0.3 s)", ("cpu",),
         zones=(("intel-rapl:0", "package-0", "cpu", Wave(120, 20, 0.5, 0.4)),)),
    Case("cpu-2ms", "as cpu-constant, a counter that refreshes every 2 ms instead of 1 ms", ("cpu",), zones=(PACKAGE,),
         step_s=0.002),
    Case("cpu-wrap", "the counter of the package wraps around 2 s before the end", ("cpu",), zones=(PACKAGE,),
         base_uj=RANGE_UJ - 1_600_000_000),  # 20 s after its start: tools start slowly
    Case("cpu-psys", "psys (150 W) beside its package (80 W); asked: the package", ("cpu",),
         zones=(PACKAGE, ("intel-rapl:1", "psys", "psys", Wave(150)))),
    Case("cpu-dram", "package (80 W) and DRAM (12 W); asked: both", ("cpu", "dram"),
         zones=(PACKAGE, ("intel-rapl:0:0", "dram", "dram", Wave(12)))),
    Case("gpu-2", "two GPUs, 300 W and 100 W", ("gpu",), (Wave(300), Wave(100))),
    Case("gpu-4", "four GPUs, 300 W to 150 W", ("gpu",), tuple(Wave(300 - 50 * i) for i in range(4))),
    Case("gpu-8", "eight GPUs, 300 W to 90 W", ("gpu",), tuple(Wave(300 - 30 * i) for i in range(8))),
    Case("gpu-50ms", "a region of 50 ms, 300 W", ("gpu",), (Wave(300),), seconds=0.05,
         note="half of the counter's step: no tool can decide it"),
    Case("command", "a command of 0.3 s, 300 W", ("gpu",), (Wave(300),), seconds=0.3, command=True),
    Case("neighbour",
         "a program that sleeps while another keeps a core busy, package at 80 W; asked: the program's own",
         ("cpu",), zones=(PACKAGE,), own=True, note="truth 0 J; the figure is % of the package"),
    Case("cpu-dies", "the counter of the package stands still from half-way on", ("cpu",), zones=(PACKAGE,),
         freezes=True,
         note="no tool can know the second half"),
    Case("gpu-dies", "the energy counter fails half-way; the power can still be read", ("gpu",), (Wave(300),),
         seconds=3,
         fails=("fail nvmlDeviceGetTotalEnergyConsumption 999",)),
    Case("gpu-lost", "the second of two GPUs falls off the bus half-way", ("gpu",), (Wave(300), Wave(200)),
         seconds=3, lost=1,
         note="truth: the lost one until then"),
    Case("step-A100", "A100 PCIe, recorded: 6 s of load", ("gpu",), recording="step-A100", seconds=6),
    Case("step-3090", "RTX 3090, recorded: 6 s of load", ("gpu",), recording="step-3090", seconds=6),
    Case("square-3090", "RTX 3090, recorded: 50 ms of load and 50 ms of rest in turn", ("gpu",),
         recording="square-3090",
         seconds=6.5),
)  # fmt: skip


@dataclass
class Outcome:
    """What a tool said in a case, beside the truth."""

    case: str
    tool: str
    verdict: str  # answered, refused, crashed, skipped
    text: str = ""
    truth_j: float | None = None
    energy_j: float | None = None
    error_percent: float | None = None
    step_percent: float | None = None
    low_j: float | None = None
    high_j: float | None = None
    held: bool | None = None
    partly: bool = False  # the tool says that it saw only a part of the work
    gap_ms: float | None = None  # between two updates of the simulated CPU counters, at worst
    costs: dict[str, float | None] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------- environments


def install(tool: Tool, folder: Path) -> str:
    """The environment of a tool; returns why it cannot be had, or nothing."""
    place = folder / "venv" / tool.name
    if (place / "installed").exists() and tool.name != "wattribute":
        return ""
    if not (place / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True, capture_output=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *tool.packages]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    (place / "installed").touch()
    return ""


def version(tool: Tool, folder: Path) -> str:
    code = f"from importlib.metadata import version; print(version({tool.name!r}))"
    python = str(folder / "venv" / tool.name / "bin" / "python")
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


# ------------------------------------------------------------------------------------------------------------ sensors


@functools.cache
def meter(name: str) -> tuple[list[float], list[float], list[float]]:
    """A recording's meter: times, powers, and the energy until each time."""
    times, powers, sums = [], [], [0.0]
    with gzip.open(RECORDED / name / "meter.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            times.append(float(row["time_s"]))
            powers.append(float(row["power_w"]))
    for i in range(1, len(times)):
        sums.append(sums[-1] + (times[i] - times[i - 1]) * (powers[i] + powers[i - 1]) / 2)
    return times, powers, sums


def metered_j(name: str, begin_s: float, end_s: float) -> float:
    times, powers, sums = meter(name)

    def until(s: float) -> float:
        i = min(max(bisect.bisect_right(times, s) - 1, 0), len(times) - 1)
        return sums[i] + powers[i] * (s - times[i])

    if begin_s < times[0] or end_s > times[-1]:
        raise ValueError(f"the work ran past the recording {name}")
    return until(end_s) - until(begin_s)


def smi(name: str) -> list[tuple[float, float, float, float]]:
    """A recording's nvidia-smi log: Unix seconds, draw, average, instant."""
    rows, london = [], ZoneInfo("Europe/London")
    with (RECORDED / name / "smi.csv").open() as file:
        for row in csv.DictReader(file, skipinitialspace=True):
            when = datetime.datetime.strptime(row["timestamp"], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=london)
            draw = float(row["power.draw [W]"])
            average, instant = row.get("power.draw.average [W]"), row.get("power.draw.instant [W]")
            rows.append((when.timestamp(), draw, float(average or draw), float(instant or draw)))
    return rows


Truth = Callable[[Sequence[int]], float]


@contextmanager
def replayed(case: Case, folder: Path) -> Iterator[tuple[dict[str, str], dict[str, object], Truth]]:
    rows = smi(case.recording)
    origin = rows[0][0]
    table = folder / "table"
    table.write_text("\n".join(" ".join(f"{value:.4f}" for value in (row[0] - origin, *row[1:])) for row in rows))
    with (RECORDED / case.recording / "spans.csv").open() as file:
        load_s = float(next(csv.DictReader(file))["start"])
    gpus = FakeNvml(folder, [Wave(0)], period_s=0.001)
    card = (
        ["name NVIDIA GeForce RTX 3090", "capability 8 6"]
        if "3090" in case.recording
        else ["name NVIDIA A100-PCIE-40GB"]
    )
    quirks = [f"gpu 0 {line}" for line in (f"table {table}", *card)]
    gpus.write({"nvmlDeviceGetTotalEnergyConsumption": 3}, quirks)

    def truth(instants: Sequence[int]) -> float:
        begin_ns, end_ns, start_ns = instants[0], instants[1], instants[-1]
        return metered_j(case.recording, origin + (begin_ns - start_ns) / 1e9, origin + (end_ns - start_ns) / 1e9)

    yield gpus.variables(), {"table": True, "skip_s": load_s - origin - 1.0}, truth


@contextmanager
def simulated_gpus(case: Case, folder: Path) -> Iterator[tuple[dict[str, str], dict[str, object], Truth]]:
    gpus = FakeNvml(folder, case.gpus, period_s=NVML_STEP_S)
    gpus.write(quirks=[f"gpu {i} name Simulated" for i in range(len(case.gpus))])  # no model that a tool knows
    more: dict[str, object] = {}
    after = [*case.fails, *([] if case.lost is None else [f"gpu {case.lost} lost"])]
    if after:
        more["fault"] = str(folder / "after")
        (folder / "after").write_text(gpus.state.read_text() + "\n".join(after) + "\n")

    def truth(instants: Sequence[int]) -> float:
        ends = [instants[2] if case.lost == i else instants[1] for i in range(len(case.gpus))]
        return sum(gpus.energy_j(i, instants[0], end) for i, end in enumerate(ends))

    yield gpus.variables(), more, truth


@contextmanager
def simulated_cpu(case: Case, folder: Path) -> Iterator[tuple[dict[str, str], dict[str, object], Truth]]:
    """The tree as a kernel lays it out: zones inside one another, and a link to each."""
    base = "intel-rapl/"
    paths = {
        zone: base + (f"{zone.rpartition(':')[0]}/{zone}" if zone.count(":") == 2 else zone) for zone, *_ in case.zones
    }
    zones = {paths[zone]: (name, number) for number, (zone, name, _, _) in enumerate(case.zones)}
    waves = [wave for *_, wave in case.zones]
    tree = FakePowercap(folder / "sys", zones, waves, case.step_s, RANGE_UJ, case.base_uj)
    powercap = folder / "sys/class/powercap"
    for zone, path in paths.items():
        (powercap / zone).symlink_to(path)
    (powercap / "intel-rapl" / "subsystem").symlink_to("..")
    with tree:
        assert tree._writer is not None
        os.sched_setscheduler(tree._writer.pid, os.SCHED_FIFO, os.sched_param(10))  # a sensor does not wait for a core
        asked = [number for number, (_, _, part, _) in enumerate(case.zones) if part in case.parts]

        wrap_ns = tree.start_ns + int((RANGE_UJ - case.base_uj) / 1e6 / waves[0].high_w * 1e9)

        def truth(instants: Sequence[int]) -> float:
            if case.base_uj and not instants[0] < wrap_ns < instants[1]:
                raise ValueError("the counter did not wrap around during the work: the tool started too slowly here")
            return sum(tree.energy_j(number, instants[0], instants[1]) for number in asked)

        try:
            more: dict[str, object] = {"stop": tree._writer.pid} if case.freezes else {}
            yield {}, more | ({"until_ns": wrap_ns + 2 * 10**9} if case.base_uj else {}), truth
        finally:
            os.kill(tree._writer.pid, 18)  # SIGCONT: it may stand still


MOUNT = """
for name in /sys/class/*; do kept="$kept ${name##*/}"; done
mkdir "$0/classes" && mount --rbind /sys/class "$0/classes" && mount -t tmpfs none /sys/class
for name in $kept powercap; do mkdir -p "/sys/class/$name"; done
for name in net thermal block; do
    [ ! -d "$0/classes/$name" ] || mount --bind "$0/classes/$name" "/sys/class/$name"
done
mount --bind "$0/sys/class/powercap" /sys/class/powercap
[ ! -d /sys/bus/event_source/devices/power ] || mount -t tmpfs none /sys/bus/event_source/devices/power
exec "$@"
"""


# ------------------------------------------------------------------------------------------------------------ running


def sleeper(folder: Path) -> str:
    """A command that prints its first and last instant."""
    source, target = folder / "sleeper.c", folder / "sleeper"
    if not target.exists():
        source.write_text(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <unistd.h>\n"
            "static void now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);"
            ' printf("%lld\\n", t.tv_sec * 1000000000LL + t.tv_nsec); }\n'
            "int main(int c, char **v) { (void)c; now(); usleep((unsigned)(atof(v[1]) * 1e6)); now(); return 0; }\n"
        )
        subprocess.run(["cc", "-O1", "-o", target, source], check=True)
    return str(target)


def run(case: Case, tool: Tool, folder: Path) -> Outcome:
    outcome = Outcome(case.name, tool.name, "skipped")
    if not set(case.parts) <= tool.parts:
        outcome.text = f"does not measure {' and '.join(sorted(set(case.parts) - tool.parts))}"
    elif case.own and not tool.own:
        outcome.text = "counts the machine only"
    elif case.zones and os.geteuid():
        outcome.text = "needs root: a mount namespace for /sys/class/powercap"
    elif case.recording and tool.counter:
        outcome.text = "needs the energy counter, which was not recorded"
    elif case.recording and not (RECORDED / case.recording).exists():
        outcome.text = f"needs {RECORDED / case.recording}"
    if outcome.text:
        return outcome
    outcomes = []
    for _ in range(ATTEMPTS):  # a simulated sensor that had to wait for a core is none
        outcomes.append(attempt(case, tool, folder))
        if outcomes[-1].gap_ms is None or outcomes[-1].gap_ms <= 1e3 * MAX_LATE_STEPS * case.step_s:
            break
    return min(outcomes, key=lambda one: one.gap_ms or 0.0)


def attempt(case: Case, tool: Tool, folder: Path) -> Outcome:
    outcome = Outcome(case.name, tool.name, "skipped")
    sensors = replayed if case.recording else simulated_cpu if case.zones else simulated_gpus
    with tempfile.TemporaryDirectory(prefix="truth-") as place, sensors(case, Path(place)) as (variables, more, truth):
        asked = {
            "parts": case.parts, "seconds": case.seconds, "own": case.own, "regions": case.regions,
            "table": False, "skip_s": 0, "fault": "", "stop": 0, "until_ns": 0,
            "command": [sleeper(folder), str(case.seconds)] if case.command else None, **more,
        }  # fmt: skip
        (Path(place) / "case.json").write_text(json.dumps(asked))
        command = [
            str(folder.resolve() / "venv" / tool.name / "bin" / "python"),
            str(HELPER),
            tool.name,
            f"{place}/case.json",
        ]
        if case.zones:
            command = ["unshare", "--mount", "sh", "-c", MOUNT, place, *command]
        variables = {"HOME": place, **variables}
        if not case.zones:  # a driver comes with it; codecarbon looks for it before it asks NVML
            (Path(place) / "nvidia-smi").write_text("#!/bin/sh\n")
            (Path(place) / "nvidia-smi").chmod(0o755)
            variables["PATH"] = f"{place}:{os.environ['PATH']}"
        variables.pop("WATTRIBUTE_METERS", None)  # as it is for everyone
        busy = subprocess.Popen(["sh", "-c", "while :; do :; done"]) if case.own else None
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=os.environ | variables, cwd=place, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            outcome.verdict, outcome.text = "crashed", f"did not end within {LIMIT_S} s"
            return outcome
        finally:
            if busy:
                busy.kill()
                busy.wait()
        late = Path(place) / "sys" / "gaps"
        gaps = [tuple(map(int, line.split())) for line in late.read_text().splitlines()] if late.exists() else []
        return judged(case, outcome, done, truth, gaps)


def judged(
    case: Case,
    outcome: Outcome,
    done: subprocess.CompletedProcess[str],
    truth: Truth,
    gaps: Sequence[tuple[int, ...]] = (),
) -> Outcome:
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        outcome.verdict = "crashed"
        outcome.text = next((line for line in reversed(done.stderr.strip().splitlines()) if line.strip()), "no output")[
            :200
        ]
        return outcome
    outcome.costs = {name: answer[name] for name in ("ready_s", "begin_s", "end_s", "cpu_s", "region_s")}
    instants = [*answer["instants"], answer["start_ns"]] if case.recording else answer["instants"]
    if case.zones and not case.freezes:
        near = [end - begin for begin, end in gaps if end > instants[0] - 10**8 and begin < instants[1] + 10**8]
        outcome.gap_ms = max(near, default=0) / 1e6
    try:
        whole_j = float(truth(instants))
    except ValueError as error:
        outcome.text = str(error)  # not the tool's fault
        return outcome
    outcome.truth_j = 0.0 if case.own else whole_j
    step_s = NVML_STEP_S if case.gpus else case.step_s
    seconds = (instants[1] - instants[0]) / 1e9
    outcome.step_percent = None if case.recording else 100 * step_s / seconds
    parts = answer["parts"]
    together = "+".join(case.parts)  # a tool may have one figure for all of them
    names = [together] if together in parts else list(case.parts)
    missing = [name for name in names if name not in parts]
    if missing:
        outcome.verdict, outcome.text = "refused", f"no figure for {' and '.join(missing)}"
        return outcome
    given = [parts[name] for name in names]
    outcome.verdict, outcome.energy_j = "answered", sum(given)
    outcome.error_percent = 100 * (outcome.energy_j - outcome.truth_j) / whole_j
    outcome.partly = answer["partly"]
    if answer["ranges"]:
        outcome.low_j = sum(answer["ranges"][name][0] for name in case.parts)
        outcome.high_j = sum(answer["ranges"][name][1] for name in case.parts)
        # a program that sleeps wakes up now and then: one step of the sensor is as good as nothing
        most_j = whole_j * step_s / seconds if case.own else outcome.truth_j
        outcome.held = outcome.low_j <= most_j and (outcome.partly or outcome.truth_j <= outcome.high_j)
    return outcome


def import_s(tool: Tool, folder: Path) -> float:
    """The best of three imports in new interpreters, minus that of nothing."""
    python = str(folder.resolve() / "venv" / tool.name / "bin" / "python")
    modules = {"codecarbon": "codecarbon", "zeus": "zeus.monitor", "carbontracker": "carbontracker.tracker"}
    modules |= {"pyJoules": "pyJoules.energy_meter"}  # the others are called as they are installed

    def best(code: str) -> float:
        spent = []
        for _ in range(3):
            begin = time.monotonic()
            subprocess.run([python, "-c", code], capture_output=True, cwd="/")
            spent.append(time.monotonic() - begin)
        return min(spent)

    return best(f"import {modules.get(tool.name, tool.name)}") - best("pass")


def overhead(tool: Tool, folder: Path) -> dict[str, float | None]:
    """Seconds of an empty region, and CPU seconds per second of work: what 20 s more of it cost the whole program."""
    name = "gpu-constant" if "gpu" in tool.parts else "cpu-constant"
    case = next(case for case in CASES if case.name == name)
    if case.zones and os.geteuid():
        return {"region_s": None, "cpu_s_per_s": None}

    def costs(seconds: float, regions: int = 0) -> dict[str, float | None]:
        return attempt(replace(case, seconds=seconds, regions=regions), tool, folder).costs

    region_s = costs(OVERHEAD_S[0], REGIONS).get("region_s")
    short, long = (costs(seconds).get("cpu_s") for seconds in OVERHEAD_S)
    spent = None if short is None or long is None else (long - short) / (OVERHEAD_S[1] - OVERHEAD_S[0])
    return {"region_s": region_s, "cpu_s_per_s": spent}


# ------------------------------------------------------------------------------------------------------------- output


def cell(outcome: Outcome) -> str:
    if outcome.verdict == "skipped":
        return "–"
    if outcome.error_percent is None:
        return f"**{outcome.verdict}**"
    held = {None: "", True: " ✓", False: " ✗"}[outcome.held]
    return f"{'≥ ' if outcome.partly else ''}{outcome.error_percent:+.1f}{held}"


def markdown(
    report: dict[str, object], tools: Sequence[Tool], cases: Sequence[Case], outcomes: Sequence[Outcome]
) -> str:
    by = {(outcome.case, outcome.tool): outcome for outcome in outcomes}
    lines = [f"{report['date']}, {report['machine']}; {report['load']}.", ""]
    lines += [
        "Error in % of the truth; ✓ or ✗: the tool's own range held the truth or did not; ≥: the tool says that it saw "
        "only a part of the work, so that its range has no upper end; –: not asked; step: one of the sensor.",
        "",
    ]
    lines += ["| case | step, % | " + " | ".join(tool.name for tool in tools) + " |"]
    lines += ["|---|--:|" + "--:|" * len(tools)]
    for case in cases:
        steps = [o.step_percent for o in outcomes if o.case == case.name and o.step_percent is not None]
        step = f"{min(steps):.{2 if min(steps) < 1 else 1}f}" if steps else ""
        row = " | ".join(cell(by[case.name, tool.name]) if (case.name, tool.name) in by else "" for tool in tools)
        lines.append(f"| {case.name} | {step} | {row} |")
    lines += ["", "| case | what happens |", "|---|---|"]
    lines += [f"| {case.name} | {case.text}{'; ' + case.note if case.note else ''} |" for case in cases]
    lines += ["", "![Errors per case and tool](truth.svg)"]
    lines += [
        "",
        "Costs, seconds (medians over the cases; import: best of three; –: the tool has one region only):",
        "",
    ]
    lines += ["| tool | version | import | start-up with import | begin | end | CPU of the whole program "
              "| an empty region | CPU per second of work |"]  # fmt: skip
    lines += ["|---|---|--:|--:|--:|--:|--:|--:|--:|"]
    imports, versions, overheads = (report[name] for name in ("import_s", "versions", "overhead"))
    assert isinstance(imports, dict)
    assert isinstance(versions, dict)
    assert isinstance(overheads, dict)
    for tool in tools:
        costs = [o.costs for o in outcomes if o.tool == tool.name and o.costs]
        if costs:
            middle = [
                sorted(c[name] or 0.0 for c in costs)[len(costs) // 2]
                for name in ("ready_s", "begin_s", "end_s", "cpu_s")
            ]
            more = overheads[tool.name]
            region = "–" if more["region_s"] is None else f"{more['region_s']:.6f}"
            per_s = "–" if more["cpu_s_per_s"] is None else f"{more['cpu_s_per_s']:.4f}"
            spent = " | ".join([*(f"{value:.4f}" for value in middle), region, per_s])
            lines.append(f"| {tool.name} | {versions[tool.name]} | {imports[tool.name]:.3f} | {spent} |")
    lines += ["", "How each was called:", ""]
    lines += [f"* **{tool.name}**: {tool.called}" for tool in tools]
    lines += [f"* **{name}** is not in the table: {why}" for name, why in LEFT_OUT.items()]
    late = [o for o in outcomes if o.held is False]
    if late:
        lines += ["", "Ranges that did not hold:", ""]
    for o in late:
        gap = "" if o.gap_ms is None else f"; the simulated counter stood still for up to {o.gap_ms:.1f} ms"
        lines.append(f"* {o.case}, {o.tool}: truth {o.truth_j:.2f} J, range {o.low_j:.2f} to {o.high_j:.2f} J{gap}")
    trouble = [o for o in outcomes if o.text and o.verdict != "skipped"]
    if trouble:
        lines += ["", "Refused or crashed:", ""] + [f"* {o.case}, {o.tool}: `{o.text}`" for o in trouble]
    return "\n".join(lines) + "\n"


def chart(tools: Sequence[Tool], cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
    """|error| per case and tool on a logarithmic axis from 0.01 % to 1000 %, as SVG; grey: within a sensor's step."""
    import math

    colours = ("#00796b", "#e65100", "#1565c0", "#6a1b9a", "#c62828", "#558b2f", "#5d4037", "#455a64")
    left, width, row, top = 110, 620, 22, 50
    height = row * len(cases) + top + 50
    failed_x = left + width + 90

    def x(percent: float) -> float:
        return left + width * (math.log10(min(max(abs(percent), 0.01), 1000)) + 2) / 5

    def text(at: float, y: float, words: str, anchor: str = "middle") -> str:
        return f'<text x="{at:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {failed_x + 60} {height}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    for line, case in enumerate(cases):
        steps = [o.step_percent for o in outcomes if o.case == case.name and o.step_percent is not None]
        if steps:
            parts.append(f'<rect x="{left}" y="{top + row * line - 9}" width="{x(min(steps)) - left:.1f}" height="18" '
                         'fill="#eceff1"/>')  # fmt: skip
    for percent in (0.01, 0.1, 1, 10, 100, 1000):
        ends = f'y1="{top - 14}" y2="{height - 40}"'
        parts.append(f'<line x1="{x(percent):.1f}" x2="{x(percent):.1f}" {ends} stroke="#ccc"/>')
        sign = {0.01: "≤ ", 1000: "≥ "}.get(percent, "")
        parts.append(text(x(percent), height - 26, f"{sign}{percent:g} %"))
    parts.append(text(left + width / 2, height - 8, "error, % of the truth; grey: less than one step of the sensor"))
    parts.append(text(failed_x, height - 26, "no figure"))
    at = float(left)
    for number, tool in enumerate(tools):
        parts.append(f'<circle cx="{at}" cy="14" r="5" fill="{colours[number % len(colours)]}"/>')
        parts.append(text(at + 9, 18, tool.name, "start"))
        at += 32 + 6.5 * len(tool.name)
    for line, case in enumerate(cases):
        y = top + row * line
        parts.append(text(left - 8, y + 4, case.name, "end"))
        for number, tool in reversed(list(enumerate(tools))):
            colour = colours[number % len(colours)]
            for o in outcomes:
                if (o.case, o.tool) != (case.name, tool.name) or o.verdict == "skipped":
                    continue
                if o.error_percent is None:
                    cross = f"M{failed_x - 48 + 12 * number} {y - 4}l8 8m0 -8l-8 8"
                    title = f"<title>{tool.name}: {o.verdict}</title>"
                    parts.append(f'<path d="{cross}" stroke="{colour}" stroke-width="2" fill="none">{title}</path>')
                    continue
                title = f"<title>{tool.name}: {o.error_percent:+.2f} %</title>"
                parts.append(f'<circle cx="{x(o.error_percent):.1f}" cy="{y}" r="5" fill="{colour}" '
                             f'fill-opacity="0.8">{title}</circle>')  # fmt: skip
    return "\n".join([*parts, "</svg>"]) + "\n"


def publish(folder: Path, docs: Path = ROOT / "docs") -> None:
    """Put the results of a run into the page of the docs, in place of those of an earlier one."""
    page = docs / "truth.md"
    text, title, _ = page.read_text(encoding="utf-8").partition("## One run\n")
    page.write_text(f"{text}{title}\n{(folder / 'truth.md').read_text(encoding='utf-8')}", encoding="utf-8")
    shutil.copy(folder / "truth.svg", docs / "truth.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--tools", nargs="+", choices=[tool.name for tool in TOOLS], default=[tool.name for tool in TOOLS]
    )
    parser.add_argument(
        "--cases", nargs="+", choices=[case.name for case in CASES], default=[case.name for case in CASES]
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (they sleep most of the time)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "truth")
    parser.add_argument("--publish", action="store_true", help="put table and chart into docs/truth.md")
    asked = parser.parse_args()
    folder: Path = asked.output
    folder.mkdir(parents=True, exist_ok=True)
    begin, load = time.monotonic(), os.getloadavg()[0]
    cases = [case for case in CASES if case.name in asked.cases]
    sleeper(folder)
    with ThreadPoolExecutor(asked.jobs) as pool:
        try:
            wanted = [tool for tool in TOOLS if tool.name in asked.tools]
            tools, left_out = [], []
            for tool, refused in zip(wanted, pool.map(lambda one: install(one, folder), wanted), strict=True):
                print(f"{tool.name:<15}{refused or 'installed'} after {time.monotonic() - begin:.0f} s", flush=True)
                if refused:
                    left_out.append(f"{tool.name}: {refused}")
                else:
                    tools.append(tool)
            jobs = [pool.submit(run, case, tool, folder) for case in cases for tool in tools]
            outcomes = []
            for done, job in enumerate(jobs, 1):
                o = job.result()
                outcomes.append(o)
                print(f"{done:>4}/{len(jobs)}  {o.case:<14}{o.tool:<15}{cell(o):<14}{o.text}", flush=True)
            overheads = dict(zip((tool.name for tool in tools), pool.map(lambda one: overhead(one, folder), tools),
                                 strict=True))  # fmt: skip
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    cores = os.cpu_count() or 1
    busy = load > 0.5 * cores
    report: dict[str, object] = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}, {cores} cores, Python {platform.python_version()}",
        "load": f"load average {load:.1f} on {cores} cores when it began"
        + (": a busy machine, times are upper limits" if busy else "") + f"; {asked.jobs} runs at a time",
        "seed": "none: the sensors are functions of time",
        "versions": {tool.name: version(tool, folder) for tool in tools},
        "import_s": {tool.name: import_s(tool, folder) for tool in tools},
        "overhead": overheads,
        "not_installed": left_out,
        "outcomes": [vars(outcome) for outcome in outcomes],
    }  # fmt: skip
    report["seconds"] = round(time.monotonic() - begin)
    (folder / "truth.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "truth.md").write_text(markdown(report, tools, cases, outcomes))
    (folder / "truth.svg").write_text(chart(tools, cases, outcomes))
    if asked.publish:
        publish(folder)
    print(f"{folder}/truth.md, truth.json, truth.svg after {report['seconds']} s")


if __name__ == "__main__":
    if shutil.which("cc") is None:
        sys.exit("truth.py: needs a C compiler for the fake libnvidia-ml (sudo apt install gcc)")
    main()
