"""Fakes at the lowest seam: shared libraries, sysfs trees and counter folders driven by known power waveforms.

``from tests.meters.fakes import FakeNvml, Wave`` works in every test. A fake knows the true energy between two instants
of the monotonic clock, so a test compares a measurement with the simulator's own integral::

    gpus = FakeNvml(tmp_path, [Wave(300)])
    subprocess.run([..., "wattribute", "run", …], env=gpus.environment())
    gpus.energy_j(0, start_ns, end_ns)
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from wattribute.testing.simulation import Wave

HERE = Path(__file__).parent


def words(wave: Wave) -> str:
    """A wave as the fake libraries read it."""
    if wave.low_w is None:
        return f"constant {wave.high_w}"
    return f"square {wave.high_w} {wave.low_w} {wave.period_s} {wave.duty}"


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
        pytest.skip("no C compiler for the fake libraries")
    folder = tempfile.mkdtemp(prefix="wattribute-fake-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder) / library
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", *flags, "-o", target, HERE / source, "-lm"], check=True)
    return target


class _FakeLibrary(_Truth):
    variable = ""
    meter = ""

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
        lines += [f"gpu {i} {words(wave)}" for i, wave in enumerate(self.waves)]
        lines += [f"fail {name} {code}" for name, code in (fail or {}).items()]
        fresh = self.state.with_suffix(".new")
        fresh.write_text("\n".join([*lines, *quirks]) + "\n")
        fresh.replace(self.state)

    def environment(self) -> dict[str, str]:
        """The environment in which a program finds this library as if a driver were installed."""
        return os.environ | self.variables()

    def variables(self) -> dict[str, str]:
        """What that environment has beside ours."""
        path = f"{self.library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        meters = f"model,{self.meter}"  # its library is found by name
        return {"LD_LIBRARY_PATH": path, self.variable: str(self.state), "WATTRIBUTE_METERS": meters}


class FakeNvml(_FakeLibrary):
    """libnvidia-ml.so.1; ``fail={"nvmlDeviceGetPowerUsage": 3}``, ``quirks=["gpu 0 frozen"]`` (see wave.h)."""

    variable, meter = "FAKE_NVML", "nvml"

    def _build(self, flags: Sequence[str]) -> Path:
        return build("nvml.c", "libnvidia-ml.so.1", *flags)


class FakeRocm(_FakeLibrary):
    """librocm_smi64.so."""

    variable, meter = "FAKE_AMD", "amdsmi"

    def _build(self, flags: Sequence[str]) -> Path:
        return build("amd.c", "librocm_smi64.so", *flags)


class FakeAmdsmi(_FakeLibrary):
    """libamd_smi.so."""

    variable, meter = "FAKE_AMD", "amdsmi"

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
