"""f(...) OVER (...) in one SELECT: each different one becomes a column.

Calls over one window, the same keys and order, are one stage. ROW_NUMBER() is a stage of its own, behind the
others, so that a condition on the number that comes last may keep the first rows alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NoReturn

from sqlglot import exp

from engine.algebra.row_number.stage import RowNumber
from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import (
    DEFAULT_FRAME,
    Distance,
    Frame,
    WindowFunctionCall,
    WindowFunctions,
)
from engine.language.aggregates import AGGREGATES, aggregate_named
from engine.language.bind.calls import bind_arguments
from engine.language.bind.group_windows import expanded
from engine.language.bind.grouping import as_interval, bind_aggregate
from engine.language.bind.ordering import require_few, sort_key
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.language.grammar import nodes
from engine.language.literals import number_literal
from engine.language.places import shown
from engine.language.window_functions import COUNT_MAX, WINDOW_FUNCTIONS, WindowFunction
from engine.model.expressions import Column, Expression
from engine.model.types import BIGINT, Kind, Type
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

FIRST = -1_000_000
"""Columns of window functions count down from here until it is settled where they stand."""
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class _Window:
    """PARTITION BY and ORDER BY as bound."""

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]


class OverColumns:
    """The columns of a SELECT's window functions, in the order in which they were met.

    named: the windows of WINDOW.
    """

    def __init__(self, named: Sequence[exp.Expr]) -> None:
        self._named: Mapping[str, exp.Expr] = {str(one.this.this): one.args["window"] for one in named}
        self._places: dict[tuple[_Window, WindowFunctionCall | None], int] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def column(self, node: exp.Expr, scope: Scope) -> Expression:
        """The column of one call."""
        inside = replace(scope, over=None, clause="OVER")
        if node.args.get("order"):
            _refuse_order(node, inside)
        specification = _Specification(self._named, node.args["window"], inside)
        window = specification.window()
        call: WindowFunctionCall | None = None
        if node.args["name"] == "ROW_NUMBER":
            _check_row_number(node, specification, inside)
        else:
            call = _call(node, specification.frame(window.order), inside)
        place = self._places.setdefault((window, call), len(self._places))
        found = Column(FIRST - place, _name(call), BIGINT if call is None else call.type)
        aggregate = None if node.args["name"] in WINDOW_FUNCTIONS else aggregate_named(node.args["name"])
        return found if aggregate is None else as_interval(found, node, aggregate, inside)

    def _in_order(self) -> list[tuple[_Window, WindowFunctionCall | None]]:
        """The columns as they stand: window by window, behind all others those of ROW_NUMBER()."""
        windows = {window: place for place, (window, _) in reversed([*enumerate(self._places)])}
        return sorted(self._places, key=lambda each: (each[1] is None, windows[each[0]]))

    def stages(self) -> list[WindowFunctions | RowNumber]:
        """One for each window with calls, then one for each ROW_NUMBER(); all as they were bound."""
        calls: dict[_Window, list[WindowFunctionCall]] = {}
        numbered: list[WindowFunctions | RowNumber] = []
        for window, call in self._in_order():
            if call is None:
                numbered.append(RowNumber(window.keys, window.order))
            else:
                calls.setdefault(window, []).append(call)
        found = (WindowFunctions(each.keys, each.order, tuple(calls[each])) for each in calls)
        return [*found, *numbered]

    def settle(self, width: int) -> Callable[[Expression], Expression]:
        """What puts the columns that the stages give into expressions. width: of what they are over."""
        stand = {each: width + place for place, each in enumerate(self._in_order())}
        settled = [stand[each] for each in self._places]

        def column(node: Expression) -> Expression:
            if isinstance(node, Column) and FIRST - len(settled) < node.index <= FIRST:
                return Column(settled[FIRST - node.index], node.name, node.type)
            return node

        return column


def _name(call: WindowFunctionCall | None) -> str:
    return "row_number" if call is None else call.name


def _check_row_number(call: exp.Expr, specification: _Specification, scope: Scope) -> None:
    """Raise for what belongs to other functions."""
    place = scope.place(call)
    if call.args.get("expressions") or call.args.get("star"):
        raise place.refuse(
            TypeMismatch, "ROW_NUMBER takes no arguments", hint="write ROW_NUMBER() OVER (ORDER BY x)"
        )
    _check_words(call, "ROW_NUMBER", scope, nulls=False)
    if specification.frame_node is not None:
        raise scope.place(specification.frame_node).refuse(
            NotSupported, "ROW_NUMBER has no frame", hint="leave it out: it goes by the partition"
        )


def _check_words(call: exp.Expr, name: str, scope: Scope, *, nulls: bool) -> None:
    """Raise for words that only aggregates take, or functions that look at NULLs."""
    for word, written in (("distinct", "DISTINCT"), ("filter", "FILTER")):
        if call.args.get(word):
            raise scope.place(call).refuse(
                TypeMismatch,
                f"{written} belongs to an aggregate, {name} is none",
                hint="write CASE WHEN ... THEN x END, or select in a subquery",
            )
    if call.args.get("ignore_nulls") and not nulls:
        _refuse_nulls(call, name, scope)


def _refuse_order(call: exp.Expr, scope: Scope) -> NoReturn:
    raise scope.place(call.args["order"][0]).refuse(
        NotSupported,
        f"{call.args['name']} with an ORDER BY of its own is not supported before OVER",
        hint="the rows of a frame come in the order of OVER: write OVER (ORDER BY x ROWS ...)",
    )


def _refuse_nulls(call: exp.Expr, name: str, scope: Scope) -> NoReturn:
    raise scope.place(call).refuse(
        TypeMismatch,
        f"{name} does not take IGNORE NULLS",
        hint="LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE do; aggregates pass NULLs over",
    )


# --- calls --------------------------------------------------------------------------------------------


def _call(node: exp.Expr, frame: Frame, scope: Scope) -> WindowFunctionCall:
    name = str(node.args["name"])
    function = WINDOW_FUNCTIONS.get(name)
    if function is not None:
        return _of_window(node, function, frame, scope)
    aggregate = aggregate_named(name)
    if aggregate is None:
        near = difflib.get_close_matches(name, [*WINDOW_FUNCTIONS, *AGGREGATES, "ROW_NUMBER"], n=2)
        raise scope.place(node).refuse(
            NotSupported,
            f"{shown(name)} is neither a window function nor an aggregate",
            hint=f"did you mean {' or '.join(near)}?" if near else "leave OVER out for a function of one row",
        )
    if node.args.get("ignore_nulls"):
        _refuse_nulls(node, name, scope)
    bound = bind_aggregate(node, aggregate, scope)
    return WindowFunctionCall(
        bound.name,
        bound.function,
        bound.arguments,
        bound.type,
        frame,
        distinct=bound.distinct,
        filter=bound.filter,
    )


def _of_window(node: exp.Expr, function: WindowFunction, frame: Frame, scope: Scope) -> WindowFunctionCall:
    name, place = function.name, scope.place(node)
    _check_words(node, name, scope, nulls=function.takes_nulls)
    count = len(node.args.get("expressions") or ())
    if node.args.get("star") or not function.arity_min <= count <= function.arity_max:
        written = "*" if node.args.get("star") else f"{count} argument{'' if count == 1 else 's'}"
        raise place.refuse(
            TypeMismatch, f"{name} does not take {written}", hint=f"write {function.usage} OVER (...)"
        )
    arguments, type_ = bind_arguments(function, node, scope, bind_scalar)
    used = frame if function.framed else DEFAULT_FRAME
    return WindowFunctionCall(name.lower(), name, arguments, type_, used, bool(node.args.get("ignore_nulls")))


# --- windows ------------------------------------------------------------------------------------------


class _Specification:
    """What stands behind OVER, with the window that it names in it.

    frame_node: the frame as written, None: there is none.
    """

    def __init__(self, named: Mapping[str, exp.Expr], node: exp.Expr, scope: Scope) -> None:
        self._scope = scope
        self._partition: list[exp.Expr] = []
        self._order: list[exp.Expr] = []
        self.frame_node: exp.Expr | None = None
        self._take(named, node, frozenset())

    def _take(self, named: Mapping[str, exp.Expr], node: exp.Expr, met: frozenset[str]) -> None:
        base = node.args.get("base")
        if base is not None:
            self._take_named(named, node, base, met)
        for part, have, what in (
            (node.args["partition"], self._partition, "PARTITION BY"),
            (node.args["order"], self._order, "ORDER BY"),
        ):
            if part and have:
                raise self._scope.place(part[0]).refuse(
                    SyntaxRefused, f"the named window has {what} already", hint="leave one of them out"
                )
            have.extend(part)
        self.frame_node = node.args.get("frame") or self.frame_node

    def _take_named(
        self, named: Mapping[str, exp.Expr], node: exp.Expr, base: exp.Expr, met: frozenset[str]
    ) -> None:
        name, place = str(base.this), self._scope.place(base)
        if name not in named or name in met:
            near = difflib.get_close_matches(name, named, n=1)
            hint = (
                f"did you mean {shown(near[0])}?" if near else "write WINDOW w AS (PARTITION BY x ORDER BY y)"
            )
            raise place.refuse(SyntaxRefused, f"no window is called {shown(name)!r}", hint=hint)
        self._take(named, named[name], met | {name})
        if self.frame_node is not None and not node.args.get("whole"):
            raise place.refuse(
                SyntaxRefused,
                f"the window {shown(name)!r} has a frame, so nothing may be added to it",
                hint=f"write OVER {shown(name)}, or a window without a frame",
            )
        if node.args["partition"]:
            raise self._scope.place(node.args["partition"][0]).refuse(
                SyntaxRefused,
                f"PARTITION BY may not be added to the window {shown(name)!r}",
                hint="write a window of its own",
            )

    def window(self) -> _Window:
        """PARTITION BY and ORDER BY."""
        scope = self._scope
        keys = dict.fromkeys(bind_scalar(key, scope) for key in expanded(self._partition, scope))
        require_few(self._order, scope)
        order = tuple(sort_key(bind_scalar(item.this, scope), item, scope) for item in self._order)
        return _Window(tuple(keys), order)

    def frame(self, order: Sequence[SortKey]) -> Frame:
        """The frame; the default where none is written."""
        node = self.frame_node
        if node is None:
            return DEFAULT_FRAME
        unit, scope = node.args["unit"], self._scope
        if unit == "groups" and not order:
            raise scope.place(node).refuse(
                SyntaxRefused, "GROUPS needs an ORDER BY", hint="write OVER (ORDER BY x GROUPS ...), or ROWS"
            )
        start, end = node.args["start"], node.args["end"]
        if _side(start) > _side(end) or _is_unbounded(start, "FOLLOWING") or _is_unbounded(end, "PRECEDING"):
            raise scope.place(start).refuse(
                SyntaxRefused,
                "the frame ends before it begins",
                hint="write ROWS BETWEEN 10 PRECEDING AND CURRENT ROW",
            )
        bounds = [self._distance(bound, unit, order) for bound in (start, end)]
        return Frame(unit, bounds[0], bounds[1], node.args["exclude"])

    def _distance(self, bound: exp.Expr, unit: str, order: Sequence[SortKey]) -> Distance | None:
        side, written = bound.args.get("side"), bound.args.get("distance")
        if side is None:
            return 0
        if written is None:
            return None
        size: Distance
        if unit == "range":
            size = self._of_key(written, order)
        else:
            size = self._count(written, unit)
        return -size if side == "PRECEDING" and size else size

    def _count(self, node: exp.Expr, unit: str) -> int:
        text = "" if isinstance(node, nodes.Duration) else str(node.this)
        if not text.isdecimal() or int(text[:20]) > COUNT_MAX:
            raise self._scope.place(node).refuse(
                SyntaxRefused,
                f"{unit.upper()} counts: this is no number of {unit} up to {COUNT_MAX}",
                hint="write a whole number, or RANGE with a distance of the ORDER BY",
            )
        return int(text)

    def _of_key(self, node: exp.Expr, order: Sequence[SortKey]) -> Distance:
        """A distance of the one key of ORDER BY."""
        place = self._scope.place(node)
        if len(order) != 1:
            raise place.refuse(
                SyntaxRefused,
                f"RANGE with a distance needs one key of ORDER BY, there are {len(order)}",
                hint="order by one number or time, or write ROWS or GROUPS",
            )
        type_ = order[0].expression.type
        if type_.kind in (Kind.TIMESTAMP, Kind.DATE):
            return self._of_time(node, type_)
        if not type_.is_numeric:
            raise place.refuse(
                TypeMismatch,
                f"RANGE with a distance needs a number or a time to order by, this is {type_}",
                hint="write ROWS or GROUPS",
            )
        if isinstance(node, nodes.Duration):
            raise place.refuse(
                TypeMismatch,
                f"an INTERVAL is no distance of the key of ORDER BY, which is {type_}",
                hint="write a number",
            )
        value = number_literal(str(node.this), False, place).value
        assert isinstance(value, int | float | Decimal)
        if type_.kind is Kind.DOUBLE:
            return float(value) or 0
        exact = Decimal(value).scaleb(type_.scale)
        if isinstance(value, float) or exact != int(exact) or abs(exact) >= 2**63:
            raise place.refuse(
                TypeMismatch,
                f"this is no distance of the key of ORDER BY, which is {type_}",
                hint="write a number of its type, or cast the key to DOUBLE",
            )
        return 0 if not value else int(value) if type_.is_integer else Decimal(value)

    def _of_time(self, node: exp.Expr, type_: Type) -> int:
        place = self._scope.place(node)
        if not isinstance(node, nodes.Duration):
            raise place.refuse(
                TypeMismatch,
                f"the key of ORDER BY is a {type_}, so the distance is an INTERVAL",
                hint="write RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND CURRENT ROW",
            )
        ms = int(node.this)
        if type_.kind is Kind.TIMESTAMP:
            return ms
        if ms % _DAY_MS:
            raise place.refuse(
                TypeMismatch,
                "the key of ORDER BY is a DATE, so the distance is in whole days",
                hint="write DAYS",
            )
        return ms // _DAY_MS


def _side(bound: exp.Expr) -> int:
    """-1 before the row, 1 behind it, 0 the row itself."""
    return {"PRECEDING": -1, "FOLLOWING": 1, None: 0}[bound.args.get("side")]


def _is_unbounded(bound: exp.Expr, side: str) -> bool:
    return bound.args.get("side") == side and bound.args.get("distance") is None
