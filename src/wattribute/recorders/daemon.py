"""Docker or Podman on this machine: find its socket, list its images, find one by name.

One SDK (``docker``) speaks to both. ``connect`` looks at DOCKER_HOST and CONTAINER_HOST, then at the usual sockets; a
daemon on another machine is refused, since the meters here do not see what it uses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import MissingExtraError, NotFoundError, OptionError, UnsupportedError

VARIABLES = ("DOCKER_HOST", "CONTAINER_HOST")
START = "start one: sudo systemctl start docker, or: systemctl --user start podman.socket"
_HERE = ("localhost", "127.0.0.1", "::1")
_ANSWER_S = 20.0  # within which a daemon has to answer; what takes long (pull, wait) has no limit


@dataclass(frozen=True)
class Daemon:
    """A daemon that answers."""

    client: Any  # docker.DockerClient
    address: str
    name: str  # "Docker" or "Podman"
    version: tuple[int, ...]

    @property
    def podman(self) -> bool:
        return self.name == "Podman"

    def close(self) -> None:
        self.client.close()


def sdk() -> Any:
    """The docker package, or the command that installs it."""
    try:
        import docker
    except ImportError:
        raise MissingExtraError("docker", "docker") from None
    return docker


def addresses(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> list[str]:
    """Where a daemon may listen: what the environment names, or else each usual socket that is there."""
    named = [environment[name] for name in VARIABLES if environment.get(name)]
    if named:
        return named[:1]
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    paths = [
        "/var/run/docker.sock",
        f"{runtime}/docker.sock",
        f"{environment.get('HOME', '')}/.docker/run/docker.sock",
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    ]
    there = [root / path.lstrip("/") for path in paths]
    return [f"unix://{path}" for path in there if path.exists()]


def connect(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> Daemon:
    """The first daemon that answers; raises with one line that says how to get one."""
    docker = sdk()
    known = addresses(environment, root)
    refused = []
    for address in known:
        _check_here(address)
        try:
            client = docker.DockerClient(base_url=address, timeout=_ANSWER_S)
            answer = client.version()
        except (docker.errors.DockerException, OSError) as error:
            refused.append(f"{address} {_reason(error)}")
            continue
        parts = [str(part.get("Name", "")) for part in answer.get("Components") or ()]
        name = "Podman" if any("podman" in part.lower() for part in parts) else "Docker"
        return Daemon(client, address, name, _version(str(answer.get("Version", ""))))
    if refused:
        raise NotFoundError(f"no container daemon answers ({'; '.join(refused)}); {START}")
    raise NotFoundError(f"no container daemon here (no socket of Docker or Podman, no DOCKER_HOST); {START}")


def _check_here(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme in ("unix", "npipe") or (parts.scheme in ("tcp", "http") and parts.hostname in _HERE):
        return
    raise UnsupportedError(
        f"the container daemon {address} is on another machine, whose energy cannot be metered from here; "
        "run wattribute there, or unset " + " and ".join(VARIABLES)
    )


def _reason(error: Exception) -> str:
    text = str(error)
    if "Permission denied" in text or isinstance(error, PermissionError):
        return "may not be opened by this user: join its group (docker) or use rootless Podman"
    if "Connection refused" in text or "No such file" in text:
        return "does not listen"
    return f"fails: {text.splitlines()[0][:200] if text else type(error).__name__}"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


# ------------------------------------------------------------------------------------------------------------ images


@dataclass(frozen=True)
class Image:
    """One name of a local image."""

    name: str
    id: str
    size_bytes: int
    created: str  # ISO 8601, or "" when unknown


def images(daemon: Daemon | None = None) -> list[Image]:
    """The local images of a ``daemon`` (None: the one that is found), by name; one without a name by its id."""
    if daemon is None:
        connected = connect()
        try:
            return images(connected)
        finally:
            connected.close()
    rows = []
    for image in daemon.client.images.list():
        short, about = image.short_id.removeprefix("sha256:"), image.attrs
        for name in image.tags or [f"<none> ({short})"]:
            rows.append(Image(name, short, int(about.get("Size") or 0), _created(about.get("Created"))))
    return sorted(rows, key=lambda image: image.name)


def _created(given: Any) -> str:
    from datetime import datetime, timezone

    if isinstance(given, (int, float)):
        return datetime.fromtimestamp(given, timezone.utc).isoformat()
    return str(given or "")


def find(daemon: Daemon, name: str, pull: bool = False) -> Any:
    """The image of a name, pulled if that was asked for; raises with close names when there is none."""
    docker = sdk()
    try:
        if pull:
            repository, tag = docker.utils.parse_repository_tag(name)
            daemon.client.api.timeout = None
            try:
                return daemon.client.images.pull(repository, tag=tag or "latest")
            finally:
                daemon.client.api.timeout = _ANSWER_S
        return daemon.client.images.get(name)
    except docker.errors.ImageNotFound:
        raise _unknown(daemon, name, pull) from None
    except docker.errors.APIError as error:
        if pull:
            raise NotFoundError(f"image {name!r} could not be pulled: {error_text(error)}") from None
        raise _unknown(daemon, name, pull) from None


def _unknown(daemon: Daemon, name: str, pull: bool) -> Exception:
    known = {shorter(image.name) for image in images(daemon) if not image.name.startswith("<none>")}
    if not known:
        return NotFoundError(f"no image {name!r}, and no other here; build one, or try --pull")
    error = OptionError.unknown("image", shorter(name), known)
    hint = "the registry has none" if pull else "--pull asks a registry"
    return OptionError(f"{error} ({hint}; wattribute images lists what is here)")


def shorter(name: str) -> str:
    """A name as people type it: without Podman's prefix for local images and without the default tag."""
    return name.removeprefix("localhost/").removeprefix("docker.io/library/").removesuffix(":latest")


def error_text(error: Any) -> str:
    """Format the error of a daemon as one line."""
    text = str(getattr(error, "explanation", "") or error)
    return " ".join(text.split())[:400]
