"""Tree nodes for what stands in FROM besides names and queries. What every node carries is told by
:mod:`engine.language.grammar.nodes`.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class ValueRows(exp.Expression):
    """``VALUES expressions``: RowValues of one width; without any, one row that has no columns."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class Series(exp.Expression):
    """``name(expressions, step)`` in FROM. name: GENERATE_SERIES or RANGE. expressions: start and stop, or
    the latter alone. step: an expression or None. interval: (months, ms) of a step of time, or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "name": True,
        "expressions": True,
        "step": False,
        "interval": False,
    }


class Unnest(exp.Expression):
    """``UNNEST(expressions) WITH ORDINALITY`` in FROM. ordinality: whether this is written. hidden: whether
    it is of selected columns, so that ``*`` does not give its own.
    """

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "ordinality": False, "hidden": False}


class TableFunction(exp.Expression):
    """``name(this PARTITION BY keys, column, durations)`` in FROM.

    this: Identifier of what it is about. name: TUMBLE, HOP or SESSION. column: the Identifier of the time
    column or None. durations: as written, at least one.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "name": True,
        "keys": False,
        "column": False,
        "durations": True,
    }
