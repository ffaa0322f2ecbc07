"""A Dask cluster to work on: found or started, reached in seconds or not at all, and fit for the work.

``connected`` takes an address, else the client that is open in this process, else starts workers on this machine. What
the user opened stays open.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import ClusterError, MissingExtraError
from .local import available

CONNECT_S = 5
WORKERS_S = 15  # the first may be starting
_COMPARED = ("wattribute", "numpy")
_MALLOC = "MALLOC_TRIM_THRESHOLD_"  # Dask's value of it gives memory back after every large array


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[Any]:
    """A client of the cluster at ``address``; without one, of whichever is at hand."""
    distributed = _distributed()
    if not address:
        try:
            yield distributed.get_client()
            return
        except ValueError:  # none is open
            pass
    with _quiet(), _own(distributed, workers) if not address else _reached(distributed, address) as client:
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("dask", "dask.distributed") from error
    return distributed


@contextmanager
def _reached(distributed: Any, address: str) -> Iterator[Any]:
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_S}s"}):
        try:
            if not address.startswith("inproc://"):  # a client that was made for no address at all never closes
                distributed.comm.get_address_host_port(address)
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = (str(error.__cause__ or "") or str(error)).partition("\n")[0].rpartition(">: ")[2]
            raise ClusterError(
                f"no Dask scheduler answers at {address} within {CONNECT_S} s ({reason}); "
                "is it running, and is the address the one it printed (tcp://HOST:8786)?"
            ) from error
        with client:
            yield client


@contextmanager
def _own(distributed: Any, workers: int | None) -> Iterator[Any]:
    """A process per processor, one thread each: two such beat one with two threads."""
    import dask

    environment = dict(dask.config.get("distributed.nanny.pre-spawn-environ", {}))
    environment.pop(_MALLOC, None)
    with dask.config.set({"distributed.nanny.pre-spawn-environ": environment}):
        cluster = distributed.LocalCluster(
            n_workers=workers or available(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask tells on stderr what we tell in a line of our own."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def answers(client: Any) -> bool:
    """Whether the scheduler can still be spoken to."""
    until = time.monotonic() + CONNECT_S
    while client.status == "connecting" and time.monotonic() < until:
        time.sleep(0.05)
    try:
        client.nthreads()
    except Exception:  # whatever it was, it is no answer
        return False
    return True


def check(client: Any, wait_s: float = WORKERS_S) -> int:
    """How many threads the workers have together; an error when there are none, or they run other versions."""
    try:
        client.wait_for_workers(1, timeout=wait_s)
    except TimeoutError as error:
        raise ClusterError(
            f"the Dask scheduler at {client.scheduler.address} has no workers; start some "
            f"(dask worker {client.scheduler.address}) and try again"
        ) from error
    found = client.get_versions(packages=["wattribute"])
    mine = _versions(found["client"])
    for address, told in sorted(found["workers"].items()):
        theirs = _versions(told)
        for name in ("python", *_COMPARED):
            if theirs[name] != mine[name]:
                has = f"has {name} {theirs[name]}" if theirs[name] else f"has no {name}"
                raise ClusterError(f"worker {address} {has}, here is {mine[name]}; install the same on both sides")
    return sum(client.nthreads().values())


def _versions(told: Any) -> dict[str, str | None]:
    packages = dict(told["packages"])
    python = str(packages.get("python") or ".".join(map(str, sys.version_info[:3])))
    return {"python": ".".join(python.split(".")[:2])} | {name: packages.get(name) for name in _COMPARED}


def here() -> str:
    """This machine and process, for messages of a worker."""
    return f"{os.uname().nodename}, process {os.getpid()}"
