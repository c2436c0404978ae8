"""Nodes of statements about queries and about what stands."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class ShowNode(exp.Expression):
    """SHOW what: QUERIES, STREAMS, TABLES, SOURCES, VIEWS, FUNCTIONS or SUMMARIES."""

    arg_types: ClassVar[dict[str, bool]] = {"what": True, "extended": False}


class DescribeNode(exp.Expression):
    """DESCRIBE this; ``summary``: whether that is one."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "summary": False}


class ExplainNode(exp.Expression):
    """EXPLAIN [ANALYZE] query, or ``handle``, a string or a name; begin, end: where the query's text is."""

    arg_types: ClassVar[dict[str, bool]] = {
        "query": False,
        "handle": False,
        "analyze": False,
        "begin": False,
        "end": False,
    }


class CreateQueryNode(exp.Expression):
    """CREATE QUERY [IF NOT EXISTS] this AS query; begin, end: where the query's text is."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "query": True,
        "if_not_exists": True,
        "begin": True,
        "end": True,
    }


class RenameQueryNode(exp.Expression):
    """ALTER QUERY ``handle`` RENAME TO this."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "handle": True}


class InsertNode(exp.Expression):
    """INSERT INTO this (columns) VALUES rows: identifiers, None for all; tuples of values."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "columns": False, "rows": True}


class InsertQueryNode(exp.Expression):
    """INSERT INTO this (columns) query: identifiers, None for all."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "columns": False, "query": True}


class AlterNode(exp.Expression):
    """ALTER QUERY: ``handle``, a string or a name, and a query; begin, end: where the query's text is."""

    arg_types: ClassVar[dict[str, bool]] = {"query": True, "handle": True, "begin": True, "end": True}


class ControlNode(exp.Expression):
    """PAUSE, RESUME or TERMINATE: ``action`` in lower case; ``handle`` a string or a name; ``release`` and
    ``if_exists`` bools: a query that is not there is none to end.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "action": True,
        "handle": True,
        "release": True,
        "if_exists": False,
    }
