"""Files and folders that appear whole or not at all, and new folders that never overwrite."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import FormatError, OptionError, OutputError, check_name

STANDARD_OUTPUT = "-"  # as the name of a file to write
_USER_FOLDERS = {"CACHE": "~/.cache", "CONFIG": "~/.config", "DATA": "~/.local/share"}
_ATTEMPTS = 100  # to remove a folder in which new files appear


@contextmanager
def replacing(target: str | os.PathLike[str], mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a binary file to write to; it takes the name ``target`` when all went well, and leaves nothing when not.

    A target that exists and is no regular file (a pipe) is written to directly, and so is all below ``/dev``: a shell
    may have made ``/dev/stdout`` a regular file, whose name is not ours to replace. A link stays one. Several processes
    may write the same target: the last one wins, whole. ``-`` is standard output.
    """
    if nonempty_path(os.fspath(target)) == STANDARD_OUTPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    with _as_output_error(path, "cannot be written"):
        direct = path.absolute().parts[1:2] in (("dev",), ("proc",))
        path = path if direct else path.resolve()
        if direct or (path.exists() and not path.is_file()):
            with path.open("wb") as special:
                yield special
            return
        import tempfile  # slow to import, and a command that is measured waits for this module

        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            os.chmod(name, mode & ~_umask())  # a temporary file is private; what it becomes is an ordinary one
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def write_file(target: str | os.PathLike[str], data: bytes | str, mode: int = 0o666) -> Path:
    """Write data to a file all at once."""
    with replacing(target, mode) as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return Path(target)


@contextmanager
def replacing_folder(target: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """Make a folder to fill; it takes the name ``target`` when all went well, and leaves nothing when not.

    A folder that is there already is an error, or with ``overwrite`` replaced.
    """
    import shutil
    import tempfile

    path = _folder(target)
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already; choose another name or remove it")
    with _as_output_error(path, "cannot be written"):
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", dir=path.absolute().parent))
        try:
            yield temporary
            os.chmod(temporary, 0o777 & ~_umask())
            shutil.rmtree(path, ignore_errors=True)
            os.rename(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder that is gone afterwards, even if a process that outlives the block still makes files in it."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="wattribute-"))
    try:
        yield folder
    finally:
        for _ in range(_ATTEMPTS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break


def user_folder(kind: str, name: str) -> Path:
    """This user's folder of a kind ("CACHE": $XDG_CACHE_HOME), whether it exists or not; without a home, one in which
    nothing can be."""
    base = os.environ.get(f"XDG_{kind}_HOME") or os.path.expanduser(_USER_FOLDERS[kind])
    return Path(os.devnull if base.startswith("~") else base) / "wattribute" / name


def new_folder(path: str | os.PathLike[str], claimed: bool = False) -> Path:
    """Make a folder; one that is there already is an error, unless the caller made it itself (``claimed``)."""
    folder = _folder(path)
    try:
        folder.mkdir(parents=True, exist_ok=claimed)
    except FileExistsError:
        raise OutputError(f"{folder} exists already; choose another name or remove it") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from error
    return folder


def _folder(target: str | os.PathLike[str]) -> Path:
    """The path of a folder to make; refuse a name that cannot be one."""
    if nonempty_path(os.fspath(target)) == STANDARD_OUTPUT:
        raise OptionError("a folder cannot go to standard output; name it")
    path = Path(target)
    check_name(path)
    return path


def check_writable(target: str | os.PathLike[str]) -> None:
    """Raise early if a file cannot be written there, and not after minutes of work."""
    if nonempty_path(os.fspath(target)) == STANDARD_OUTPUT:
        return
    path = Path(target)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist")
    is_device = path.exists() and not path.is_file()  # /dev/stderr is written to, files are replaced
    if path.is_dir() or not os.access(path if is_device else folder, os.W_OK):
        raise OutputError(f"{path}: cannot be written; choose another name or folder")


@contextmanager
def _as_output_error(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path}: {what}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def nonempty_path(path: str) -> str:
    """Return the path; refuse an empty one, as of a variable that is not set: it would name this folder."""
    if not path:
        raise OptionError("an empty path: name a file or a folder ('.' is this one)")
    return path


def check_size(path: Path, size: int | None = None) -> None:
    """Refuse a file that needs more memory than is free, before it is taken; ``size`` is its own by default."""
    needed = os.stat(path).st_size if size is None else size
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _cached_bytes()
    except (ValueError, OSError):  # a system that does not say
        return
    if needed > free:
        raise FormatError(path, f"needs {needed / 2**30:.3g} GiB of memory and {free / 2**30:.3g} GiB are free")


def _cached_bytes() -> int:
    """What the kernel gives back when it is asked for: AVPHYS does not count it."""
    try:
        with open("/proc/meminfo", "rb") as file:
            sizes = dict(line.split()[:2] for line in file)
        return (int(sizes[b"Cached:"]) + int(sizes[b"Buffers:"])) * 1024
    except (OSError, KeyError, ValueError):
        return 0
