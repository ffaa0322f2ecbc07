"""What tests share: a machine of known sensors, the folder of real traces, honest skips, and a net under every wait.

A program that a test starts sees the meter ``model`` and no other (``WATTRIBUTE_METERS``), none of the user's settings,
and a temporary folder of its own, in which nothing may be left. Tests wait for events: the only time limit is that of
``net``, minutes long.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
NET_S = 600  # after this long a test that waits is given up

# a busy machine must not fail a property; `WATTRIBUTE_EXAMPLES=1000 make test` looks harder; CI repeats its examples
settings.register_profile(
    "ours",
    deadline=None,
    max_examples=int(os.environ.get("WATTRIBUTE_EXAMPLES", "30")),
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("ours")

# ----------------------------------------------------------------------------------------------- the machine tests see

OURS = {"SHARED", "EXAMPLES", "ARKOUDA", "PEERS", "CORE", "REQUIRE_CORE", "TEST_FOLDER"}  # settings of the tests
for name in [name for name in os.environ if name.startswith("WATTRIBUTE_")]:
    if name.removeprefix("WATTRIBUTE_") not in OURS:
        del os.environ[name]
os.environ["WATTRIBUTE_METERS"] = "model"


@pytest.fixture
def own_sensors(monkeypatch):
    """The machine's own sensors, for tests that accept all of them."""
    monkeypatch.delenv("WATTRIBUTE_METERS")


def pytest_configure(config):
    """One temporary folder for all that tests and their programs make; workers use that of their master.

    Programs that tests interrupt inherit what Ctrl-C does: nothing, where a shell started us in the background.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "WATTRIBUTE_TEST_FOLDER" in os.environ:
        return
    for old in Path(tempfile.gettempdir()).glob("wattribute-test-*-*"):  # kept of tests that failed
        if not Path("/proc", old.name.split("-")[2]).exists():
            shutil.rmtree(old, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=f"wattribute-test-{os.getpid()}-")
    Path(folder).chmod(0o755)  # some tests become another user
    config.stash[FOLDER] = folder
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for program in ("pip", "uv"):
        os.environ.setdefault(f"{program.upper()}_CACHE_DIR", str(cache / program))  # downloaded once, kept
    os.environ |= {
        "WATTRIBUTE_TEST_FOLDER": folder,
        "TMPDIR": folder,
        "XDG_CACHE_HOME": f"{folder}/cache",
        "npm_config_cache": f"{folder}/cache/npm",
        "TMUX_TMPDIR": f"{folder}/cache",
        "DASK_TEMPORARY_DIRECTORY": f"{folder}/cache",
    }
    Path(folder, "cache").mkdir()
    tempfile.tempdir = folder


FOLDER = pytest.StashKey[str]()
LEFT = pytest.StashKey[list[str]]()
KEPT = ("pytest-of-", "cache", "wattribute-fake-")  # of tests that failed; of the session


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Nothing may be left by a test."""
    folder = session.config.stash.get(FOLDER, None)
    if folder is None:
        return
    left = sorted(path.name for path in Path(folder).iterdir() if not path.name.startswith(KEPT))
    session.config.stash[LEFT] = left
    if left and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED:
        shutil.rmtree(folder, ignore_errors=True)


LONGEST = ("test_docs.py", "test_pythons.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The longest files first: one that ends last, alone, leaves cores idle for minutes."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


# ------------------------------------------------------------------------------------------------------- skips, and CI

# what no package and no setting of a CI machine changes; every other skip is a failure there
BEYOND = re.compile(
    "the machine is busy|not permitted here|no right to|WATTRIBUTE_(ARKOUDA|PEERS)[^ ]* names no|CPython ≤ 3.11"
    "|half a character|belongs to the tests|no mounts here|only root"
    "|no Python 3[.]|[.][.]/shared|npm |needs root|no interpreter here|of the server's release"
)


def _reason(report):
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _fail_on_ci(report):
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        reason = _reason(report)
        if not BEYOND.search(reason):
            report.outcome = "failed"
            report.longrepr = f"skipped on CI, where it can run (`make system` installs what is needed): {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _fail_on_ci((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and call.when == "call" and item.get_closest_marker("realtime"):
        others = item.stash[WATCH].others()
        if others > BUSY_CORES:
            last = str(report.longrepr).strip().splitlines()[-1]
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1], f"Skipped: {_busy(others)}; it failed: {last[:200]}")
    return _fail_on_ci(report)


def pytest_terminal_summary(terminalreporter, config):
    reasons: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", ()):
        reasons[_reason(report)].append(report.nodeid.partition("::")[0])
    if reasons:
        terminalreporter.section("skipped")
        for reason, files in sorted(reasons.items(), key=lambda item: -len(item[1])):
            terminalreporter.line(f"{len(files):4}  {reason}  ({', '.join(sorted(set(files)))})")
    if terminalreporter.stats.get("failed") and FOLDER in config.stash:
        terminalreporter.line(f"kept until the next run: {config.stash[FOLDER]}")
    if left := config.stash.get(LEFT, []):
        terminalreporter.section("left behind by tests in the temporary folder", red=True)
        terminalreporter.line(f"{config.stash[FOLDER]}: {', '.join(left)}")


# ------------------------------------------------------------------------------------------------- time, and real time

BUSY_CORES = 0.5  # what others may use while real seconds are measured
WATCH = pytest.StashKey["Watch"]()


class Watch:
    """How much of the CPUs others use from now on, in cores; what this process and its ended children use is ours."""

    def __init__(self) -> None:
        self.at, self.busy, self.own = time.monotonic(), _busy_s(), _own_s()

    def others(self) -> float:
        took = max(time.monotonic() - self.at, 1e-3)
        return (_busy_s() - self.busy - (_own_s() - self.own)) / took


def _busy_s() -> float:
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0  # not Linux: nothing is known of others
    user, nice, system, _, _, irq, softirq, steal = map(int, words)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _busy(others: float) -> str:
    return f"the machine is busy ({others:.0f} cores in use by others): real seconds cannot be measured"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if item.get_closest_marker("realtime"):
        watch = Watch()
        time.sleep(0.3)
        if (others := watch.others()) > BUSY_CORES:
            pytest.skip(_busy(others))
        item.stash[WATCH] = Watch()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """The net: what still waits after ``NET_S`` is interrupted and fails."""

    def fall(number, frame):
        pytest.fail(f"still waiting after {NET_S} s", pytrace=True)

    before = signal.signal(signal.SIGALRM, fall)
    signal.alarm(NET_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def restart_net():
    """Begin the time of the net again, for a test of many steps of which each has come to its end so far."""
    signal.alarm(NET_S)


def until(condition, every_s: float = 0.02):
    """Wait until ``condition()`` is true; the net is what ends it otherwise."""
    while not (answer := condition()):
        time.sleep(every_s)
    return answer


# ------------------------------------------------------------------------------------------------------- what is shared


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real traces and reference numbers, beside the project."""
    for path in (ROOT.parent / "shared", Path(os.environ.get("WATTRIBUTE_SHARED", "/nonexistent"))):
        if (path / "traces").is_dir():
            return path
    pytest.skip("no ../shared folder with real traces here (set WATTRIBUTE_SHARED to name one)")


def need(command: str) -> str:
    """The path of a program; without it the test skips, and on CI (where it was installed first) fails."""
    return shutil.which(command) or pytest.skip(
        f"{command} is not installed: `make system` installs what the tests need"
    )


@pytest.fixture
def everybodys():
    """A folder that other users may enter; not one of pytest's, which every session beside ours closes to them."""
    with tempfile.TemporaryDirectory(prefix="wattribute-test-") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.fixture(scope="session")
def engine():
    """Podman with the image ``tiny``, in a folder with a short name: under 40 letters and more Podman waits 20 s for
    the end of every container."""
    from tests.podman import ready

    with tempfile.TemporaryDirectory(prefix="watt-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        engine = ready(Path(folder))
        yield engine
        engine.stop()


@pytest.fixture
def podman(engine):
    """The same with a service, which is a new one for every test: an old one that has followed the log of a container
    that is gone now spins for ever."""
    engine.serve()
    yield engine
    engine.rest()


@pytest.fixture
def verb(monkeypatch):
    """Run a command line of ours in this process, where what it imports is loaded already; gives its exit code."""
    from wattribute import cli

    def run(words: list[str]) -> int:
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0

    return run


@pytest.fixture
def command(verb, monkeypatch, capfdbinary):
    """The same with what a process gives: ``command("info", path).stdout``; a process takes half a second to start."""

    def run(*words: object, cwd: Path | None = None, text: bool = True) -> subprocess.CompletedProcess:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        capfdbinary.readouterr()
        code = verb(["wattribute", *map(str, words)])
        out, err = capfdbinary.readouterr()
        return subprocess.CompletedProcess(words, code, *((out.decode(), err.decode()) if text else (out, err)))

    return run


@pytest.fixture(scope="session")
def warm():
    """Real processes that do not import everything once more, for pages of commands."""
    from tests.warm import Warm

    with tempfile.TemporaryDirectory(prefix="watt-", dir="/tmp") as folder:  # the path of a socket has to be short
        made = Warm(Path(folder))
        yield made
        made.close()


@pytest.fixture
def utc(monkeypatch):
    """Times without a zone are local ones: here is Greenwich."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
