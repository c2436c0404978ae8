"""What a text says of the changes of its answer, bound: Query.operator and Query.emit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import cast, get_args

from sqlglot import exp

from engine.algebra.streamed.stage import StreamOperator
from engine.language import known_options
from engine.language.bind.environment import Environment
from engine.language.bind.options import WithOptions
from engine.language.bind.sources import RSTREAM_HINT, RSTREAM_REFUSED
from engine.language.places import shown
from engine.language.query import Emit, InsertTarget, Query, ResultEncoding, ResultFormat
from engine.language.update_patterns import Pattern, update_patterns
from engine.model.tolerance import AMOUNTS
from engine.windows.clauses import RowWindow
from tureen.errors import NotSupported, SyntaxRefused

INTO_CHARACTERS_MAX = 100
INTO_RESERVED = "log"
"""The topic that queries share whose changes are no rows by key."""

_INTO = re.compile(r"[a-z0-9_-]+")
OPTIONS = tuple(known_options.EMIT)
_BEFORE = dict.fromkeys(AMOUNTS, "it is said of the query: write WITH (max_fn = 0.1) EMIT CHANGES")
_FINAL = "FROM TUMBLE(s, 1 MINUTE) ... GROUP BY window_end"


def with_changes(query: Query, tree: exp.Expr, env: Environment) -> Query:
    """The query of a SELECT that nothing is around, with what it says of changes.

    Raises SyntaxRefused, TypeMismatch and LimitExceeded for names and options, NotSupported for ON WINDOW
    CLOSE where rows of closed windows are not all there is.
    """
    operator, clause = tree.args.get("operator"), tree.args.get("emit")
    if operator is not None:
        if str(operator.this) == "RSTREAM" and query.has_streams:
            raise env.text.of_node(operator).refuse(NotSupported, RSTREAM_REFUSED, hint=RSTREAM_HINT)
        query = replace(query, operator=cast("StreamOperator", str(operator.this).lower()))
    if clause is not None:
        query = replace(query, emit=_emit(clause, query, env))
        if clause.args.get("on_close") is not None:  # that a window is over does not take its rows back
            query = replace(query, operator="istream")
    return query


def with_insert(query: Query, target: InsertTarget, tree: exp.Expr, env: Environment) -> Query:
    """The query of an INSERT INTO a stream, with what its EMIT CHANGES says, if it has one.

    Raises NotSupported for what is said of a topic of changes.
    """
    clause, emit = tree.args.get("emit"), query.emit or Emit()
    if clause is not None and (emit.into is not None or (emit.format, emit.encoding) != ("upsert", "json")):
        raise env.text.of_node(clause.args.get("into") or clause).refuse(
            NotSupported,
            "INSERT writes JSON records of its stream: EMIT CHANGES has no INTO, format or encoding there",
            hint="leave it out; WITH (snapshot = false) leaves out what is there at the beginning",
        )
    return replace(query, emit=replace(emit, insert=target))


def _emit(clause: exp.Expr, query: Query, env: Environment) -> Emit:
    into, on_close, plain = clause.args.get("into"), clause.args.get("on_close"), Emit()
    options = WithOptions(clause.args.get("options") or (), OPTIONS, env.text, _BEFORE)
    if on_close is not None:
        _check_final(on_close, query, env)
    emit = Emit(
        None if into is None else _into(into, env),
        on_close is not None,
        cast("ResultFormat", options.choice("format", get_args(ResultFormat), plain.format)),
        cast("ResultEncoding", options.choice("encoding", get_args(ResultEncoding), plain.encoding)),
        options.flag("snapshot", plain.snapshot),
    )
    if emit.into is None and emit.encoding != "json":
        raise options.place("encoding").refuse(
            NotSupported,
            f"a topic in {emit.encoding} declares its columns, and queries that share one differ in theirs",
            hint="write EMIT CHANGES INTO name",
        )
    return emit


def _into(identifier: exp.Expr, env: Environment) -> str:
    """The last part of the topic's name."""
    name, place = str(identifier.this), env.text.of_node(identifier)
    if len(name) > INTO_CHARACTERS_MAX:
        raise place.exceeded(
            "into_characters_max", INTO_CHARACTERS_MAX, len(name), hint="write a shorter name"
        )
    if _INTO.fullmatch(name) is None:
        raise place.refuse(
            SyntaxRefused,
            f"{shown(name)!r} cannot be a part of a topic's name here",
            hint="write small letters from a to z, digits, _ and -; with a - put the name in double quotes",
        )
    if name == INTO_RESERVED:
        raise place.refuse(
            SyntaxRefused,
            f"{name!r} is the name of a topic that all queries share",
            hint="write another name, or leave INTO out",
        )
    return name


# --- ON WINDOW CLOSE --------------------------------------------------------------------------------


def _check_final(node: exp.Expr, query: Query, env: Environment) -> None:
    """Raise NotSupported unless all rows come as windows close, and none is revised afterwards."""
    place = env.text.of_node(node)
    if query.operator not in (None, "istream"):
        raise place.refuse(
            NotSupported,
            f"ON WINDOW CLOSE is ISTREAM of closed windows, this query has {query.operator.upper()}",
            hint="leave one of them out",
        )
    open_source = _open_source(query)
    if open_source is not None:
        raise place.refuse(
            NotSupported,
            f"rows of {shown(open_source)} are in no window that closes",
            hint=f"write {_FINAL}, or leave ON WINDOW CLOSE out",
        )
    if update_patterns(query)[-1] > Pattern.WKS:  # no table among its sources: those are in no window
        raise place.refuse(
            NotSupported,
            "rows of this answer still come, change or go after their window closed",
            hint=f"{_within_windows(query)}, or leave ON WINDOW CLOSE out",
        )


def _open_source(query: Query) -> str | None:
    """A source of a query that is not cut into windows."""
    return next((scan.source for scan in query.scans() if scan.assignment is None), None)


def _within_windows(query: Query) -> str:
    """What to write so that every window is answered on its own."""
    if any(isinstance(scan.window, RowWindow) for scan in query.scans()):
        return "leave the window of rows out"
    if any(stage.seeks_partners for stage in query.stages):
        return "join by window_end too, and write it in GROUP BY, DISTINCT and PARTITION BY"
    if any(stage.right_input for stage in query.stages):
        return "select window_end on both sides, over windows that hold all that closed, or as many of them"
    return "write window_end in GROUP BY, DISTINCT and PARTITION BY"
