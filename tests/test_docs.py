"""What the README and the docs promise runs: every ``sh`` and ``python`` fence, page by page, in a fresh folder.

What cannot run here (Slurm, Grafana, macOS) is a ``console`` fence with a reason in the line before it.
"""

import inspect
import os
import re
import subprocess
import sys
import textwrap
from importlib import import_module
from inspect import isclass
from pathlib import Path
from pkgutil import iter_modules

import pytest

import wattribute
import wattribute.integrations
import wattribute.testing
from tests.conftest import ROOT, restart_net

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
RUN = [page for page in PAGES if page.name != "earlier-tools.md"]  # which test_earlier_tools.py runs, with its tables
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def fences(page: Path) -> list[tuple[str, str]]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, textwrap.dedent(code)) for _, language, code in found]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_fences_run(page, tmp_path, warm):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = os.environ | {
        "PATH": f"{warm.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "COLUMNS": "120",
    }
    for language, code in fences(page):
        if language not in ("sh", "python"):
            continue
        restart_net()
        command = ["sh", "-e", "-c", code] if language == "sh" else warm.python(code)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{page.name}:\n{code}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_exist(page):
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} points at {target}"


def test_every_fence_has_a_known_language():
    for page in PAGES:
        for language, _ in fences(page):
            assert language in {"sh", "python", "console", "text", "toml", "json", "yaml", "ini"}, (page, language)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=lambda page: page.stem)
def test_pages_begin_with_what_the_reader_will_be_able_to_do(page):
    title, space, first = page.read_text(encoding="utf-8").splitlines()[:3]
    assert title.startswith("# ")
    assert space == ""
    assert first.startswith("You will be able to ")


REFERENCE = re.findall(
    r"^::: wattribute\.([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE
)
PACKAGES = (wattribute.testing, wattribute.integrations)
MODULES = ["plugins", "samples"]
MODULES += [
    f"{package.__name__.split('.')[1]}.{each.name}" for package in PACKAGES for each in iter_modules(package.__path__)
]


def test_the_python_reference_has_every_public_name():
    assert sorted(REFERENCE) == sorted(set(REFERENCE))
    assert {name for name in REFERENCE if "." not in name} == {*wattribute.__all__, "plugins", "samples"} - {
        "__version__"
    }
    assert {*MODULES} <= {*REFERENCE}


@pytest.mark.parametrize("name", sorted({*wattribute.__all__} - {"__version__", "plot"}))
def test_docstrings_of_public_names_say_what_every_argument_is(name):
    value = getattr(wattribute, name)
    members = [getattr(value, each) for each in vars(value) if not each.startswith("_")] if isclass(value) else [value]
    assert value.__doc__
    for function in filter(callable, members):
        known = inspect.getdoc(function) or ""
        for argument in inspect.signature(function).parameters.values():
            if argument.name != "self" and argument.kind is not argument.VAR_KEYWORD:
                assert re.search(rf"\b{argument.name}\b", known), f"{function.__qualname__}: {argument.name}"
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("module", MODULES)
def test_public_names_of_modules_have_docstrings(module):
    """What has none is not in the reference."""
    loaded = import_module(f"wattribute.{module}")
    for name, value in vars(loaded).items():
        if not name.startswith(("_", "pytest_")) and getattr(value, "__module__", "") == loaded.__name__:
            assert value.__doc__, f"{module}.{name}"


def test_the_readme_links_every_page_of_the_site():
    """Pages that are generated have no file in docs; index.md is the README's twin."""
    listed = set(re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {page for page in listed - {"index.md"} if (ROOT / "docs" / page).exists()}
    linked = re.findall(r"\]\(docs/([\w/-]+\.md)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert set(linked) == pages
    assert pages == {str(page.relative_to(ROOT / "docs")) for page in PAGES if ROOT / "docs" in page.parents} - {
        "index.md"
    }


def test_the_command_line_reference_is_what_help_says():
    script = ROOT / "tools" / "make_cli_reference.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
