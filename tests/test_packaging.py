"""What a release is made of says the same: versions, dependencies, addresses; workflows call make and nothing else."""

import ast
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import wattribute
from tests.conftest import ROOT
from tools.check_wheel import NEEDED, SOURCES, claimed, content_problems, source_problems
from tools.make_recipes import CONDA, SPACK, filled

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BOUND = re.compile(r"^([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)")


def bounds(requirements):
    return dict(BOUND.match(line).groups() for line in requirements)


def test_the_version_is_in_one_place():
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_changelog_begins_with_this_version():
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(wattribute.__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", titles[0])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", title) for title in titles[1:])


def test_addresses_agree():
    home, docs = PROJECT["urls"]["Homepage"], PROJECT["urls"]["Documentation"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["repository-code"], citation["url"], citation["license"]) == (home, docs, PROJECT["license"])
    recipe = yaml.safe_load(CONDA.read_text(encoding="utf-8"))
    assert (recipe["about"]["homepage"], recipe["about"]["documentation"]) == (home, docs)
    assert f'homepage = "{home}"' in SPACK.read_text(encoding="utf-8")


def test_the_conda_recipe_needs_what_the_package_needs():
    listed = dict(
        line.split(" >=") for line in yaml.safe_load(CONDA.read_text(encoding="utf-8"))["requirements"]["run"]
    )
    needed = bounds(line for line in PROJECT["dependencies"] if ";" not in line)  # tomli: conda has newer Pythons
    assert listed == {"python": PROJECT["requires-python"].removeprefix(">="), **needed}


def test_the_conda_recipe_renders():
    """By rattler-build's own parser: an unknown field or a wrong value is an error of it."""
    rattler = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    recipe = rattler.Stage0Recipe.from_file(CONDA)
    tools = rattler.VariantConfig({"python": ["3.12"], "c_compiler": ["gcc"], "c_stdlib": ["sysroot"]})
    (variant,) = recipe.render(tools, rattler.RenderConfig(rattler.PlatformConfig(target_platform="linux-64")))
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "wattribute", "version": wattribute.__version__}
    assert rendered["requirements"]["build"] == ["gcc_linux-64", "sysroot_linux-64"]


def test_the_spack_recipe_needs_what_the_package_needs():
    text = SPACK.read_text(encoding="utf-8")
    ast.parse(text)
    listed = dict(re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):', text))
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["plot"], *extras["dask"]]
    assert listed == {"setuptools": "77", **bounds(wanted)}


def test_the_install_page_names_every_extra():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == {*PROJECT["optional-dependencies"]} - {
        "all",
        "dev",
    }


def test_what_does_not_belong_into_an_archive_is_found(tmp_path):
    wheel, sdist = tmp_path / "x.whl", tmp_path / "x.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*NEEDED, "wattribute/_core/watch.c"):
            archive.writestr(f"{name}.so" if name.endswith("libwattribute") else name, "\x7fELF .symtab")
        archive.writestr("wattribute-1.dist-info/METADATA", "[more](docs/install.md) [site](https://example.org)")
    (tmp_path / "wattribute-1" / "docs").mkdir(parents=True)
    for name in SOURCES - {"LICENSE"}:
        (tmp_path / "wattribute-1" / name).touch()
    with tarfile.open(sdist, "w:gz") as archive:
        archive.add(tmp_path / "wattribute-1", "wattribute-1")
    assert content_problems(wheel) == [
        "wattribute/_core/watch.c does not belong into a wheel",
        "_core/libwattribute.so is not stripped",
        "the description links to docs/install.md, which is not there",
    ]
    assert source_problems(sdist) == ["docs does not belong into a source archive", "LICENSE is missing"]


def test_recipes_are_filled_with_version_and_checksum():
    for recipe in (CONDA, SPACK):
        text = recipe.read_text(encoding="utf-8")
        assert f'"{wattribute.__version__}"' in text
        done = filled(text, "9.8.7", "ab" * 32)
        assert done.count("9.8.7") == text.count(f'{wattribute.__version__}"') + text.count(
            f"{wattribute.__version__}.tar"
        )
        assert done.count("ab" * 32) == 1
        assert wattribute.__version__ not in done


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_only_call_make_targets_that_exist(workflow):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    for step in (step for job in jobs.values() for step in job["steps"] if "run" in step):
        command = step["run"].strip()
        assert command.startswith(("make ", "sudo make system"))
        assert command.partition("make ")[2] in targets


def test_the_matrix_holds_every_python_we_claim():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert set(re.findall(r'"(3\.\d+)"', text)) == set(claimed())
    assert PROJECT["requires-python"] == f">={claimed()[0]}"


FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_files_follow_their_schema(schema, files):
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
