"""``check_wheel.py WHEEL SDIST``: what both hold; the wheel is installed, without a compiler, on every Python we claim.

Each installation gets a virtual environment of its own, and runs ``wattribute demo`` with nothing else on its PATH.
Pythons that are not on this machine are named and left out; ``--require-all`` makes that an error.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNWANTED = re.compile(r"\.(c|h|o|a|pyc)$|(^|/)(tests|docs|benchmarks|__pycache__)/")
RELATIVE = re.compile(r"\]\((?!https?:|#|mailto:)([^)]+)\)")
NEEDED = ("_core/libwattribute", "py.typed", "samples/trace/traces.otf2", "samples/run.watt/wattribute.json")


SOURCES = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml"}
SOURCES |= {"setup.cfg", "setup.py", "src"}  # all that a source archive holds


def claimed() -> list[str]:
    """The versions that the classifiers of pyproject.toml name, as "3.10"."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())


def interpreter(version: str) -> str | None:
    """A Python of this version that can be run, of pyenv or on the PATH."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    candidates = sorted(glob.glob(f"{root}/versions/{version}.*/bin/python"))
    for candidate in filter(None, [*candidates, shutil.which(f"python{version}")]):
        try:
            if subprocess.run([candidate, "-c", "import ctypes, venv"], capture_output=True).returncode == 0:
                return candidate
        except OSError:  # not ours to run
            continue
    return None


def content_problems(wheel: Path) -> list[str]:
    """What a wheel should not hold, and what it lacks."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    problems = [f"{name} does not belong into a wheel" for name in names if UNWANTED.search(name)]
    problems += [
        f"{name} is not stripped" for name in names if name.endswith(".so") and b".symtab" in archive.read(name)
    ]
    about = next((archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")), "")
    problems += [f"the description links to {link}, which is not there" for link in RELATIVE.findall(about)]
    return problems + [f"{name} is missing" for name in NEEDED if not any(name in each for each in names)]


def source_problems(sdist: Path) -> list[str]:
    """What a source archive should not hold, and what it lacks."""
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames() if "/" in name]
    built = (name for name in names if re.search(r"\.(so|dylib|pyc)$", name))
    strange = sorted({name.partition("/")[0] for name in names} - SOURCES)
    problems = [f"{name} does not belong into a source archive" for name in (*strange, *built)]
    return problems + [f"{name} is missing" for name in sorted(SOURCES - {name.partition("/")[0] for name in names})]


def try_out(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel in a new environment and run the demo there."""
    environment = folder / "venv"
    subprocess.run([python, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    bare = {"PATH": f"{environment}/bin", "HOME": str(folder), "LANG": "C.UTF-8", "PIP_CACHE_DIR": _pip_cache()}
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    subprocess.run([*pip, "--only-binary", ":all:", wheel], check=True, env=index | bare)
    demo = subprocess.run(["wattribute", "demo"], cwd=folder, env=bare, capture_output=True, text=True)
    if demo.returncode or "no C core" in demo.stderr or "Whose joules?" not in demo.stdout:
        sys.exit(f"wattribute demo failed on {python}:\n{demo.stdout}\n{demo.stderr}")


def _pip_cache() -> str:
    """The user's, because each environment has a home of its own."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("PIP_CACHE_DIR") or f"{cache}/pip"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("sdist", type=Path)
    parser.add_argument("--require-all", action="store_true")
    arguments = parser.parse_args()
    if problems := [*content_problems(arguments.wheel), *source_problems(arguments.sdist)]:
        sys.exit("\n".join([f"{arguments.wheel}, {arguments.sdist}:", *problems]))
    for version in claimed():
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not on this machine")
            if arguments.require_all:
                sys.exit(1)
            continue
        with tempfile.TemporaryDirectory(prefix="wattribute-wheel-") as folder:
            try_out(arguments.wheel.resolve(), python, Path(folder))
        print(f"Python {version}: installed without a compiler, the demo runs", flush=True)


if __name__ == "__main__":
    main()
