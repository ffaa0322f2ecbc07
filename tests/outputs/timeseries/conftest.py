"""Servers for the whole session, and recordings to send."""

from fractions import Fraction

import numpy as np
import pytest

from tests.outputs.timeseries.servers import Influx, Victoria
from wattribute.testing.recordings import RecordingBuilder

EPOCH_NS = 1_760_000_000_123_456_789


HOST = "node [1], a=b"
ABOUT = {"command": ["/usr/bin/python3", "/home/me/train it.py", "--password=x"], "zone": "FR"}


@pytest.fixture(scope="session")
def recording():
    """Two GPUs, a package and psys around it, 20 s at 50 Hz, with names that need escapes."""
    generator = np.random.default_rng(7)
    times = np.arange(1000) * 20_000_000 + generator.integers(0, 999_999, 1000)
    gpu0, gpu1, package = (np.cumsum(generator.integers(1, 9, 1000)) for _ in range(3))
    made = RecordingBuilder(10**9, epoch_ns=EPOCH_NS, length_ticks=int(times[-1]) + 1, **ABOUT).host(HOST)
    made.counter("GPU 0", gpu0 * 1000 + 7**15, times, name="nvml energy", scale=Fraction(1, 1000))
    made.counter('GPU "1"', gpu1 * 1.0, times, name="nvml energy")
    made.counter("package 0", package % 1000, times, name="rapl energy", wraps_at=1000)
    made.counter("psys", package * 2, times, name="rapl energy")
    made.gauge("GPU 0", 200.0 + generator.random(1000), times, name="nvml power_instant")
    for name, values, unit in (
        ("temperature", np.arange(20) + 40, "°C"),
        ("utilisation", np.arange(20) * 5, "%"),
        ("memory", np.arange(20) << 30, "B"),
        ("sm_clock", np.arange(20) * 10**8, "Hz"),
    ):
        made.gauge("GPU 0", values, times[::50], name=f"nvml {name}", unit=unit)
    return made.recording()


@pytest.fixture(scope="session")
def joules(recording):
    """The energy of every device, as alignment says."""
    from wattribute.alignment import energy

    curves = [energy(signal, recording.clock) for signal in recording.signals if signal.kind == "counter"]
    return {each.signal.device: each.measured for each in curves}


def _running(server):
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def victoria(tmp_path_factory):
    yield from _running(Victoria(tmp_path_factory.mktemp("victoria")))


@pytest.fixture(scope="session")
def influx(tmp_path_factory):
    yield from _running(Influx(tmp_path_factory.mktemp("influx")))
