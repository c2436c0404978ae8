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
    """``[RANGE this DOWN TO down_to SLIDE slide WHERE where]``: milliseconds as int, two Durations or None, a
    condition or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "down_to": False, "slide": False, "where": False}


class RowsClause(exp.Expression):
    """``[PARTITION BY keys ROWS this WHERE where]``: a count as int."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "keys": False, "where": False}


class NowClause(exp.Expression):
    """``[NOW]``, as RangeClause of width 0."""

    arg_types: ClassVar[dict[str, bool]] = {"slide": False, "where": False}


class UnboundedClause(exp.Expression):
    """``[UNBOUNDED]``, as RangeClause without a width."""

    arg_types: ClassVar[dict[str, bool]] = {"slide": False, "where": False}


class BeginEnd(exp.Expression):
    """``BEGIN begin END end``: NowOffset, or a Literal: a number in ms, or a string as a timestamp."""

    arg_types: ClassVar[dict[str, bool]] = {"begin": True, "end": True}


class FromItem(exp.Expression):
    """``this [window] FOR SYSTEM_TIME AS OF as_of alias (names)``.

    this: Identifier, TableFunction, ValueRows, Series, Unnest, SelectQuery, SetQuery or FromList. window,
    sample: a clause or None. alias: Identifier or None. lateral: whether LATERAL stands before a query.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "window": False,
        "sample": False,
        "alias": False,
        "names": False,
        "lateral": False,
        "as_of": False,
    }


class SampleClause(exp.Expression):
    """``SAMPLE(this DOWN TO down_to, seed)``: percentages as Decimal, the second None where it is not
    written; seed: an int or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "down_to": False, "seed": False}


class FromList(exp.Expression):
    """``this joins``: a FromItem, then what is joined to it, from left to right."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "joins": True}


class JoinItem(exp.Expression):
    """``kind JOIN this ON on``, ``kind JOIN this USING (using)``, or ``, this``.

    this: FromItem. kind: cross, inner, left, right, full, semi or anti. asof: whether ASOF stands before it.
    comma: whether it is written so; kind is then cross. using: Identifiers. natural: the columns that both
    have are those of USING.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "asof": False,
        "comma": False,
        "on": False,
        "using": False,
        "natural": False,
    }


class CommonTable(exp.Expression):
    """``this (names) AS (query)`` of a WITH."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "query": True, "names": False}


class OrderItem(exp.Expression):
    """``this DESC NULLS FIRST``; ``nulls_first`` None where the text does not say."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "descending": True, "nulls_first": False}


class AllColumns(exp.Expression):
    """``ALL`` of GROUP BY and ORDER BY: the columns of SELECT."""

    arg_types: ClassVar[dict[str, bool]] = {}


class StreamOperatorWord(exp.Expression):
    """ISTREAM, DSTREAM or RSTREAM around a query or its columns; ``this``: the word."""


class OnWindowClose(exp.Expression):
    """``ON WINDOW CLOSE``, or FINAL."""

    arg_types: ClassVar[dict[str, bool]] = {}


class AllowedClause(exp.Expression):
    """``WITH (options)`` behind a query: OptionSettings."""

    arg_types: ClassVar[dict[str, bool]] = {"options": True}


class PreferenceClause(exp.Expression):
    """``WITH PREFERENCE order priorities FADE FACTOR fade WINDOW window``: a word in lower case or None,
    expressions, FadeFactor or None, Duration or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "order": False,
        "priorities": True,
        "fade": False,
        "window": False,
    }


class FadeFactor(exp.Expression):
    """``this``: a float in (0, 1]."""


class EstimateCall(exp.Expression):
    """``summary.Estimate.property(column)``: Identifier, ``count`` or ``frequency``, a Column."""

    arg_types: ClassVar[dict[str, bool]] = {"summary": True, "property": True, "column": True}


class EmitClause(exp.Expression):
    """``EMIT CHANGES INTO into on_close WITH (options)``: Identifier or None, OnWindowClose or None."""

    arg_types: ClassVar[dict[str, bool]] = {"into": False, "on_close": False, "options": False}


class SelectQuery(exp.Expression):
    """WITH tables SELECT [DISTINCT] expressions FROM source WHERE where GROUP BY group HAVING having WINDOW
    windows QUALIFY qualify BEGIN .. END .. ORDER BY order LIMIT limit OFFSET offset WITH PREFERENCE
    preference WITH (allowed) EMIT ...

    source: FromItem or FromList. sets: of GROUP BY, tuples of places in group; None: one of all of it.
    windows: NamedWindows. ends: BeginEnd or None. limit, offset: int or None. operator: StreamOperatorWord or
    None. preference: PreferenceClause or None. allowed: AllowedClause or None. emit: EmitClause or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "tables": False,
        "distinct": False,
        "expressions": True,
        "source": True,
        "where": False,
        "group": False,
        "sets": False,
        "having": False,
        "windows": False,
        "qualify": False,
        "ends": False,
        "order": False,
        "limit": False,
        "offset": False,
        "ties": False,
        "operator": False,
        "preference": False,
        "allowed": False,
        "emit": False,
        "first_of": False,
    }


class SetQuery(exp.Expression):
    """``this steps``: a SelectQuery or SetQuery, then what is done with it, from left to right."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "steps": True}


class SetStep(exp.Expression):
    """``kind ALL matched BY (by) ON (on) query``: a SelectQuery or SetQuery. kind: union, intersect or
    except. all: whether rows keep their copies. matched: "by name", "corresponding" or None: columns meet by
    their places. by, on: Identifiers.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "all": True,
        "on": False,
        "matched": False,
        "by": False,
        "query": True,
    }


class InQuery(exp.Expression):
    """``this IN (query)``; ``this`` may be a RowValue."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "query": True}


class ExistsQuery(exp.Expression):
    """``EXISTS (query)``."""

    arg_types: ClassVar[dict[str, bool]] = {"query": True}


class ValueQuery(exp.Expression):
    """``(query)`` in the place of a value."""

    arg_types: ClassVar[dict[str, bool]] = {"query": True}


class AnyQuery(exp.Expression):
    """``this op ANY (query)``; op: any comparison but =, which is IN. ALL is the negation of the opposite."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "op": True, "query": True}


SUBQUERIES = (InQuery, ExistsQuery, ValueQuery, AnyQuery)
"""Where a query stands in an expression."""


class RowValue(exp.Expression):
    """``(a, b)``: what may stand left of IN (SELECT ...)."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class WindowCall(exp.Expression):
    """``TUMBLE(column, durations)`` in GROUP BY, ``TUMBLE_START(...)`` elsewhere.

    name: TUMBLE, HOP or SESSION. column: an expression or None. part: ``start``, ``end`` or None: the window.
    """

    arg_types: ClassVar[dict[str, bool]] = {"name": True, "column": False, "durations": True, "part": False}


class Call(exp.Expression):
    """A call: ``name`` upper-case, ``expressions``, ``star`` for COUNT(*), ``distinct``, ``filter`` and
    ``order`` of an aggregate.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "name": True,
        "expressions": False,
        "star": False,
        "distinct": False,
        "filter": False,
        "order": False,
    }


class WindowFunctionOver(exp.Expression):
    """``name(expressions) OVER window``: what a Call has, and a WindowSpecification; ``ignore_nulls``:
    whether it says IGNORE NULLS.
    """

    arg_types: ClassVar[dict[str, bool]] = {**Call.arg_types, "ignore_nulls": False, "window": True}


class WindowSpecification(exp.Expression):
    """``(base PARTITION BY partition ORDER BY order frame)``.

    base: Identifier of a named window or None. frame: FrameClause or None. whole: whether it is that window,
    without brackets.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "base": False,
        "partition": False,
        "order": False,
        "frame": False,
        "whole": False,
    }


class NamedWindow(exp.Expression):
    """``this AS window`` of WINDOW: Identifier, WindowSpecification."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "window": True}


class FrameClause(exp.Expression):
    """``unit BETWEEN start AND end EXCLUDE exclude``: words in lower case, FrameBounds."""

    arg_types: ClassVar[dict[str, bool]] = {"unit": True, "start": True, "end": True, "exclude": True}


class FrameBound(exp.Expression):
    """``distance side``: a Literal, a Duration or None for UNBOUNDED; PRECEDING, FOLLOWING or None: the row
    itself.
    """

    arg_types: ClassVar[dict[str, bool]] = {"side": False, "distance": False}


class IntervalLiteral(exp.Expression):
    """``INTERVAL '1 year 5 minutes'``; ``this``: milliseconds, months: None without any."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "months": False}


class NowCall(exp.Expression):
    """``NOW()`` and what means the same."""


class DistinctFrom(exp.Expression):
    """``this IS DISTINCT FROM expression``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class IsTruth(exp.Expression):
    """``this IS value``: TRUE or FALSE."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "value": True}


class TypeName(exp.Expression):
    """A type as written: ``name`` upper-case, ``numbers`` its arguments, ``types`` the types it is made of,
    with ``names`` those of the members of a STRUCT.
    """

    arg_types: ClassVar[dict[str, bool]] = {"name": True, "numbers": False, "types": False, "names": False}


class ColumnDeclaration(exp.Expression):
    """``this kind [NOT NULL] [PRIMARY KEY] [PATH 'path']``; path: a string literal."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "not_null": False,
        "key": False,
        "path": False,
    }


class OptionSetting(exp.Expression):
    """``name = value``: str, bool or int, or a Duration node."""

    arg_types: ClassVar[dict[str, bool]] = {"name": True, "value": True}


class Retroactive(exp.Expression):
    """RETROACTIVE, or NON RETROACTIVE where ``this`` is False."""


class RowCountNode(exp.Expression):
    """``n ROWS`` of a constraint."""


class ConstraintNode(exp.Expression):
    """``CONSTRAINT kind (columns) [TO target (target_columns)] [WITHIN rows | duration]``; ``kind``: its
    first word.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "columns": True,
        "target": False,
        "target_columns": False,
        "rows": False,
        "duration": False,
    }


class CreateStreamNode(exp.Expression):
    """CREATE STREAM, or CREATE TABLE where ``what`` says so; ``retain``: Duration or None.

    key: Identifiers of PRIMARY KEY (...), None without one. constraints: ConstraintNodes. retroactive:
    Retroactive or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "what": True,
        "key": False,
        "constraints": False,
        "retroactive": False,
        "columns": True,
        "options": False,
        "retain": False,
        "if_not_exists": False,
    }


class CreateFromTopicNode(exp.Expression):
    """CREATE STREAM, or CREATE TABLE where ``what`` says so, this FROM TOPIC topic WITH (options) RETAIN
    retain: an Identifier, a Literal, OptionSettings, a Duration or None.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "what": True,
        "topic": True,
        "options": False,
        "retain": False,
        "if_not_exists": False,
    }


class CreateSummaryNode(exp.Expression):
    """CREATE SUMMARY this ON stream (attribute) WITH GRANULARITY granularity AND COLLAPSE (rate, depth)
    SETTINGS (settings): Identifiers, a Duration, Literals with their sign, OptionSettings.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "stream": True,
        "attribute": True,
        "granularity": True,
        "rate": True,
        "depth": True,
        "settings": False,
        "if_not_exists": False,
    }


class AlterSummaryNode(exp.Expression):
    """ALTER SUMMARY this SET (settings)."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "settings": True}


class DropNode(exp.Expression):
    """DROP STREAM, DROP TABLE, DROP VIEW or DROP SUMMARY; ``what`` is the word."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "what": True,
        "if_exists": False,
        "cascade": False,
        "materialized": False,
    }


class CreateDerivedNode(exp.Expression):
    """CREATE VIEW this (names) AS query, or CREATE STREAM this AS query; ``what`` is the word.

    begin, end: where the query's text is.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "what": True,
        "query": True,
        "names": False,
        "begin": True,
        "end": True,
        "replace": False,
        "if_not_exists": False,
        "materialized": False,
    }
