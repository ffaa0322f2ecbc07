"""Builds the C core as a plain shared library (no Python.h), so that one wheel serves every Python of a platform.

Without a compiler the package still installs: the NumPy twin takes over and ``wattribute info`` says so.
"""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = sorted(str(path) for path in Path("src/wattribute/_core").glob("*.c"))
FLAGS = ["-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra"]
FLAGS += ["-ffp-contract=off", "-fno-math-errno", "-fwrapv"]  # the bits of the NumPy twin


class SharedLibrary(build_ext):
    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split("."))) + (".dylib" if sys.platform == "darwin" else ".so")

    def get_export_symbols(self, ext: Extension) -> list:
        return []  # there is no PyInit


class AnyPython(bdist_wheel):
    def get_tag(self) -> tuple:
        return "py3", "none", super().get_tag()[2]


core = Extension(
    "wattribute._core.libwattribute",
    sources=SOURCES,
    depends=sorted(str(path) for path in Path("src/wattribute/_core").glob("*.h")),
    extra_compile_args=FLAGS,
    libraries=["m"],
    optional=True,
)
setup(ext_modules=[core] if SOURCES else [], cmdclass={"build_ext": SharedLibrary, "bdist_wheel": AnyPython})
