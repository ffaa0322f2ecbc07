"""NVIDIA GPUs through NVML (nvidia-ml-py): energy counter, power, utilisation, memory, temperature, clocks.

Any function may be missing on a card or driver; each is tried once and left out when it does not answer. The energy
counter comes first; the power fields are named by what they are (``power_instant``, ``power_average``), with the
behaviour that ``nvidia`` knows of them. Only the counter is read each time; power and utilisation beside a counter as
often as they refresh, ten and six times a second, and what changes slowly once a second. All of it is asked of the
library that nvidia-ml-py loaded, with arguments made once (``sources``): its wrappers cost more than the answer.
``root`` is a library to load instead of the driver's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..model import Device
from ..plugins import Availability, Channel
from . import nvidia
from .mig import MigCard
from .sources import Call, Row, Sources

SECOND = 1_000_000_000
ALWAYS, OFTEN, LESS, SELDOM = range(4)  # how often a channel is read
USE_NS = SECOND // 6  # utilisation is the mean over at least so long
_INSTALL = "pip install 'wattribute[nvidia]'"
_MILLI = Fraction(1, 1000)
_MODULES = ("GH200", "GB200", "GB300")  # a counter there may see CPU, GPU and memory together


class Nvml:
    """The meter ``nvml``."""

    name = "nvml"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._library = root
        self._nvml: Any = None
        self._handles: dict[str, Any] = {}  # by device name
        self._mig_cards: dict[str, MigCard] = {}  # by device name
        self._seen: dict[str, int] = {}  # by device name: when processes were last seen at work, on the driver's clock
        self._channels: list[Channel] = []
        self._calls: list[list[tuple[int, Call]]] = [[], [], [], []]  # by how often: (number of the channel, how)
        self._pauses_ns = [0, SECOND, USE_NS, SECOND]  # between two readings, by how often
        self.sources = Sources(clock)
        self.problems: list[str] = []

    def available(self) -> Availability:
        if self._nvml is not None:
            return Availability(True)
        refused = self._load()
        if refused is not None:
            return refused
        for index in range(self._try("nvmlDeviceGetCount") or 0):
            self._add_gpu(index)
        for pause_ns, calls in zip(self._pauses_ns, self._calls, strict=True):
            for number, call in calls:
                self.sources.add(call, number, pause_ns)
        if self._channels:
            return Availability(True)
        return Availability(False, "the driver lists no GPU whose energy or power can be read")

    def _load(self) -> Availability | None:
        import ctypes

        try:
            library = ctypes.CDLL(self._library or "libnvidia-ml.so.1")
        except OSError:
            return Availability(False, f"no NVIDIA driver here ({self._library or 'libnvidia-ml.so.1'} not found)")
        try:
            import pynvml
        except ImportError:
            return Availability(False, "a NVIDIA driver is here but nvidia-ml-py is not installed", _INSTALL)
        if self._library is not None:
            pynvml.nvmlLib = library
            pynvml._nvmlGetFunctionPointer_cache.clear()
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return Availability(False, f"NVML: {error}", "sudo modprobe nvidia")
        self._nvml = pynvml
        return None

    # ------------------------------------------------------------------------------------------------- discovery

    def _try(self, function: str, *arguments: Any) -> Any:
        """The answer of an NVML function, or None when this card or driver has none."""
        try:
            return getattr(self._nvml, function)(*arguments)
        except (self._nvml.NVMLError, UnicodeDecodeError):
            return None

    def _call(self, function: str, handle: Any, answer: Any, name: str = "", argument: int | None = None) -> Call:
        """A call of the library with arguments made once: it fills in the answer, whose field ``name`` is wanted."""
        import ctypes

        failed = ctypes.c_int(self._nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        called = getattr(self._nvml.nvmlLib, function, None)
        return Call(called, handle, answer, _part(answer, name) if name else answer, failed, argument=argument)

    def _add_gpu(self, index: int) -> None:
        import ctypes

        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        except self._nvml.NVMLError as error:
            self.problems.append(f"GPU {index} is not metered: the driver lists it but does not open it ({error})")
            return
        card = MigCard.of(self._nvml, self._try, handle)
        device = Device(f"GPU {index}", "gpu", properties=self._properties(handle, card))
        self._handles[device.name] = handle
        if card is not None:
            self._mig_cards[device.name] = card
        nvml = self._nvml

        def add(name: str, kind: str, unit: str, scale: Any, call: Call, often: int, **more: Any) -> bool:
            if call.read() is None:
                return False
            self._calls[often].append((len(self._channels), call))
            self._channels.append(Channel(name, kind, unit, device, scale, **more))
            return True

        counter = self._call("nvmlDeviceGetTotalEnergyConsumption", handle, ctypes.c_ulonglong())
        counts = add(
            "energy", "counter", "J", _MILLI, counter, ALWAYS, latency_s=nvidia.COUNTER_LATENCY_S,
            gain_error=nvidia.GAIN_ERROR,
        )  # fmt: skip
        often = OFTEN if counts else ALWAYS
        for name, call in self._powers(handle).items():
            known = self._behaviour(handle, name)
            self._pauses_ns[OFTEN] = min(self._pauses_ns[OFTEN], int(0.95 * known.period_s * SECOND))
            add(
                name, "gauge", "W", _MILLI, call, often, latency_s=known.period_s + known.window_s,
                period_s=known.period_s, gain_error=nvidia.GAIN_ERROR,
                declared={**known._asdict(), "coverage": known.coverage},
            )  # fmt: skip
        use = self._call("nvmlDeviceGetUtilizationRates", handle, nvml.c_nvmlUtilization_t(), "gpu")
        add("utilisation", "gauge", "%", 1, use, LESS if counts else ALWAYS)
        held = self._call("nvmlDeviceGetMemoryInfo", handle, nvml.c_nvmlMemory_t(), "used")
        add("memory", "gauge", "B", 1, held, SELDOM)
        others = {"temperature": ("°C", 1, "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)}
        others["sm_clock"] = "Hz", 10**6, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM
        others["memory_clock"] = "Hz", 10**6, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM
        for name, (unit, scale, function, which) in others.items():
            add(name, "gauge", unit, scale, self._call(function, handle, ctypes.c_uint(), argument=which), SELDOM)

    def _powers(self, handle: Any) -> dict[str, Call]:
        """The power fields of a card: both named ones where the driver has them, else the one default."""
        import ctypes

        both = (self._nvml.c_nvmlFieldValue_t * 2)()
        both[0].fieldId, both[1].fieldId = self._nvml.NVML_FI_DEV_POWER_INSTANT, self._nvml.NVML_FI_DEV_POWER_AVERAGE
        instant = self._call("nvmlDeviceGetFieldValues", handle, both, argument=2)
        average = replace(instant, function=None)  # of the same call, which is what a reading costs
        for call, field in zip((instant, average), both, strict=True):
            call.value, call.refused = _part(field, "value", ctypes.c_uint), _part(field, "nvmlReturn", ctypes.c_int)
        if instant.read() is None:
            return {"power": self._call("nvmlDeviceGetPowerUsage", handle, ctypes.c_uint())}
        return {"power_instant": instant, "power_average": average}

    def _behaviour(self, handle: Any, name: str) -> nvidia.Field:
        arch = self._try("nvmlDeviceGetArchitecture", handle) or 0
        capability = tuple(self._try("nvmlDeviceGetCudaComputeCapability", handle) or (0, 0))
        driver = str(self._try("nvmlSystemGetDriverVersion") or "0").partition(".")[0]
        return nvidia.power_field(arch, capability, int(driver) if driver.isdigit() else 0, name)

    def _properties(self, handle: Any, card: MigCard | None) -> dict[str, str]:
        pci = self._try("nvmlDeviceGetPciInfo", handle)
        limits = self._try("nvmlDeviceGetPowerManagementLimitConstraints", handle)
        limit = self._try("nvmlDeviceGetPowerManagementLimit", handle)
        arch = self._try("nvmlDeviceGetArchitecture", handle)
        memory = self._try("nvmlDeviceGetMemoryInfo", handle)
        model = str(self._try("nvmlDeviceGetName", handle) or "")
        properties = {
            "model": model,
            "uuid": self._try("nvmlDeviceGetUUID", handle),
            "pci": getattr(pci, "busId", None),
            "architecture": None if arch is None else nvidia.architecture(arch),
            "driver": self._try("nvmlSystemGetDriverVersion"),
            "power_limit_w": None if limit is None else limit / 1e3,
            "power_limits_w": None if limits is None else f"{limits[0] / 1e3:g} to {limits[1] / 1e3:g}",
            "memory_bytes": getattr(memory, "total", None),
            "mig": None if card is None else self._mig(card),
            "scope": "module" if any(name in model for name in _MODULES) else None,
            "source": "NVML",
        }
        return {
            key: value if isinstance(value, str) else f"{value}"
            for key, value in properties.items()
            if value is not None
        }

    def _mig(self, card: MigCard) -> str:
        """The MIG instances of a card; its energy is that of all of them together."""
        names = [str(self._try("nvmlDeviceGetUUID", instance.handle) or "?") for instance in card.instances]
        return f"{len(names)} instances: {', '.join(names)}"

    # --------------------------------------------------------------------------------------------------- reading

    def channels(self) -> Sequence[Channel]:
        return self._channels

    def read(self) -> Row:
        return self.sources.read()

    def process_shares(self, pids: Iterable[int]) -> dict[str, float]:
        """Per device the part of the SM utilisation that these processes had lately (absent: none of them worked)."""
        chosen, shares = set(pids), dict[str, float]()
        for name, handle in self._handles.items():
            if name in self._mig_cards:
                part = self._mig_cards[name].busy_share(chosen)
                shares |= {} if part is None else {name: part}
                continue
            samples = self._try("nvmlDeviceGetProcessUtilization", handle, self._seen.get(name, 0)) or ()
            self._seen[name] = max((sample.timeStamp for sample in samples), default=self._seen.get(name, 0))
            used = [(sample.pid in chosen, sample.smUtil) for sample in samples]
            whole = sum(sm for _, sm in used)
            if whole:
                shares[name] = sum(sm for ours, sm in used if ours) / whole
        return shares

    def slice_shares(self, pids: Iterable[int]) -> dict[str, float]:
        """Per card the part that these processes have of it, at work or not (absent: the driver does not tell).

        In MIG mode that of its slices; otherwise the card gives its processes equal slices of time.
        """
        chosen, shares = set(pids), dict[str, float]()
        for name, handle in self._handles.items():
            if (card := self._mig_cards.get(name)) is not None:
                shares |= {name: card.slice_share(chosen)} if card.is_monitored else {}
                continue
            running = {one.pid for one in self._try("nvmlDeviceGetComputeRunningProcesses", handle) or ()}
            shares |= {name: len(running & chosen) / len(running)} if running else {}
        return shares

    def close(self) -> None:
        if self._nvml is not None:
            for card in self._mig_cards.values():
                card.close()
            self._try("nvmlShutdown")
        self.sources.close()
        self._nvml, self._channels, self._calls = None, [], [[], [], [], []]


def _part(answer: Any, name: str, kind: Any = None) -> Any:
    """A field of a structure where it lies: asking the structure for it is slow."""
    kind = kind or dict(answer._fields_)[name]
    return kind.from_buffer(answer, getattr(type(answer), name).offset)
