"""What NVIDIA's power fields really show, by architecture, driver and field: facts for the meter ``nvml``.

From Yang, Adamek, Armour, "Part-time power measurements" (SC24, arXiv 2312.02741) and their published table: a field
refreshes every ``period_s`` but averages only the last ``window_s`` of it. On A100 and H100 the instant field sees a
quarter of the time; elsewhere the default is an average over a whole second. Steady readings are off by up to 5 % on
most cards (A100 −5.5 %, RTX 3090 −5 %, 4090 −4 %), which is the gain error stated.
"""

from __future__ import annotations

from typing import NamedTuple

GAIN_ERROR = 0.05
COUNTER_LATENCY_S = 0.1  # the energy counter is refreshed every 20 to 100 ms

PASCAL, VOLTA, TURING, AMPERE, ADA, HOPPER = 4, 5, 6, 7, 8, 9  # as nvmlDeviceGetArchitecture says
_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", PASCAL: "Pascal", VOLTA: "Volta", TURING: "Turing", AMPERE: "Ampere", ADA: "Ada",
    HOPPER: "Hopper", 10: "Blackwell", 13: "Rubin",
}  # fmt: skip


class Field(NamedTuple):
    """Behaviour of a power field."""

    period_s: float
    window_s: float

    @property
    def coverage(self) -> float:
        """The part of the time that the field sees."""
        return min(self.window_s / self.period_s, 1.0)


_SHORT, _PLAIN, _QUARTER, _SECOND = Field(0.02, 0.01), Field(0.1, 0.1), Field(0.1, 0.025), Field(0.1, 1.0)


def architecture(number: int) -> str:
    return _ARCHITECTURES.get(number, f"architecture {number}")


def power_field(arch: int, capability: tuple[int, int], driver: int, field: str) -> Field:
    """The behaviour of ``field`` ("power", "power_average" or "power_instant") on a card.

    ``driver`` is its major version; GA100 is the one Ampere of capability 8.0.
    """
    ga100 = arch == AMPERE and capability == (8, 0)
    if arch in (PASCAL, VOLTA):
        return _SHORT
    if arch <= TURING:
        return _PLAIN
    if field == "power_instant" or (field == "power" and ga100):
        return _QUARTER if ga100 or arch >= HOPPER else _PLAIN
    if driver == 530 and not ga100 and arch < HOPPER:
        return _PLAIN
    return _SECOND
