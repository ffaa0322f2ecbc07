"""SQL over a recording and its attribution: tables spans, frames, locations, signals, readings, attribution, devices.

Polars' own SQL by default; DuckDB (an extra) where its dialect is wanted. Only the tables a query names are made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..engines import attribute
from ..errors import MissingExtraError, NoDataError, OptionError
from ..model import Attribution, Question, ReadOptions, Recording
from ..model.question import make, split
from ..outputs.recording_tables import by_name
from ..reading import as_recording

if TYPE_CHECKING:
    import polars as pl

ENGINES = ("polars", "duckdb")


def sql(
    source: Recording | str | os.PathLike[str], query: str, dialect: str = "polars", **options: Any
) -> pl.DataFrame:
    """The result of a ``query`` about ``source``, a Recording or a path, in a ``dialect``: polars or duckdb.

    ``options`` are the keyword arguments of :func:`wattribute.attribute`, for the table ``attribution``.
    """
    if dialect not in ENGINES:
        raise OptionError.unknown("SQL dialect", dialect, ENGINES)
    reading, rest = split(options)
    make(Question, {name: value for name, value in rest.items() if name not in ("spans", "engine", "threads")})
    recording = as_recording(source, make(ReadOptions, reading))

    @cache
    def attributed() -> Attribution:
        return attribute(recording, **rest)

    known = by_name(attributed, recording)
    if re.fullmatch(r"\s*show\s+tables\s*;?\s*", query, re.IGNORECASE):
        return schema(known)
    if not re.match(r"\s*(select|with|show|explain|describe|from|summarize|pivot)\b", query, re.IGNORECASE):
        raise OptionError("SQL: recordings are read-only; begin with SELECT or WITH")
    words = {word.lower() for word in re.findall(r"\w+", query)}
    tables = {name: make() for name, make in known.items() if name in words}
    if not tables and re.search(r"^(?!\s*with\b).*\bfrom\b", query, re.IGNORECASE | re.DOTALL):
        asked = re.search(r"\bfrom\s+\"?(\w+)", query, re.IGNORECASE)
        raise OptionError.unknown("table", asked[1] if asked else "", known)
    return _duckdb(query, tables) if dialect == "duckdb" else _polars(query, tables)


def schema(known: Mapping[str, Callable[[], pl.DataFrame]]) -> pl.DataFrame:
    """The tables of a recording with their columns, as ``SHOW TABLES`` gives them; one without data has no columns."""
    import polars as pl

    rows = []
    for name, make_table in sorted(known.items()):
        try:
            table = make_table()
        except NoDataError:  # without energy nothing can be attributed; the other tables are there all the same
            table = pl.DataFrame()
        rows.append({"table": name, "rows": len(table), "columns": ", ".join(table.columns)})
    return pl.DataFrame(rows)


def _polars(query: str, tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    try:
        result: pl.DataFrame = pl.SQLContext(tables, eager=True).execute(query)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise OptionError(f"SQL: {_first_line(error)}") from error
    return result


def _duckdb(query: str, tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("sql", "duckdb") from error
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table.to_arrow())
        try:
            kinds = {statement.type for statement in connection.extract_statements(query)}
            if kinds - {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}:
                raise OptionError("SQL: recordings are read-only; ask with SELECT, in one statement")
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            relation = connection.sql(query)
            if relation is None:
                raise OptionError("SQL: this statement gives no table; ask with SELECT")
            result = pl.from_arrow(relation.to_arrow_table())
        except duckdb.Error as error:
            raise OptionError(f"SQL: {_first_line(error)}") from error
    return result if isinstance(result, pl.DataFrame) else result.to_frame()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
