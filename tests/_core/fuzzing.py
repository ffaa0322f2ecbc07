"""Builds and runs ``fuzz.c`` under the address and undefined-behaviour sanitizers (``make fuzz``)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from wattribute.readers.otf2.writer import LocationWriter, Writer

CORE = Path(__file__).parents[2] / "src" / "wattribute" / "_core"
# -Og: the sanitizers take a quarter of the time to compile, and files are read nearly as fast
FLAGS = ("-std=gnu11", "-Og", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover")
CHUNK = 512  # small, so that small files have many


def build(folder: Path, compiler: str = "cc") -> Path | None:
    """The fuzzer, or None where there is no compiler with sanitizers."""
    program, probe = folder / "fuzz", folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    try:
        subprocess.run([compiler, *FLAGS, str(probe), "-o", str(folder / "probe")], check=True, capture_output=True)
        subprocess.run([folder / "probe"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    sources = [str(Path(__file__).with_name("fuzz.c")), *map(str, sorted(CORE.glob("*.c")))]
    flags = [*FLAGS, "-ffp-contract=off", "-fno-math-errno", "-fwrapv", f"-I{CORE}"]
    subprocess.run([compiler, *flags, *sources, "-o", str(program), "-lm"], check=True)
    return program


def seeds(folder: Path) -> None:
    """Small files with all that the core looks into, as N.evt and N.def."""
    with Writer(folder, "seeds", event_chunk=CHUNK, definition_chunk=CHUNK) as trace:
        process = trace.process("p", trace.node("n"))
        for number in range(6):
            random = np.random.default_rng(number)
            location = trace.location("l", process)
            location.map_ids("region", {i: int(random.integers(40)) for i in range(20)})
            location.map_ids("metric", {3: 1, 9: 0})
            location.map_ids("context", {i: int(random.integers(7)) for i in range(6)})
            for i in range(int(random.integers(5))):
                location.clock_offset(3000 * i, int(random.integers(-90, 90)))
            _events(location, random)
    for path in (folder / "seeds").iterdir():
        path.rename(folder / path.name)


def _events(location: LocationWriter, random: np.random.Generator) -> None:
    time, stack = 0, [int(random.integers(20)) for _ in range(int(random.choice([0, 150])))]  # deep, or not
    for id_ in stack:
        location.enter(time, id_)
    for _ in range(400):
        time += int(random.choice([0, 1, 40, 300]))
        choice = int(random.integers(20))
        match choice:
            case 0:
                location.metric(time, int(random.choice([0, 3, 9])), *map(int, random.integers(0, 2**40, 3)))
            case 1:
                location.event(time, "BufferFlush", (time + 10).to_bytes(8, "little"))
            case 2:
                location.event(time, "MeasurementOnOff", bytes([int(random.integers(1, 3))]))
            case 3 | 4:
                location.event(time, str(random.choice(["RmaPut", "RmaGet"])), 0, 1, 4096, int(random.integers(3)))
            case 5:
                location.event(time, "RmaOpCompleteBlocking", 0, int(random.integers(3)))
            case 6:
                location.event(time, "RmaAtomic", 0, 1, b"\1", 8, 8, int(random.integers(3)))
            case 7 | 8:
                kind = str(random.choice(["ThreadTaskSwitch", "ThreadTaskComplete"], p=[0.8, 0.2]))
                location.event(time, kind, 0, 0, int(random.integers(4)))
            case 9 | 10:
                location.event(time, "CallingContextSample", int(random.integers(6)), 2, 0)
            case 11:
                location.event(time, "CallingContextLeave", int(random.integers(6)))
            case 12:
                location.event(time, "ParameterString", 0, b"\1\2" + bytes(int(random.choice([0, 260]))))
            case 13:
                location.event(time, str(random.choice(["ProgramBegin", "ProgramEnd"])), 0, 0)
            case _ if stack and choice > 16:
                location.leave(time, stack.pop(-1 if random.random() < 0.9 else 0))
            case _:
                stack.append(int(random.integers(20)))
                location.enter(time, stack[-1])


def run(program: Path, folder: Path, files: int, seed: int) -> subprocess.CompletedProcess[str]:
    options = {
        "ASAN_OPTIONS": "allocator_may_return_null=0:max_allocation_size_mb=256",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }
    command = [str(program), str(folder), str(files), str(seed)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | options, timeout=1800)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        fuzzer = build(Path(name))
        if fuzzer is None:
            sys.exit("no C compiler with -fsanitize=address,undefined here")
        seeds(Path(name))
        done = run(fuzzer, Path(name), given.files, given.seed)
    print(done.stdout + done.stderr, end="")
    sys.exit(done.returncode)
