"""The flags that let servers follow what runs: a verb takes a parameter ``followers`` and wears ``with_push``."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Optional

from .flags import Option, with_flags

# Typer reads these types at run time, on Python 3.10 too, and wants Optional
_Text = Optional[str]  # noqa: UP045


def _flags(
    push: Annotated[
        list[str],
        Option(
            metavar="URL",
            help="Send readings while it runs, repeatable: victoria+http://HOST, influx+http://HOST/DB, "
            "influx2+https://HOST/ORG/BUCKET or otlp+http://HOST.",
        ),
    ] = [],  # noqa: B006
    secrets: Annotated[
        _Text, Option(metavar="FILE", help="Users, passwords, tokens of --push by server; only you may read it.")
    ] = None,
    serve: Annotated[
        _Text, Option(metavar="[ADDR]:9401", help="Let Prometheus scrape /metrics there while it runs.")
    ] = None,
) -> None:
    """Only its signature counts."""


def _followers(push: list[str], secrets: str | None, serve: str | None) -> list[Any]:
    """What follows the run; mistakes are told before anything runs."""
    if not push and serve is None:
        return []
    from ..outputs.timeseries.following import Push, Serve

    followers: list[Any] = []
    if push:
        from ..outputs.timeseries.secrets import headers
        from ..outputs.timeseries.target import parse

        targets = list(dict.fromkeys(parse(address) for address in push))
        followers += [Push(*pair) for pair in zip(targets, headers(targets, secrets), strict=True)]
    if serve is not None:
        followers.append(Serve(serve))
        if serve.endswith(":0"):
            print(f"wattribute: serving {followers[-1].url}", file=sys.stderr, flush=True)
    return followers


with_push = with_flags("followers", _flags, _followers)
