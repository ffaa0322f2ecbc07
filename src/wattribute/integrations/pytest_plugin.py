"""The pytest plug-in: ``pytest --energy`` prints what each test used; the fixture ``energy`` measures a block.

::

    def test_training_is_frugal(energy):
        with energy() as used:
            train()
        assert used.energy_j < 50

Loaded by every pytest of an environment that has wattribute, so it imports nothing until it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..model import Recording
    from ..recorders.record import Recorder


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("energy", "energy per test (wattribute)")
    group.addoption("--energy", action="store_true", help="Measure the session and print the energy of every test.")
    group.addoption("--energy-meters", default="", metavar="NAMES", help="Meters to use, separated by commas.")
    group.addoption("--energy-interval", type=float, default=None, metavar="S", help="Seconds between readings.")
    group.addoption("--energy-output", default=None, metavar="X.watt", help="Keep the recording.")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("energy"):
        return
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError("--energy measures the whole machine, so tests must run one at a time: leave out -n")
    config.pluginmanager.register(EnergySession(config), "wattribute-session")


def _options(config: pytest.Config) -> dict[str, Any]:
    names = [name.strip() for name in str(config.getoption("energy_meters")).split(",") if name.strip()]
    return {"meters": names, "interval_s": config.getoption("energy_interval")}


class EnergySession:
    """Recording of a whole session; every test's call is a region named by its node id."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._stack = config, ExitStack()
        self._recorder: Recorder | None = None

    def pytest_sessionstart(self) -> None:
        from ..errors import WattributeError
        from ..recorders.record import record

        recorded = record(self._config.getoption("energy_output"), **_options(self._config))
        try:
            self._recorder = self._stack.enter_context(recorded)
        except WattributeError as error:
            raise pytest.UsageError(f"--energy: {error}") from error

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        from ..recorders.regions import region

        with region(item.nodeid):
            yield

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._stack.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        recording = None if self._recorder is None else self._recorder.recording
        if recording is None or not recording.signals:
            return
        from io import StringIO

        from ..views.console_regions import region_table
        from ..views.regions import used
        from ..views.terminal import Console

        text = StringIO()
        Console(file=text, width=max(100, terminalreporter._tw.fullwidth)).print(region_table(used(recording), "test"))
        terminalreporter.section("energy")
        for line in text.getvalue().splitlines():
            terminalreporter.write_line(line.rstrip())


class EnergyUse:
    """The energy of a block; filled when the block has ended."""

    energy_j: float = 0.0
    low_j: float | None = None
    high_j: float | None = None
    seconds: float = 0.0
    estimated: bool = False
    recording: Recording | None = None


@pytest.fixture
def energy(request: pytest.FixtureRequest) -> Callable[[], AbstractContextManager[EnergyUse]]:
    """Measures a block: ``with energy() as used: …`` and then ``used.energy_j``, ``low_j``, ``high_j``, ``seconds``."""

    @contextmanager
    def measure() -> Iterator[EnergyUse]:
        from ..recorders.record import record
        from ..recorders.regions import region
        from ..views.regions import used

        spent = EnergyUse()
        with record(**_options(request.config)) as recorder, region("block"):
            yield spent
        recording = recorder.recording
        block = next(row for row in used(recording) if row.name == "block")
        spent.energy_j, spent.low_j, spent.high_j = block.energy_j, block.low_j, block.high_j
        spent.seconds, spent.estimated, spent.recording = block.seconds, block.estimated, recording

    return measure
