"""The bare install works on every Python we promise: a wheel of ours, its core dependencies, nothing else."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.check_wheel import claimed, content_problems, interpreter

VERSIONS = [version for version in claimed() if version != "{}.{}".format(*sys.version_info)]
SMOKE = """
import wattribute, sys
from wattribute import archive
from wattribute.model import Recording
archive.save(Recording(), sys.argv[1])
assert wattribute.read(sys.argv[1]).problems == ()
print(wattribute.__version__)
"""


# a third of pip's time; not there where pip has an index of its own (tools/setup-venv.sh)
UV = [sys.executable, "-m", "uv"] if find_spec("uv") else []
OFFLINE = re.compile("connection|name resolution|timed out|retrying|proxy", re.IGNORECASE)


def installed(said: str) -> None:
    """Skip where pip failed because it cannot reach an index; else fail."""
    if OFFLINE.search(said):
        pytest.skip("no package index can be reached here")
    pytest.fail(said)


def build(folder: Path, **environment: str) -> Path:
    """A wheel of a fresh copy of the source, in which nothing was compiled yet."""
    source = folder / "source"
    shutil.copytree(
        ROOT,
        source,
        ignore=shutil.ignore_patterns(".git", ".venv*", "build", ".*_cache", "*.so", "dist", "demo", "node_modules"),
    )
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(source)]
    if UV:
        command = [*UV, "build", "--wheel", "--python", sys.executable, "-o", str(folder), str(source)]
    locks = {"TMPDIR": str(folder)}  # which uv leaves
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | locks | environment)
    if done.returncode:
        installed(done.stderr)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    built = build(tmp_path_factory.mktemp("wheel"))
    if shutil.which("cc") or shutil.which("gcc"):
        assert "-py3-none-" in built.name
        assert "-any" not in built.name
        assert content_problems(built) == []
    return built


@pytest.mark.slow
def test_without_a_compiler_the_wheel_is_for_any_machine_and_the_core_s_absence_is_said_once(tmp_path):
    built = build(tmp_path / "wheel", CC="/bin/false")
    assert built.name.endswith("-py3-none-any.whl")
    target = tmp_path / "installed"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-compile",
        "--target",
        str(target),
        str(built),
    ]
    subprocess.run(pip, check=True, capture_output=True)
    assert not list(target.rglob("*.so"))

    def wattribute(*words, **more):
        command = [sys.executable, "-m", "wattribute", *words]
        environment = os.environ | {"PYTHONPATH": str(target)} | more
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert wattribute("run", "-q", "-o", "x.watt", "--", "true").stderr == ""  # stderr is the command's
    done = wattribute("info", "x.watt")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "no C core" in line] == done.stderr.splitlines()[:1]
    assert "install a C compiler, then: pip install" in done.stderr
    assert wattribute("info", "x.watt", WATTRIBUTE_CORE="reference").stderr == ""  # it was asked for
    for words in (["info", "x.watt"], ["run", "-o", "y.watt", "--", "true"]):
        done = wattribute(*words, WATTRIBUTE_REQUIRE_CORE="1")
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
        assert "was not compiled, and WATTRIBUTE_REQUIRE_CORE asks for it" in done.stderr
    with pytest.raises(pytest.fail.Exception, match="/bin/false"):
        build(tmp_path / "required", CC="/bin/false", WATTRIBUTE_REQUIRE_CORE="1")


@pytest.fixture(scope="module")
def installs(wheel, tmp_path_factory) -> dict[str, tuple[str, Path, subprocess.Popen]]:
    """A folder of packages per Python, all installing at the same time."""
    started = {}
    for version in VERSIONS:
        python = interpreter(version)
        if python:
            folder = tmp_path_factory.mktemp(version)
            pip = [*UV, "pip"] if UV else [sys.executable, "-m", "pip", "--python", python]
            command = [*pip, "install", "-q", "--no-compile", "--target", str(folder), str(wheel)]
            command += ["--python", python] if UV else []
            started[version] = python, folder, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    return started


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_bare_install(version, installs, tmp_path):
    if version not in installs:
        pytest.skip(f"no Python {version} here")
    python, folder, install = installs[version]
    _, said = install.communicate()
    if install.returncode:
        installed(said)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    run = partial(subprocess.run, env=environment, capture_output=True, text=True)
    done = run([python, "-c", SMOKE, str(tmp_path / "x.watt")])
    assert done.returncode == 0, done.stderr
    assert "Whose joules?" in run([python, "-m", "wattribute", "--help"]).stdout
    for verb in ("attribute", "export"):
        assert "--output" in run([python, "-m", "wattribute", verb, "--help"]).stdout
    done = run([python, "-m", "wattribute", "demo"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("-m wattribute view wattribute-demo/trace\n")
