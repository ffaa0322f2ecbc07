"""Fakes at the lowest seam: shared libraries, sysfs trees and counter folders driven by known power waveforms.

``from tests.meters.fakes import FakeNvml, Wave`` works in every test. A fake knows the true energy between two instants
of the monotonic clock, so a test compares a measurement with the simulator's own integral::

    gpus = FakeNvml(tmp_path, [Wave(300)])
    subprocess.run([..., "wattribute", "run", …], env=gpus.environment())
    gpus.energy_j(0, start_ns, end_ns)
"""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Wave:
    """Constant power, or a square wave that is high for ``duty`` of each period."""

    high_w: float
    low_w: float | None = None
    period_s: float = 1.0
    duty: float = 1.0

    def power_w(self, s: float) -> float:
        low = self.high_w if self.low_w is None else self.low_w
        return self.high_w if (s / self.period_s) % 1 < self.duty else low

    def energy_j(self, s: float) -> float:
        """From 0 to s."""
        low = self.high_w if self.low_w is None else self.low_w
        whole, on = math.floor(s / self.period_s), self.duty * self.period_s
        phase = s - whole * self.period_s
        part = self.high_w * min(phase, on) + low * max(phase - on, 0)
        return whole * (self.high_w * on + low * (self.period_s - on)) + part

    def words(self) -> str:
        if self.low_w is None:
            return f"constant {self.high_w}"
        return f"square {self.high_w} {self.low_w} {self.period_s} {self.duty}"


class _Truth:
    """What every fake can say: the energy of a device between two instants of the monotonic clock."""

    waves: Sequence[Wave]
    start_ns: int

    def energy_j(self, device: int, begin_ns: int, end_ns: int) -> float:
        wave = self.waves[device]
        return wave.energy_j((end_ns - self.start_ns) / 1e9) - wave.energy_j((begin_ns - self.start_ns) / 1e9)


@functools.cache
def build(source: str, library: str, *flags: str) -> Path:
    """Compile a fake library once per session, in a folder of its own."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no C compiler: install gcc")
        pytest.skip("no C compiler for the fake libraries")
    target = Path(tempfile.mkdtemp(prefix="wattribute-fake-")) / library
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", *flags, "-o", target, HERE / source, "-lm"], check=True)
    return target


class _FakeLibrary(_Truth):
    variable = ""

    def __init__(
        self,
        folder: Path,
        waves: Sequence[Wave],
        period_s: float = 0.1,
        fail: Mapping[str, int] | None = None,
        quirks: Iterable[str] = (),
        flags: Sequence[str] = (),
        start_ns: int | None = None,
    ) -> None:
        self.waves, self.period_s = waves, period_s
        self.start_ns = time.monotonic_ns() - 5_000_000_000 if start_ns is None else start_ns
        self.state = folder / f"{self.variable.lower()}.state"
        self.library = self._build(flags)
        self.write(fail or {}, quirks)

    def _build(self, flags: Sequence[str]) -> Path:
        raise NotImplementedError

    def write(self, fail: Mapping[str, int] | None = None, quirks: Iterable[str] = ()) -> None:
        """(Re)write the state; a running program sees it at its next call."""
        lines = [f"devices {len(self.waves)}", f"period_ms {self.period_s * 1e3}", f"start_ns {self.start_ns}"]
        lines += [f"gpu {i} {wave.words()}" for i, wave in enumerate(self.waves)]
        lines += [f"fail {name} {code}" for name, code in (fail or {}).items()]
        fresh = self.state.with_suffix(".new")
        fresh.write_text("\n".join([*lines, *quirks]) + "\n")
        fresh.replace(self.state)

    def environment(self) -> dict[str, str]:
        """The environment in which a program finds this library as if a driver were installed."""
        path = f"{self.library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        return {**os.environ, "LD_LIBRARY_PATH": path, self.variable: str(self.state)}


class FakeNvml(_FakeLibrary):
    """libnvidia-ml.so.1; ``fail={"nvmlDeviceGetPowerUsage": 3}``, ``quirks=["gpu 0 frozen"]`` (see wave.h)."""

    variable = "FAKE_NVML"

    def _build(self, flags: Sequence[str]) -> Path:
        return build("nvml.c", "libnvidia-ml.so.1", *flags)


class FakeRocm(_FakeLibrary):
    """librocm_smi64.so."""

    variable = "FAKE_AMD"

    def _build(self, flags: Sequence[str]) -> Path:
        return build("amd.c", "librocm_smi64.so", *flags)


class FakeAmdsmi(_FakeLibrary):
    """libamd_smi.so."""

    variable = "FAKE_AMD"

    def _build(self, flags: Sequence[str]) -> Path:
        return build("amd.c", "libamd_smi.so", "-DAMDSMI", *flags)


class _Folder(_Truth):
    """A folder of counter files that a small process keeps writing, as a kernel would."""

    def __init__(self, root: Path, waves: Sequence[Wave], period_s: float, plan: dict[str, object]) -> None:
        self.root, self.waves, self.start_ns = root, waves, time.monotonic_ns()
        self._plan = plan | {
            "root": str(root),
            "period_s": period_s,
            "start_ns": self.start_ns,
            "waves": [asdict(wave) for wave in waves],
        }
        self._writer: subprocess.Popen[str] | None = None
        self._run("once").communicate()

    def _run(self, how: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-S", str(HERE / "writer.py"), how, json.dumps(self._plan)]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self._writer = self._run("on")
        assert self._writer.stdout is not None
        self._writer.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._writer is not None
        self._writer.terminate()
        self._writer.communicate()


class FakePowercap(_Folder):
    """A /sys with a powercap tree: ``zones`` maps "intel-rapl:0" or "intel-rapl:0:0" to (name, index of its wave)."""

    def __init__(
        self,
        root: Path,
        zones: Mapping[str, tuple[str, int]],
        waves: Sequence[Wave],
        period_s: float = 0.002,
        range_uj: int = 262_143_328_850,
        base_uj: int = 0,
    ) -> None:
        files = {}
        for folder, (name, wave) in zones.items():
            zone = root / "class/powercap" / folder
            zone.mkdir(parents=True)
            (zone / "name").write_text(name + "\n")
            (zone / "max_energy_range_uj").write_text(f"{range_uj}\n")
            files[f"class/powercap/{folder}/energy_uj"] = wave
        super().__init__(
            root, waves, period_s, {"what": "powercap", "files": files, "range": range_uj, "base": base_uj}
        )


class FakeCray(_Folder):
    """A pm_counters folder: ``parts`` maps a prefix ("", "cpu_", "memory_", "accel0_") to the index of its wave."""

    def __init__(self, root: Path, parts: Mapping[str, int], waves: Sequence[Wave], period_s: float = 0.1) -> None:
        root.mkdir(parents=True)
        for name, text in {"version": "2", "raw_scan_hz": "10", "generation": "1"}.items():
            (root / name).write_text(text + "\n")
        super().__init__(root, waves, period_s, {"what": "cray", "files": dict(parts)})
