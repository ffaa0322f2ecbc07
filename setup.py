"""Builds the C core as a plain shared library (no Python.h), so that one wheel serves every Python of a platform.

Without a compiler the package still installs: the wheel then holds Python alone and is tagged so (``any``), the NumPy
twin takes over and says so. ``WATTRIBUTE_REQUIRE_CORE=1`` makes that an error instead.
"""

import os
import re
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = sorted(str(path) for path in Path("src/wattribute/_core").glob("*.c"))
FLAGS = ["-std=c11", "-O3", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
FLAGS += ["-ffp-contract=off", "-fno-math-errno", "-fwrapv"]  # the bits of the NumPy twin


def long_description() -> str:
    """The README with links that lead to the repository: elsewhere its files are not beside it."""
    home = re.search(r'^Homepage = "(.+)"$', Path("pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert home is not None
    return re.sub(
        r"(!?)(\[[^\]]*\]\()(?!https?:|#|mailto:)",
        lambda match: f"{match[1]}{match[2]}{home[1]}/{'raw' if match[1] else 'blob'}/main/",
        Path("README.md").read_text(encoding="utf-8"),
    )


class SharedLibrary(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split("."))) + (".dylib" if sys.platform == "darwin" else ".so")

    def get_export_symbols(self, ext: Extension) -> list:
        return []  # there is no PyInit

    def run(self) -> None:
        super().run()
        if not all(Path(self.get_ext_fullpath(ext.name)).exists() for ext in self.extensions):
            self.distribution.ext_modules = []  # what is left serves every platform


class AnyPython(bdist_wheel):
    def run(self) -> None:
        self.run_command("build")  # first: what was compiled decides what the wheel is called
        self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()

    def get_tag(self) -> tuple:
        return "py3", "none", super().get_tag()[2]


core = Extension(
    "wattribute._core.libwattribute",
    sources=SOURCES,
    depends=sorted(str(path) for path in Path("src/wattribute/_core").glob("*.h")),
    extra_compile_args=FLAGS,
    extra_link_args=["-Wl,-x" if sys.platform == "darwin" else "-Wl,-s"],  # without local symbols
    libraries=["m"] + ["pthread"] * sys.platform.startswith("linux"),
    optional=os.environ.get("WATTRIBUTE_REQUIRE_CORE", "0") in ("", "0"),
)
setup(
    ext_modules=[core] if SOURCES else [],
    cmdclass={"build_ext": SharedLibrary, "bdist_wheel": AnyPython},
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
