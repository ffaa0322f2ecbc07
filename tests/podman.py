"""Podman of our own for tests: its configuration, storage and socket in a temporary folder, an image made of busybox.

Nothing of the machine's Podman is touched, and no registry is asked.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.conftest import need, until

APPLETS = ("sh", "cat", "echo", "env", "ls", "mkdir", "printf", "seq", "sleep", "true")
# cgroupfs: there may be no systemd; limits: a machine's own may be higher than a container may ask for
ENGINE = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


class Podman:
    """A Podman service; ``environment`` is what a program needs to find it."""

    def __init__(self, folder: Path) -> None:
        self.program = need("podman")
        need("runc")
        if os.geteuid() != 0:
            pytest.skip("containers need root here: run the tests as root")
        self.socket = folder / "podman.sock"
        (folder / "containers.conf").write_text(ENGINE)
        self._folder = folder
        own = {
            "CONTAINERS_CONF": f"{folder}/containers.conf",
            "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
        }
        self._own = {**os.environ, **own}
        self.environment = {**self._own, "DOCKER_HOST": f"unix://{self.socket}"}
        self._service: subprocess.Popen[bytes] | None = None

    def __call__(self, *arguments: object, data: bytes | None = None) -> str:
        """Run ``podman …``; what it said."""
        done = subprocess.run([self.program, *map(str, arguments)], input=data, env=self._own, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def start(self) -> Podman:
        tried = []
        for driver in ("overlay", "vfs"):  # vfs copies whole images, but works on every file system
            place = f'graphroot = "{self._folder}/{driver}"\nrunroot = "{self._folder}/run-{driver}"\n'
            (self._folder / "storage.conf").write_text(f'[storage]\ndriver = "{driver}"\n{place}')
            try:
                self("import", "-", "tiny:latest", data=root_file_system())
                self("run", "--rm", "--network", "none", "tiny", "true")
                break
            except AssertionError as error:
                tried.append(str(error).splitlines()[-1][:300])
        else:
            pytest.skip(f"podman cannot run containers here: {tried}")
        return self

    def serve(self) -> None:
        self._service = subprocess.Popen(
            [self.program, "system", "service", "--time=0", f"unix://{self.socket}"],
            env=self._own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(self.socket.exists)

    def rest(self) -> None:
        if self._service is not None:
            self._service.terminate()
            self._service.wait()
        self._service = None
        self.socket.unlink(missing_ok=True)

    def containers(self) -> list[str]:
        """The names of all containers, running or not."""
        return self("ps", "--all", "--format", "{{.Names}}").split()

    def stop(self) -> None:
        self.rest()
        self("rm", "--all", "--force")
        # Podman mounts its storage onto itself, and leaves it so
        subprocess.run(["umount", "--lazy", self._folder / "overlay" / "overlay"], stderr=subprocess.DEVNULL)


def root_file_system() -> bytes:
    """A tar of a root file system in which busybox is everything."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.add(need("busybox"), "bin/busybox")
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return made.getvalue()


def ready(folder: Path) -> Podman:
    pytest.importorskip("docker", reason="the docker extra is not installed")
    podman = Podman(folder)
    try:
        return podman.start()
    except BaseException:
        podman.stop()
        raise
