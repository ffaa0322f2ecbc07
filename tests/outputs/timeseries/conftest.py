"""Servers for the whole session, and recordings to send."""

from fractions import Fraction

import numpy as np
import pytest

from tests.outputs.timeseries.servers import Influx, Victoria
from wattribute.model import Clock, Device, Nodes, Recording, Signal

EPOCH_NS = 1_760_000_000_123_456_789


def curve(name, device, times, values, **more):
    more = {"kind": "counter", "unit": "J", "host": "node [1], a=b"} | more
    return Signal(name, times=np.asarray(times, np.int64), values=np.asarray(values), device=device, **more)


@pytest.fixture(scope="session")
def recording():
    """Two GPUs, a package and psys around it, 20 s at 50 Hz, with names that need escapes."""
    generator = np.random.default_rng(7)
    times = np.arange(1000) * 20_000_000 + generator.integers(0, 999_999, 1000)
    host = "node [1], a=b"
    gpu0, gpu1, package = (np.cumsum(generator.integers(1, 9, 1000)) for _ in range(3))
    return Recording(
        clock=Clock(epoch_ns=EPOCH_NS, length_ticks=int(times[-1]) + 1),
        nodes=Nodes.of([(0, host, "node")]),
        signals=(
            curve("nvml energy", "GPU 0", times, gpu0 * 1000 + 7**15, scale=Fraction(1, 1000)),
            curve("nvml energy", 'GPU "1"', times, gpu1 * 1.0),
            curve("rapl energy", "package 0", times, package % 1000, wraps_at=1000),
            curve("rapl energy", "psys", times, package * 2),
            curve("nvml power_instant", "GPU 0", times, 200.0 + generator.random(1000), kind="gauge", unit="W"),
            curve("nvml temperature", "GPU 0", times[::50], np.arange(20) + 40, kind="gauge", unit="°C"),
            curve("nvml utilisation", "GPU 0", times[::50], np.arange(20) * 5, kind="gauge", unit="%"),
            curve("nvml memory", "GPU 0", times[::50], np.arange(20) << 30, kind="gauge", unit="B"),
            curve("nvml sm_clock", "GPU 0", times[::50], np.arange(20) * 10**8, kind="gauge", unit="Hz"),
        ),
        devices=(
            Device("GPU 0", "gpu", host),
            Device('GPU "1"', "gpu", host),
            Device("package 0", "cpu", host),
            Device("psys", "psys", host),
        ),
        metadata={"command": ["/usr/bin/python3", "/home/me/train it.py", "--password=x"], "zone": "FR"},
    )


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
