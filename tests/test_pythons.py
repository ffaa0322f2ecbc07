"""The bare install works on every Python we promise: a wheel of ours, its core dependencies, nothing else."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ROOT

VERSIONS = ("3.10", "3.12", "3.13")
SMOKE = """
import wattribute, sys
from wattribute import archive
from wattribute.model import Recording
archive.save(Recording(), sys.argv[1])
assert wattribute.read(sys.argv[1]).problems == ()
print(wattribute.__version__)
"""


def interpreter(version: str) -> str | None:
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in filter(None, [*sorted(str(path) for path in pyenv.glob(f"{version}.*/bin/python")), found]):
        if subprocess.run([candidate, "-c", "import ctypes"], capture_output=True).returncode == 0:
            return candidate
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv", "build", ".*_cache", "*.so", "*.watt"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    assert built.name.endswith(".whl")
    assert "-py3-none-" in built.name
    return built


@pytest.fixture(scope="module")
def installs(wheel, tmp_path_factory) -> dict[str, tuple[str, Path, subprocess.Popen]]:
    """A folder of packages per Python, all installing at the same time."""
    started = {}
    for version in VERSIONS:
        python = interpreter(version)
        if python:
            folder = tmp_path_factory.mktemp(version)
            pip = [sys.executable, "-m", "pip", "--python", python]
            command = [*pip, "install", "-q", "--no-compile", "--target", str(folder), str(wheel)]
            started[version] = python, folder, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    return started


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_bare_install(version, installs, tmp_path):
    if version not in installs:
        pytest.skip(f"no Python {version} here")
    python, folder, install = installs[version]
    _, said = install.communicate()
    assert install.returncode == 0, said
    environment = os.environ | {"PYTHONPATH": str(folder)}
    run = partial(subprocess.run, env=environment, capture_output=True, text=True)
    done = run([python, "-c", SMOKE, str(tmp_path / "x.watt")])
    assert done.returncode == 0, done.stderr
    assert "Whose joules?" in run([python, "-m", "wattribute", "--help"]).stdout
    for verb in ("attribute", "export"):
        assert "--output" in run([python, "-m", "wattribute", verb, "--help"]).stdout
    done = run([python, "-m", "wattribute", "run", "-q", "-o", str(tmp_path / "run.watt"), "--", "true"])
    assert done.returncode == 0, done.stderr
