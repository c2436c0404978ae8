"""Tree nodes for what sqlglot has no node for.

Every node that the grammar makes carries ``meta["start"]``, its first character in the text, and
``meta["height"]``, the levels below and including it.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class Duration(exp.Expression):
    """``this``: milliseconds as int."""


class NowOffset(exp.Expression):
    """``NOW``, or NOW minus ``this`` milliseconds (int, negative: back in time)."""


class RangeClause(exp.Expression):
    """``[RANGE this]``: milliseconds as int."""


class RowsClause(exp.Expression):
    """``[ROWS this]``: a count as int."""


class NowClause(exp.Expression):
    """``[NOW]``."""

    arg_types: ClassVar[dict[str, bool]] = {}


class UnboundedClause(exp.Expression):
    """``[UNBOUNDED]``."""

    arg_types: ClassVar[dict[str, bool]] = {}


class BeginEnd(exp.Expression):
    """``BEGIN begin END end``: NowOffset, or a Literal: a number in ms, or a string as a timestamp."""

    arg_types: ClassVar[dict[str, bool]] = {"begin": True, "end": True}


class StreamReference(exp.Expression):
    """``this [window] alias``: Identifier, a clause or None, Identifier or None."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "window": False, "alias": False}


class StreamQuery(exp.Expression):
    """SELECT expressions FROM source WHERE where ``ends`` (BeginEnd or None)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "expressions": True,
        "source": True,
        "where": False,
        "ends": False,
    }


class DistinctFrom(exp.Expression):
    """``this IS DISTINCT FROM expression``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class IsTruth(exp.Expression):
    """``this IS value``: TRUE or FALSE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True}


class Call(exp.Expression):
    """A call: ``name`` upper-case, ``expressions``, ``star`` for COUNT(*)."""

    arg_types: ClassVar[dict[str, bool]] = {"name": True, "expressions": False, "star": False}


class TypeName(exp.Expression):
    """A type as written: ``name`` upper-case, ``numbers`` its arguments."""

    arg_types: ClassVar[dict[str, bool]] = {"name": True, "numbers": False}


class ColumnDeclaration(exp.Expression):
    """``this kind [NOT NULL]``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True, "not_null": False}


class OptionSetting(exp.Expression):
    """``name = value``: str, bool or int, or a Duration node."""

    arg_types: ClassVar[dict[str, bool]] = {"name": True, "value": True}


class CreateStreamNode(exp.Expression):
    """CREATE STREAM; ``retain``: Duration or None."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "columns": True,
        "options": False,
        "retain": False,
        "if_not_exists": False,
    }


class DropStreamNode(exp.Expression):
    """DROP STREAM."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "if_exists": False}
