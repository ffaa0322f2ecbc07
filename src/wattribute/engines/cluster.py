"""Connection to a Dask cluster: a scheduler's address, the client open in this process, or workers started here.

``connected`` reaches the cluster in ``CONNECT_S`` seconds or raises; ``check`` waits for workers and compares versions
and code. What the user opened stays open. Inside of a ``session`` one cluster serves all questions.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from asyncio import CancelledError
from asyncio import TimeoutError as AsyncTimeoutError
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from ..errors import ClusterError, MissingExtraError
from . import identity
from .local import available

CONNECT_S = 5
WORKERS_S = 15  # the first may be starting
SILENCE_S = 60  # of a scheduler or a worker that may be busy
_ASK_S = 10
_RESTART_S = 600
_LOGGERS = ("distributed", "distributed.client", "distributed.gc")  # Dask gives each of them a level
_COMPARED_PACKAGES = ("wattribute", "numpy")
TIMEOUTS = (TimeoutError, AsyncTimeoutError)  # one class from Python 3.11 on
_MALLOC_VARIABLE = "MALLOC_TRIM_THRESHOLD_"  # Dask's value of it gives memory back after every large array


T = TypeVar("T")


class _Session:
    """Clients that stay open until the outermost session ends."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, int | None], Any] = {}
        self.awaited: set[Any] = set()  # clients whose workers were waited for
        self.stack = ExitStack()

    def client(self, address: str, workers: int | None) -> Any:
        client = self.clients.get((address, workers))
        if client is None or client.status != "running":  # its scheduler went away
            client = self.stack.enter_context(_opened(address, workers))
            self.clients[address, workers] = client
        return client


_session: ContextVar[_Session | None] = ContextVar("session", default=None)


@contextmanager
def session() -> Iterator[None]:
    """Questions asked inside share their clusters, which end with the outermost session."""
    if _session.get() is not None:
        yield
        return
    opened = _Session()
    token = _session.set(opened)
    try:
        with opened.stack:
            yield
    finally:
        _session.reset(token)


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[Any]:
    """A client of the cluster at ``address``; without one the client open in this process, else workers here."""
    with _client(address, workers) as client:
        try:
            yield client
        except (_distributed().comm.CommClosedError, CancelledError) as error:
            raise ClusterError("the connection to the Dask scheduler was lost; nothing was finished") from error


@contextmanager
def _client(address: str, workers: int | None) -> Iterator[Any]:
    if not address:
        try:
            client = _distributed().get_client()
        except ValueError:  # none is open
            client = None
        if client is not None:  # not inside the try: an OptionError of the work is a ValueError, too
            yield client
            return
    shared = _session.get()
    if shared is not None:
        yield shared.client(address, workers)
        return
    with _opened(address, workers) as client:
        yield client


@contextmanager
def _opened(address: str, workers: int | None) -> Iterator[Any]:
    distributed = _distributed()
    where: AbstractContextManager[Any] = (
        _reached(distributed, address) if address else _own(distributed, workers or available())
    )
    with _quiet(), where as client:
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
                kind = within(CONNECT_S, lambda: _run_loop(lambda: _identity(distributed, address))).get("type")
                if kind != "Scheduler":
                    raise ValueError(f"it answers as a {kind}" if kind else "its answer is not that of a scheduler")
            client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except Exception as error:  # bytes of another protocol end in any kind, MemoryError among them
            raise ClusterError(
                f"no Dask scheduler answers at {address} within {CONNECT_S} s ({_reason(error)}); "
                "is it running, and is the address the one it printed (tcp://HOST:8786)?"
            ) from error
        with client, _watched(client):
            yield client


@contextmanager
def _watched(client: Any) -> Iterator[None]:
    """Cut the connection to a scheduler that is connected and silent: Dask would wait for it without end."""
    done = Event()

    def cut() -> None:
        client.rpc.remove(client.scheduler.address, reason="the scheduler does not answer")
        client.scheduler_comm.comm.abort()

    def watch() -> None:
        while not done.wait(_ASK_S) and client.status == "running":
            try:
                within(SILENCE_S, client.nthreads)
            except TimeoutError:
                client.loop.add_callback(cut)
            except Exception:  # it was closed meanwhile
                return

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _reason(error: BaseException) -> str:
    """Why there was no answer; what the bytes of another protocol did to Dask's parser does not help the user."""
    if isinstance(error, TimeoutError):
        return "the connection was accepted and nothing was answered" if not str(error) else str(error)
    cause = error.__cause__
    if isinstance(error, (OSError, ValueError, TypeError)) and "dimension" not in str(error):
        return (str(cause or "") or str(error)).partition("\n")[0].rpartition(">: ")[2]
    return "what listens there is not a Dask scheduler"


async def _identity(distributed: Any, address: str) -> dict[str, Any]:
    """What a server of Dask says it is. ``distributed.Client`` waits without end for the answer of anything else."""
    arguments = distributed.Security().get_connection_args("client")
    # less than the limit of the whole, so that the reason of a refused connection is known before that ends
    comm = await distributed.comm.connect(address, timeout=0.8 * CONNECT_S, **arguments)
    try:
        await comm.write({"op": "identity", "reply": True})
        return dict(await comm.read())
    finally:
        comm.abort()


def _run_loop(work: Callable[[], Awaitable[T]]) -> T:
    import asyncio

    async def run() -> T:
        return await work()

    return asyncio.run(run())


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of ``work()`` from a new thread, or raise TimeoutError; a thread that hangs is left behind."""
    done: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:
            done.put((None, error))

    Thread(target=run, daemon=True).start()
    try:
        value, error = done.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


@contextmanager
def _own(distributed: Any, workers: int) -> Iterator[Any]:
    """A process per processor, one thread each: two such beat one with two threads."""
    import dask

    environment = dict(dask.config.get("distributed.nanny.pre-spawn-environ", {}))
    environment.pop(_MALLOC_VARIABLE, None)
    with tempfile.TemporaryDirectory(prefix="wattribute-dask-", ignore_cleanup_errors=True) as place:
        own = {"distributed.nanny.pre-spawn-environ": environment, "temporary-directory": place}
        with dask.config.set(own):
            try:
                cluster = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                    local_directory=place,  # Dask itself would leave a folder behind
                )
            except (RuntimeError, OSError) as error:
                raise ClusterError(
                    f"Dask workers cannot be started on this machine ({error}); in a script, use engine 'dask' "
                    "under if __name__ == '__main__': only, because every worker imports the script"
                ) from error
        # Dask gives a worker up for good if it is not back by then; on a busy machine its imports alone take longer
        patience = dask.config.set({"distributed.deploy.lost-worker-timeout": f"{_RESTART_S}s"})
        with patience, cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's messages on stderr: we report the same in one line."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def answers(client: Any) -> bool:
    """Whether the scheduler still answers."""
    until = time.monotonic() + CONNECT_S
    while client.status == "connecting" and time.monotonic() < until:
        time.sleep(0.05)
    if client.status == "connecting":  # Dask tries on; who was given up for silence is not waited for again
        return False
    try:
        within(SILENCE_S, client.nthreads)
    except Exception:  # any error means: no answer
        return False
    return True


def check(client: Any, workers: int | None = None, wait_s: float | None = None) -> int:
    """How many threads the workers have together; an error if there are none, or if one runs other code.

    ``workers`` is how many to wait for, once in a session; those that are there after ``wait_s`` do the work.
    """
    awaited = set() if (shared := _session.get()) is None else shared.awaited
    needed = 1 if client in awaited else workers or 1
    awaited.add(client)
    try:
        client.wait_for_workers(needed, timeout=WORKERS_S if wait_s is None else wait_s)
    except TIMEOUTS as error:
        if not client.nthreads():
            raise ClusterError(
                f"the Dask scheduler at {client.scheduler.address} has no workers; start some "
                f"(dask worker {client.scheduler.address}) and try again"
            ) from error
    versions = _answered(client, lambda: client.get_versions(packages=["wattribute"]))
    mine = _versions(versions["client"])
    for address, reported in sorted(versions["workers"].items()):
        theirs = _versions(reported)
        for name in ("python", *_COMPARED_PACKAGES):
            if theirs[name] != mine[name]:
                has = f"has {name} {theirs[name]}" if theirs[name] else f"has no {name}"
                raise ClusterError(f"worker {address} {has}, here is {mine[name]}; install the same on both sides")
    for address, code in sorted(_answered(client, lambda: client.run(identity.code, on_error="return")).items()):
        if code != identity.code():
            raise ClusterError(f"worker {address} {other_code(code)}")
    return sum(client.nthreads().values())


def _answered(client: Any, question: Callable[[], T]) -> T:
    """The answers of all workers; an error if one is there and silent, for which Dask would wait without end."""
    try:
        return within(SILENCE_S, question)
    except TimeoutError as error:
        workers: dict[str, Any] = {}
        with suppress(TimeoutError):
            workers = within(_ASK_S, client.scheduler_info)["workers"]
        silent = min(workers, key=lambda address: workers[address]["last_seen"], default="")
        who = f"worker {silent}" if silent else f"scheduler at {client.scheduler.address}"
        raise ClusterError(
            f"the Dask {who} does not answer within {SILENCE_S} s; stop it, or wait until its node has time"
        ) from error


def other_code(code: object) -> str:
    """Message about a worker whose code differs from the client's."""
    why = f": {code}" if isinstance(code, Exception) else ""
    return (
        f"runs other code of wattribute than the client, though the version is the same{why}; "
        "install the same on both sides and start the workers again"
    )


def _versions(report: Any) -> dict[str, str | None]:
    packages = dict(report["packages"])
    python = str(packages.get("python") or ".".join(map(str, sys.version_info[:3])))
    return {"python": ".".join(python.split(".")[:2])} | {name: packages.get(name) for name in _COMPARED_PACKAGES}


def here() -> str:
    """This machine and process, for messages of a worker."""
    return f"{os.uname().nodename}, process {os.getpid()}"
