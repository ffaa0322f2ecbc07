"""Output of Apple's ``powermetrics``, as text or plist, taken apart: one Sample of milliwatts per interval.

Shared by the meter, which reads the running program, and the reader, which reads its logs. No NumPy: the meter runs in
a process that must start quickly.
"""

from __future__ import annotations

import re
from typing import Any

_TEXT = re.compile(
    r"^(CPU|GPU|ANE|DRAM|Package|Combined|System) Power(?: \([^)]*\))?:\s*(\d{1,9}(?:\.\d{1,9})?)\s*(mW|W)\s*$"
)
_INTEL = re.compile(r"^Intel energy model derived package power \([^)]*\):\s*(\d{1,9}(?:\.\d{1,9})?)\s*(mW|W)\s*$")
_SAMPLE = re.compile(r"^\*\*\* Sampled system activity \((.*?)\) \((\d{1,9}(?:\.\d{1,9})?)ms elapsed\)")
_MOMENT = "%a %b %d %H:%M:%S %Y %z"  # Wed Nov  1 12:00:00 2023 +0100
_PLIST = {
    "cpu_power": "CPU",
    "gpu_power": "GPU",
    "ane_power": "ANE",
    "dram_power": "DRAM",
    "combined_power": "Combined",
}
KINDS = {
    "CPU": "cpu",
    "GPU": "gpu",
    "ANE": "npu",
    "DRAM": "dram",
    "Package": "soc",
    "Combined": "soc",
    "System": "node",
}


class Sample(dict[str, int]):
    """Milliwatts by the names of the text output, how long the sample lasted, and when it ended, where known."""

    elapsed_ns: int = 0
    epoch_ns: int | None = None


def parse_text(text: str) -> list[Sample]:
    """Every sample in text output, as people keep it; the meter itself asks for plist."""
    samples: list[Sample] = []
    for line in text.splitlines():
        line = line.strip()
        if match := _SAMPLE.match(line):
            samples.append(Sample())
            samples[-1].elapsed_ns = round(float(match[2]) * 1e6)
            samples[-1].epoch_ns = _epoch_ns(match[1])
        elif match := _TEXT.match(line):
            if not samples:
                samples.append(Sample())
            samples[-1][match[1]] = _milliwatts(match[2], match[3])
        elif match := _INTEL.match(line):
            if not samples:
                samples.append(Sample())
            samples[-1]["Package"] = _milliwatts(match[1], match[2])
    return [sample for sample in samples if sample]


def _epoch_ns(text: str) -> int | None:
    from datetime import datetime

    try:
        return int(datetime.strptime(text, _MOMENT).timestamp()) * 10**9
    except (ValueError, OverflowError):
        return None


def _milliwatts(number: str, unit: str) -> int:
    return round(float(number) * (1 if unit == "mW" else 1000))


def parse_plist(data: bytes) -> list[Sample]:
    """Every sample of plist output: documents one after the other, parted by NUL; a cut one is left out."""
    import plistlib
    from xml.parsers.expat import ExpatError

    samples = []
    for document in data.split(b"\0"):
        if not document.strip():
            continue
        try:
            content: Any = plistlib.loads(document.strip())
        except (ExpatError, plistlib.InvalidFileException, ValueError, LookupError, AttributeError, TypeError):
            continue
        if not isinstance(content, dict):
            continue
        sample = _plist_sample(content)
        if sample:
            samples.append(sample)
    return samples


def _plist_sample(content: dict[str, Any]) -> Sample:
    import calendar

    sample, processor = Sample(), content.get("processor")
    for key, name in _PLIST.items():
        value = _finite(processor, key)
        if value is not None:
            sample[name] = round(value)
    watts = _finite(processor, "package_watts")
    if watts is not None:
        sample["Package"] = round(watts * 1000)
    sample.elapsed_ns = int(_finite(content, "elapsed_ns") or 0)
    moment: Any = content.get("timestamp")  # without a zone, and in UTC
    sample.epoch_ns = calendar.timegm(moment.timetuple()) * 10**9 if hasattr(moment, "timetuple") else None
    return sample


def _finite(of: Any, key: str) -> float | None:
    """A number that power or a time can be, or None."""
    value = of.get(key) if isinstance(of, dict) else None
    return value if isinstance(value, int | float) and abs(value) < 1e15 else None
