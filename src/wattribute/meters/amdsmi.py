"""AMD GPUs through ctypes: libamd_smi, else librocm_smi64 (the PyPI package raises on import without ROCm).

The accumulator counts 2⁻¹⁶ J although the libraries say 15.3 µJ (that would be 0.27 % too much), and comes with the
time the device took it: that time is used, moved onto our clock. On MI250(X) the even die counts for the whole package;
the odd one gives 0 and is listed as sharing it. An accumulator that a card freezes is found later, as dead or against
power. ``root`` is a library of either kind.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from ctypes import byref, c_char, c_float, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from fractions import Fraction
from typing import Any

from ..model import Device
from ..plugins import Availability, Channel

SLOW_NS = 1_000_000_000
COUNT_J = Fraction(1, 2**16)
_SAID_UJ = 15.3
_LIBRARIES = ("libamd_smi.so", "librocm_smi64.so", "/opt/rocm/lib/libamd_smi.so", "/opt/rocm/lib/librocm_smi64.so")
_AMD_GPUS = 2  # AMDSMI_INIT_AMD_GPUS


class _Binding:
    """What both libraries can do; a call that fails, or that the library lacks, gives None."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, function: str, *arguments: Any) -> bool:
        try:
            return getattr(self._library, function)(*arguments) == 0  # type: ignore[no-any-return]
        except AttributeError:
            return False

    def number(self, function: str, *arguments: Any, type: Any = c_uint64) -> int | None:
        value = type()
        return value.value if self.call(function, *arguments, byref(value)) else None

    def counts(self, function: str, gpu: Any) -> tuple[int, float, int] | None:
        """(accumulator, µJ per count as the library states it, device ns)."""
        counts, resolution, taken = c_uint64(), c_float(), c_uint64()
        if not self.call(function, gpu, byref(counts), byref(resolution), byref(taken)):
            return None
        return counts.value, resolution.value, taken.value


class _PowerInfo(ctypes.Structure):
    _fields_ = [("socket_w", c_uint64), ("current_w", c_uint32), ("average_w", c_uint32), ("rest", c_uint64 * 32)]


class _Usage(ctypes.Structure):
    _fields_ = [("gfx", c_uint32), ("umc", c_uint32), ("mm", c_uint32), ("rest", c_uint32 * 29)]


class AmdSmi(_Binding):
    """libamd_smi."""

    title = "amd-smi"

    def start(self) -> bool:
        return self.call("amdsmi_init", c_uint64(_AMD_GPUS))

    def stop(self) -> None:
        self.call("amdsmi_shut_down")

    def gpus(self) -> list[Any]:
        handles: list[Any] = []
        sockets = self._handles("amdsmi_get_socket_handles")
        for socket in sockets:
            handles += self._handles("amdsmi_get_processor_handles", c_void_p(socket))
        return [c_void_p(handle) for handle in handles]

    def _handles(self, function: str, *arguments: Any) -> list[int]:
        count = c_uint32()
        if not self.call(function, *arguments, byref(count), None):
            return []
        handles = (c_void_p * count.value)()
        self.call(function, *arguments, byref(count), handles)
        return [handle for handle in handles[: count.value] if handle]

    def energy(self, gpu: Any) -> tuple[int, float, int] | None:
        return self.counts("amdsmi_get_energy_count", gpu)

    def power_uw(self, gpu: Any) -> int | None:
        info = _PowerInfo()
        if not self.call("amdsmi_get_power_info", gpu, byref(info)):
            return None
        watts = next((w for w in (info.current_w, info.average_w) if 0 < w < 0xFFFF), None)
        return None if watts is None else watts * 10**6

    def busy_percent(self, gpu: Any) -> int | None:
        usage = _Usage()
        return usage.gfx if self.call("amdsmi_get_gpu_activity", gpu, byref(usage)) else None

    def temperature_mc(self, gpu: Any) -> int | None:
        degrees = self.number("amdsmi_get_temp_metric", gpu, 1, 0, type=c_int64)  # hot spot, now
        return None if degrees is None else degrees * 1000

    def memory_bytes(self, gpu: Any) -> int | None:
        return self.number("amdsmi_get_gpu_memory_usage", gpu, 0)

    def properties(self, gpu: Any) -> dict[str, str]:
        name = (c_char * 4096)()
        uuid, length = (c_char * 64)(), c_uint32(64)
        return _known(
            model=name.value if self.call("amdsmi_get_gpu_asic_info", gpu, byref(name)) else None,
            uuid=uuid.value if self.call("amdsmi_get_gpu_device_uuid", gpu, byref(length), uuid) else None,
            pci=_pci(self.number("amdsmi_get_gpu_bdf_id", gpu)),
            memory_bytes=self.number("amdsmi_get_gpu_memory_total", gpu, 0),
        )


class RocmSmi(_Binding):
    """librocm_smi64."""

    title = "ROCm SMI"

    def start(self) -> bool:
        return self.call("rsmi_init", c_uint64(0))

    def stop(self) -> None:
        self.call("rsmi_shut_down")

    def gpus(self) -> list[Any]:
        count = self.number("rsmi_num_monitor_devices", type=c_uint32) or 0
        return [c_uint32(index) for index in range(count)]

    def energy(self, gpu: Any) -> tuple[int, float, int] | None:
        return self.counts("rsmi_dev_energy_count_get", gpu)

    def power_uw(self, gpu: Any) -> int | None:
        now = self.number("rsmi_dev_current_socket_power_get", gpu)
        return now if now is not None else self.number("rsmi_dev_power_ave_get", gpu, c_uint32(0))

    def busy_percent(self, gpu: Any) -> int | None:
        return self.number("rsmi_dev_busy_percent_get", gpu, type=c_uint32)

    def temperature_mc(self, gpu: Any) -> int | None:
        return self.number("rsmi_dev_temp_metric_get", gpu, c_uint32(1), 0, type=c_int64)  # junction, now

    def memory_bytes(self, gpu: Any) -> int | None:
        return self.number("rsmi_dev_memory_usage_get", gpu, 0)

    def properties(self, gpu: Any) -> dict[str, str]:
        name = (c_char * 256)()
        cap = self.number("rsmi_dev_power_cap_get", gpu, c_uint32(0))
        unique = self.number("rsmi_dev_unique_id_get", gpu)
        return _known(
            model=name.value if self.call("rsmi_dev_name_get", gpu, name, c_size_t(256)) else None,
            uuid=None if unique is None else f"{unique:#x}",
            pci=_pci(self.number("rsmi_dev_pci_id_get", gpu)),
            memory_bytes=self.number("rsmi_dev_memory_total_get", gpu, 0),
            power_limit_w=None if cap is None else f"{cap / 1e6:g}",
        )


def _known(**values: Any) -> dict[str, str]:
    return {k: v.decode(errors="replace") if isinstance(v, bytes) else str(v) for k, v in values.items() if v}


def _pci(bdf: int | None) -> str:
    """domain:bus:device.function of the 64-bit id both libraries use."""
    return "" if bdf is None else f"{bdf >> 32:04x}:{bdf >> 8 & 0xFF:02x}:{bdf >> 3 & 0x1F:02x}.{bdf & 7}"


class Amd:
    """The meter ``amdsmi``."""

    name = "amdsmi"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._paths, self._clock = (root,) if root else _LIBRARIES, clock
        self._smi: AmdSmi | RocmSmi | None = None
        self._channels: list[Channel] = []
        self._reads: list[tuple[Callable[[], Any], bool, bool]] = []  # (read, slow, it is an accumulator)
        self._offsets: dict[int, int] = {}  # channel → the least seen of our clock − the device's
        self._slow_at = 0

    def available(self) -> Availability:
        if self._channels:
            return Availability(True)
        reason, fix = "no ROCm here (neither libamd_smi.so nor librocm_smi64.so)", ""
        for path in self._paths:
            try:
                library = ctypes.CDLL(path)
            except OSError:
                continue
            smi = AmdSmi(library) if hasattr(library, "amdsmi_init") else RocmSmi(library)
            if not smi.start():
                reason, fix = f"{path} does not start (is the amdgpu driver loaded?)", "sudo modprobe amdgpu"
                continue
            self._smi = smi
            for index, gpu in enumerate(smi.gpus()):
                self._add_gpu(smi, index, gpu)
            if self._channels:
                return Availability(True, smi.title)
            reason, fix = (
                f"{smi.title} lists no GPU whose energy or power can be read",
                "sudo usermod -aG render,video $USER",
            )
            smi.stop()
            self._smi = None
        return Availability(False, reason, fix)

    def _add_gpu(self, smi: AmdSmi | RocmSmi, index: int, gpu: Any) -> None:
        properties = smi.properties(gpu) | {"source": smi.title}
        model, first = properties.get("model", ""), smi.energy(gpu)
        paired = "MI250" in model
        if paired:
            partner = index ^ 1
            properties |= {"scope": "package", "shared_with": f"GPU {partner}"}
            if index % 2:
                first = None  # the even die counts for both
                properties["apart"] = f"GPU {partner} counts for both dies"
        device = Device(f"GPU {index}", "gpu", properties=properties)

        def add(name: str, kind: str, unit: str, scale: Any, read: Callable[[], Any], slow: bool = False) -> None:
            if read() is not None:
                self._channels.append(
                    Channel(name, kind, unit, device, scale, latency_s=0.01 if name == "energy" else None)
                )
                self._reads.append((read, slow, name == "energy"))

        if first is not None:
            stated_uj = first[1]
            scale = COUNT_J if abs(stated_uj - _SAID_UJ) < 0.01 or not stated_uj else Fraction(stated_uj) / 10**6
            add("energy", "counter", "J", scale, lambda: smi.energy(gpu))
        if not (paired and index % 2):
            add("power", "gauge", "W", Fraction(1, 10**6), lambda: smi.power_uw(gpu))
        add("utilisation", "gauge", "%", 1, lambda: smi.busy_percent(gpu))
        add("memory", "gauge", "B", 1, lambda: smi.memory_bytes(gpu), True)
        add("temperature", "gauge", "°C", Fraction(1, 1000), lambda: smi.temperature_mc(gpu), True)

    def channels(self) -> Sequence[Channel]:
        return self._channels

    def read(self) -> Sequence[tuple[int, int | float | None]]:
        clock, readings = self._clock, []
        before = clock()
        slow_due = before - self._slow_at >= SLOW_NS
        if slow_due:
            self._slow_at = before
        for at, (read, slow, accumulator) in enumerate(self._reads):
            value = read() if slow_due or not slow else None
            after = clock()
            taken = (before + after) // 2
            if accumulator and value is not None:
                taken, value = self._moved(at, value[2], taken), value[0]
            readings.append((taken, value))
            before = after
        return readings

    def _moved(self, at: int, device_ns: int, now: int) -> int:
        """The device's time on our clock. A value is never read before it was taken, so the least difference seen is
        the best known offset of the two clocks; without a device time (0) the time of reading stands."""
        if not device_ns:
            return now
        offset = min(now - device_ns, self._offsets.get(at, now - device_ns))
        self._offsets[at] = offset
        return device_ns + offset

    def close(self) -> None:
        if self._smi is not None:
            self._smi.stop()
        self._smi, self._channels, self._reads = None, [], []
