"""A root file system of this machine's own parts as a tar on standard output: busybox, Python, NumPy, their libraries.

For machines without a registry: ``python rootfs.py | podman import - wattribute-base``.
"""

import io
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

APPLETS = ("sh", "cat", "echo", "env", "ls", "mkdir", "sleep", "true")
UNUSED = "__pycache__|tests?|config-[^/]*|idlelib|ensurepip|lib2to3|site-packages|dist-packages|turtledemo"
LEFT_OUT = re.compile(rf"(^|/)({UNUSED})(/|$)")
PYTHON = """#!/bin/sh
PYTHONPATH=/opt/packages exec {python} "$@"
"""


def shared(paths):
    """The shared libraries that programs and libraries need, at the places where the loader looks for them."""
    found = set()
    for path in paths:
        told = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        found.update(re.findall(r"(?:=> |^\s+)(/\S+) \(0x", told, re.MULTILINE))
    return found


def without(pattern):
    return lambda member: None if pattern.search(member.name) else member


def main():
    import numpy

    busybox = shutil.which("busybox") or sys.exit("busybox is not installed: apt-get install busybox-static")
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_path("stdlib"))
    package = Path(numpy.__file__).parent
    numbers = [package, package.parent / "numpy.libs"]
    compiled = [p for place in (library / "lib-dynload", *numbers) for p in place.rglob("*.so*")]
    there = {path.resolve() for path in compiled}
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", dereference=True) as tar:
        tar.add(busybox, "bin/busybox")
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        tar.add(python, str(python)[1:])
        starts = PYTHON.format(python=python).encode()
        program = tarfile.TarInfo("usr/bin/python3")
        program.size, program.mode = len(starts), 0o755
        tar.addfile(program, io.BytesIO(starts))
        tar.add(library, str(library)[1:], filter=without(LEFT_OUT))
        for place in filter(Path.exists, numbers):
            tar.add(place, f"opt/packages/{place.name}", filter=without(LEFT_OUT))
        for path in sorted(shared([busybox, python, *compiled])):
            if Path(path).resolve() not in there:
                tar.add(path, path[1:])


if __name__ == "__main__":
    main()
