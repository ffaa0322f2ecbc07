"""Known sensors by name: kind, unit, latency, the device they meter, and what contains what.

Readers and meters ask here once, where data enter, because what files declare about a metric is often wrong (real
Score-P traces call a GPU's power an accumulated "#"). ``describe`` goes from the surest source to the weakest: what the
user's option, the table below, the file's declaration. An unknown metric stays a plain number, never watts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from .. import units
from ..errors import OptionError

KINDS = ("counter", "gauge", "delta")


@dataclass(frozen=True)
class Sensor:
    """What is known of a signal before its first reading; raw value × ``scale`` is in ``unit``."""

    kind: str
    unit: str = "#"
    scale: Fraction = Fraction(1)
    device_kind: str = ""  # "gpu", "cpu", "dram", "node", "psys", "core", … or "" when it belongs to no device
    device: str = ""  # unique within a host: "GPU 0", "package 1", "node"
    latency_s: float | None = None
    stale: bool = False
    wraps_at: int | None = None
    gain_error: float | None = None
    known: bool = True  # by name; False when only the file's declaration speaks


@dataclass(frozen=True)
class Declaration:
    """What a file says about a metric, to be believed only where nothing better is known."""

    kind: str = "gauge"
    unit: str = ""
    scale: Fraction = Fraction(1)  # base ** exponent


_UNDECLARED = Declaration()


@dataclass(frozen=True)
class _Rule:
    """A name pattern and its sensor; ``device`` may use the pattern's groups as ``{0}``."""

    pattern: str
    kind: str
    unit: str
    device_kind: str = ""
    device: str = ""
    latency_s: float | None = None
    stale: bool = False
    gain_error: float | None = None
    declared: str | None = None  # the unit a file has to declare, where the name alone says too little

    def sensor(self, groups: Sequence[str | None]) -> Sensor:
        unit = _COUNTER_UNITS.get(self.unit) or units.parse(self.unit)
        device = self.device.format(*(group or "" for group in groups)).strip()
        return Sensor(
            self.kind,
            unit.symbol,
            unit.scale,
            self.device_kind,
            device,
            self.latency_s,
            self.stale,
            gain_error=self.gain_error,
        )


_COUNTER_UNITS = {"2^-32 J": units.Unit("J", Fraction(1, 2**32))}  # what perf_event counts RAPL in
_CRAY_S = 0.104  # sampled at 1 ms in real traces, changing every 104 ms
_NVML_S, _NVML_GAIN = 0.1, 0.05  # arXiv 2312.02741
_RAPL_S = 0.001

_WALL_METER = re.compile(r"(?<![a-z0-9])(?:wall|ac|node)(?![a-z0-9])", re.IGNORECASE)  # "PSU AC in", "host0 wall"

_SMI = r"(?:rocm|amd)_?smi\W+"
_DEVICE = r".*?device[=_:]?(\d+)"
_NVML = r"(?:nvml|nvidia)\b.*?(?:device|gpu)[=_: ]?(\d+)"
_SMI_LOG = r"nvidia-smi GPU (\d+) "  # what nvidia-smi prints, in watts
_CRAY = r"(?:.*\W)?(?:craypm|pm_counters|cray_pm)\W+(?:PM_)?"
_HWMON = r"(?:.*\W)?(hwmon\d+)\W"
_X86 = r"(?:(?:AMD |Intel )RAPL|x86_energy)\b.*?\b"
_X86_PARTS = (
    (r"(?:package|pckg|pkg|socket)[-_ \[]?(\d*)", "cpu", "package {0}"),
    (r"(?:dram|memory)[-_ \[]?(\d*)", "dram", "dram {0}"),
    (r"(?:single_)?core[-_ \[]?(\d*)", "core", "core {0}"),
    (r"gpu[-_ \[]?(\d*)", "igpu", "graphics {0}"),
    (r"blade", "psys", "blade"),  # the sum of the packages
    (r"(?:psys|platform|board)", "psys", "psys"),
)

# The first pattern that matches wins.
_RULES = (
    _Rule(rf"{_SMI}energy_count{_DEVICE}", "counter", "uJ", "gpu", "GPU {0}"),
    _Rule(rf"{_SMI}power_cap\w*{_DEVICE}", "gauge", "uW"),  # a limit, not a use
    _Rule(rf"{_SMI}\w*power\w*{_DEVICE}", "gauge", "uW", "gpu", "GPU {0}"),
    _Rule(rf"{_SMI}temp_\w*{_DEVICE}", "gauge", "m°C", "gpu", "GPU {0}"),
    _Rule(rf"{_SMI}\w*clk_freq\w*{_DEVICE}", "gauge", "Hz", "gpu", "GPU {0}"),
    _Rule(rf"{_SMI}\w*busy_percent{_DEVICE}", "gauge", "%", "gpu", "GPU {0}"),
    _Rule(rf"{_SMI}mem_usage\w*{_DEVICE}", "gauge", "B", "gpu", "GPU {0}"),
    _Rule(rf"{_SMI_LOG}(?:\S*limit|power\.management)", "gauge", "W"),
    _Rule(rf"{_SMI_LOG}power\.draw", "gauge", "W", "gpu", "GPU {0}", _NVML_S, gain_error=_NVML_GAIN),
    _Rule(rf"{_NVML}.*energy", "counter", "mJ", "gpu", "GPU {0}", _NVML_S, gain_error=_NVML_GAIN),
    _Rule(rf"{_NVML}.*limit", "gauge", "mW"),
    _Rule(rf"{_NVML}.*power", "gauge", "mW", "gpu", "GPU {0}", _NVML_S, gain_error=_NVML_GAIN),
    _Rule(rf"{_NVML}.*temp", "gauge", "°C", "gpu", "GPU {0}"),
    _Rule(rf"{_NVML}.*util", "gauge", "%", "gpu", "GPU {0}"),
    _Rule(rf"{_NVML}.*(?:clock|clk)", "gauge", "MHz", "gpu", "GPU {0}"),
    # accelN of a Cray is a package (two dies on MI250X), not the device number of rocm_smi: a separate device
    *(
        _Rule(rf"{_CRAY}{name}$", kind, unit, device_kind, device, _CRAY_S, stale=True)
        for kind, unit, word in (("counter", "J", "energy"), ("gauge", "W", "power"))
        for name, device_kind, device in (
            (rf"accel(\d+)_{word}", "gpu", "accel {0}"),
            (rf"{word}:ACC", "gpu", "accel 0"),
            (rf"(cpu\d*)_{word}", "cpu", "{0}"),
            (rf"memory\d*_{word}", "dram", "memory"),
            (rf"{word}(?::NODE)?", "node", "node"),
        )
    ),
    _Rule(rf"{_CRAY}freshness", "counter", "#"),
    _Rule(rf"{_CRAY}\w*power_cap", "gauge", "W"),
    _Rule(rf"{_HWMON}power\d+_(?:input|average)", "gauge", "uW", "hwmon", "{0}"),
    _Rule(rf"{_HWMON}energy\d+_input", "counter", "uJ", "hwmon", "{0}"),
    _Rule(rf"{_HWMON}freq\d+_input", "gauge", "Hz", "hwmon", "{0}"),
    _Rule(rf"{_HWMON}temp\d+_input", "gauge", "m°C", "hwmon", "{0}"),
    _Rule(rf"{_HWMON}in\d+_input", "gauge", "mV", "hwmon", "{0}"),
    _Rule(rf"{_HWMON}curr\d+_input", "gauge", "mA", "hwmon", "{0}"),
    _Rule(r"rapl:::PACKAGE_ENERGY:PACKAGE(\d+)", "counter", "nJ", "cpu", "package {0}", _RAPL_S),
    _Rule(r"rapl:::DRAM_ENERGY:PACKAGE(\d+)", "counter", "nJ", "dram", "dram {0}", _RAPL_S),
    _Rule(r"rapl:::PP0_ENERGY:PACKAGE(\d+)", "counter", "nJ", "core", "core {0}", _RAPL_S),
    _Rule(r"rapl:::PSYS_ENERGY:PACKAGE\d+", "counter", "nJ", "psys", "psys", _RAPL_S),
    _Rule(r"powercap:::ENERGY_UJ:ZONE(\d+)$", "counter", "uJ", "cpu", "package {0}", _RAPL_S),
    _Rule(r"(?:.*\W)?RAPL_ENERGY_PKG(?:.*cpu=(\d+))?", "counter", "2^-32 J", "cpu", "package {0}", _RAPL_S),
    _Rule(r"(?:.*\W)?RAPL_ENERGY_DRAM(?:.*cpu=(\d+))?", "counter", "2^-32 J", "dram", "dram {0}", _RAPL_S),
    *(
        _Rule(rf"{_X86}{part}\b.*\W(?:P|power|watts?)\b", "gauge", "W", device_kind, device, _RAPL_S)
        for part, device_kind, device in _X86_PARTS
    ),
    *(
        _Rule(rf"{_X86}{part}", "counter", "J", device_kind, device, _RAPL_S)
        for part, device_kind, device in _X86_PARTS
    ),
    _Rule(r"(?:x86_energy|AMD RAPL)\b", "counter", "J", "cpu", "package", _RAPL_S),
    _Rule(r"(.*\S)[ ._/:]watts?$", "gauge", "W", "node", "{0}"),
    _Rule(r"(?:HIP Memory|CUDA Memory|acc_mem_usage)", "gauge", "B"),
    # APEX writes joules since the reading before, as an absolute "count" (proc_read.cpp, otf2_listener.cpp)
    _Rule(r"Package-(\d+) Energy$", "delta", "J", "cpu", "package {0}", declared="count"),
    _Rule(r"DRAM Energy$", "delta", "J", "dram", "dram", declared="count"),
)


@cache
def _patterns() -> list[tuple[re.Pattern[str], _Rule]]:
    """Compiled when first needed; ``A2`` and the like is the prefix of Score-P's asynchronous plug-ins."""
    return [(re.compile(rf"(?:A\d*)?{rule.pattern}", re.IGNORECASE), rule) for rule in _RULES]


@cache
def _any_pattern() -> re.Pattern[str]:
    """All of them in one: most names are of none, and there may be many."""
    return re.compile(rf"(?:A\d*)?(?:{'|'.join(rule.pattern for rule in _RULES)})", re.IGNORECASE)


def identify(name: str, declared_unit: str = "") -> Sensor | None:
    """The sensor of this name, or None for one we do not know."""
    if not _any_pattern().match(name):
        return None
    for pattern, rule in _patterns():
        match = pattern.match(name)
        if match and rule.declared in (None, declared_unit):
            return rule.sensor(match.groups())
    return None


@dataclass(frozen=True)
class Override:
    """A user's word about metrics: ``RE=counter:uJ`` (the unit may be left out)."""

    pattern: re.Pattern[str]
    kind: str
    unit: units.Unit | None

    @classmethod
    def parse(cls, text: str) -> Override:
        pattern, equals, what = text.rpartition("=")
        kind, _, unit = what.partition(":")
        if not equals or not pattern:
            raise OptionError(f"metric kind {text!r} is not of the form RE=KIND:UNIT, for example 'energy=counter:uJ'")
        if kind not in KINDS:
            raise OptionError.unknown("metric kind", kind, KINDS)
        try:
            regex = re.compile(pattern, re.IGNORECASE)
        except re.error as error:
            raise OptionError(f"metric kind {text!r}: not a regular expression: {error}") from error
        return cls(regex, kind, units.parse(unit) if unit else None)


def describe(name: str, declared: Declaration = _UNDECLARED, overrides: Sequence[Override] = ()) -> Sensor:
    """Describe a metric: by the user's option, else by its name, else as its file declares."""
    sensor = identify(name, declared.unit) or _as_declared(name, declared)
    for override in overrides:
        if override.pattern.search(name):
            unit = override.unit or units.Unit(sensor.unit, sensor.scale)
            sensor = replace(sensor, kind=override.kind, unit=unit.symbol, scale=unit.scale)
            if unit.symbol in ("J", "W") and not sensor.device:
                sensor = replace(sensor, device=name, device_kind="other")
    return sensor


def _as_declared(name: str, declared: Declaration) -> Sensor:
    try:
        unit = units.parse(declared.unit)
    except OptionError:
        unit = units.Unit("#")
    energy = unit.symbol in ("J", "W")  # as a separate device, so that it can be attributed
    return Sensor(
        declared.kind,
        unit.symbol,
        unit.scale * declared.scale,
        ("node" if _WALL_METER.search(name) else "other") if energy else "",
        name if energy else "",
        known=False,
    )


_CONTAINED_KINDS = {
    "node": frozenset({"psys", "cpu", "core", "igpu", "dram", "gpu", "npu", "soc", "hwmon"}),
    "psys": frozenset({"cpu", "core", "igpu", "dram"}),
    "cpu": frozenset({"core", "igpu"}),  # dram is a child zone of package in powercap, yet not part of its energy
}


def contains(outer: str, inner: str) -> bool:
    """Whether a device of kind ``outer`` includes the energy of one of kind ``inner`` on the same host."""
    return inner in _CONTAINED_KINDS.get(outer, frozenset())


_FAMILY_PATTERNS = (
    ("rocm_smi", r"(?:rocm|amd)_?smi\b"),
    ("nvml", r"nvml\b|nvidia"),
    ("craypm", r"(?:.*\W)?(?:craypm|pm_counters|cray_pm)\b|accel \d+$"),
    ("hwmon", r"(?:.*\W)?hwmon\d*\b"),
    ("rapl", r"(?:.*\W)?(?:rapl|powercap|x86_energy|RAPL_ENERGY\w*)\b|(?:AMD|Intel) RAPL"),
)


@cache
def family(name: str) -> str:
    """The family of sensors a signal's name belongs to; "" where the name does not say."""
    patterns = ((label, rf"(?:A\d*)?(?:{pattern})") for label, pattern in _FAMILY_PATTERNS)
    return next((label for label, pattern in patterns if re.match(pattern, name, re.IGNORECASE)), "")
