"""GROUP BY and aggregates in one SELECT: the keys, the calls, and which expressions over groups mean them.

An expression over groups is bound like any other, with two differences: a part of it that is a key of the
grouping is that key's column, whatever it is made of, and an aggregate is the column of its call. A column
of the rows that is left is refused. Cost: each node is bound at most twice, since what nodes of the rows are
bound to is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from sqlglot import exp

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.project.stage import Output
from engine.algebra.sort.stage import SortKey
from engine.language.aggregates import AggregateFunction, DistinctUse, aggregate_named
from engine.language.bind.calls import bind_arguments
from engine.language.bind.members import member_of_column
from engine.language.bind.ordering import sort_key
from engine.language.bind.scalar import bind_condition, bind_scalar
from engine.language.bind.scope import Scope
from engine.language.grammar import nodes
from engine.language.lengths import in_ms, of_ms
from engine.language.places import shown
from engine.language.rules import rewrite
from engine.model.expressions import Cast, Column, Expression, Literal
from engine.model.types import INTEGER, INTERVAL, TIME, Type
from tureen.errors import NotSupported, QueryError, TypeMismatch

KEYS_MAX = 100
MARKED_MAX = 31

KeySet = tuple[int, ...]
"""Places of keys: of one grouping set."""


@dataclass(frozen=True, slots=True)
class GroupingMark:
    """``GROUPING(keys)``: a bit for each of these places, 1 where the row's grouping set is without it, the
    last key's the lowest.
    """

    keys: KeySet
    name: ClassVar[str] = "grouping"
    type: ClassVar[Type] = INTEGER

    def of(self, present: KeySet) -> Literal:
        """Its value for a grouping set."""
        bits = "".join("01"[key not in present] for key in self.keys)
        return Literal(int(bits, 2), INTEGER)


class Grouping:
    """``rows``: the scope of what is grouped. Keys are given when all are known: :meth:`group_by`.

    sets: the grouping sets, where there are several; then a key is NULL in the groups of a set without it.
    """

    def __init__(self, rows: Scope) -> None:
        self._rows = replace(rows, clause="an aggregate", memo={})
        self._keys: dict[Expression, int] = {}
        self._sizes: set[int] = set()
        self._kinds: set[type] = set()
        self._calls: dict[AggregateCall | GroupingMark, int] = {}
        self.sets: tuple[KeySet, ...] | None = None

    def group_by(
        self,
        expressions: Sequence[Expression],
        written: Sequence[exp.Expr],
        sets: Sequence[KeySet] | None = None,
    ) -> None:
        """The keys: as bound over the rows, and as they stand in the text. sets: places among expressions;
        what they leave out is in each.
        """
        places = []
        for expression in expressions:
            places.append(self._keys.setdefault(expression, len(self._keys)))
            self._sizes.add(self._rows.binding.sizes.of(expression)[0])
        self._kinds = {type(node.unnest()) for node in written}
        if exp.Column in self._kinds and not all(isinstance(key, Column) for key in self._keys):
            self._kinds.add(nodes.Call)  # s.name may be written (s).name
        if sets is not None and len(sets) > 1:
            always = set(range(len(places))).difference(*sets)
            self.sets = tuple(
                tuple(dict.fromkeys(places[place] for place in (*one, *sorted(always)))) for one in sets
            )

    # --- what stands for what

    def key(self, node: exp.Expr) -> Expression | None:
        """The key's column that a node means, None if it is none."""
        if isinstance(node, exp.Column):
            found = self._found(node)
            return None if found is None else self._column(found)
        if type(node) not in self._kinds or self._holds_other_values(node):
            return None
        try:
            return self._column(bind_scalar(node, self._rows))
        except QueryError:
            return None  # it holds an aggregate, or is wrong: then its parts tell

    def _found(self, node: exp.Column) -> Expression | None:
        """The column of the rows, or the member of one, that a name is; None: it is neither."""
        found = self._rows.find(node)
        if found is None and member_of_column(node, self._rows) is not None:
            return bind_scalar(node, self._rows)
        return found

    def _holds_other_values(self, node: exp.Expr) -> bool:
        """Whether a subquery stands in it in the place of a value that is not one of a key."""
        values = self._rows.values
        return any(values is None or not values.knows(each) for each in node.find_all(*nodes.SUBQUERIES))

    def column(self, expression: Expression) -> Expression:
        """The column of a key that is as bound over the rows."""
        place = self._keys[expression]
        return Column(place, self._key_name(expression, place), expression.type)

    def _column(self, expression: Expression) -> Expression | None:
        if self._rows.binding.sizes.of(expression)[0] not in self._sizes:
            return None
        place = self._keys.get(expression)
        return None if place is None else Column(place, self._key_name(expression, place), expression.type)

    @staticmethod
    def _key_name(expression: Expression, place: int) -> str:
        return expression.name if isinstance(expression, Column) else f"key_{place + 1}"

    def refuse_ungrouped(self, node: exp.Column) -> None:
        """Raise for a column of the rows, or a member of one, that is no key."""
        found = self._found(node)
        if found is None:
            return
        name = shown(str(node.this.this))
        if self._rows.find(node) is None:
            name = f"{shown(str(node.args['table'].this))}.{name}"
        value = f"LAST({name})" if found.type.is_nested else f"MAX({name})"
        hint = f"group by it, or aggregate it: GROUP BY {name}, or {value}"
        if not self._keys:
            hint = f"aggregate it too, as {value}, or add GROUP BY {name}"
        raise self._rows.place(node).refuse(
            TypeMismatch, f"the column {name!r} is neither grouped nor aggregated", hint=hint
        )

    def call(self, node: exp.Expr, function: AggregateFunction) -> Expression:
        """The column of an aggregate's call; equal calls share one."""
        bound = bind_aggregate(node, function, self._rows)
        at = self._calls.setdefault(bound, len(self._calls))
        return as_interval(Column(len(self._keys) + at, bound.name, bound.type), node, function, self._rows)

    @property
    def keys(self) -> list[Expression]:
        """What is grouped by, over the rows."""
        return list(self._keys)

    def extreme(self, column: Column) -> tuple[str, Column] | None:
        """MIN or MAX, and the column of the rows that it is of, which a column of the groups is; None: it is
        something else.
        """
        for call, at in self._calls.items():
            if at == column.index - len(self._keys) and isinstance(call, AggregateCall):
                of = call.arguments[0] if call.arguments else None
                if call.function in ("MIN", "MAX") and call.filter is None and isinstance(of, Column):
                    return call.function, of
        return None

    def mark(self, node: exp.Expr) -> Expression:
        """The column of a GROUPING(...). Raises TypeMismatch for what is no key, LimitExceeded."""
        name, written = str(node.args["name"]), node.args.get("expressions") or []
        columns = [self.key(argument) for argument in written]
        for argument, column in zip(written, columns, strict=True):
            if column is None:
                raise self._rows.place(argument).refuse(
                    TypeMismatch, f"{name} takes what GROUP BY groups by", hint="write GROUP BY ROLLUP (a, b)"
                )
        keys = [column.index for column in columns if isinstance(column, Column)]
        if not keys:
            keys = [*range(len(self._keys))]
        if len(keys) > MARKED_MAX:
            raise self._rows.place(node).exceeded("grouping_columns_max", MARKED_MAX, len(keys))
        mark = GroupingMark(tuple(keys))
        if self.sets is None:
            return mark.of(mark.keys)
        at = self._calls.setdefault(mark, len(self._calls))
        return Column(len(self._keys) + at, mark.name, mark.type)

    # --- the outcome

    @property
    def width(self) -> int:
        return len(self._keys) + len(self._calls)

    def stage(self, names: Sequence[str]) -> Aggregate:
        """The stage, its columns named in order."""
        return self.stage_of(names, range(len(self._keys)))

    def stage_of(self, names: Sequence[str], present: Sequence[int]) -> Aggregate:
        """The stage of one grouping set; it has no GROUPING(...)."""
        written = [*self._keys]
        keys = tuple(Output(names[place], rewrite(written[place])) for place in present)
        calls = tuple(
            replace(call.with_expressions(rewrite), name=name)
            for name, call in zip(names[len(written) :], self._calls, strict=True)
            if isinstance(call, AggregateCall)
        )
        return Aggregate(keys, calls)

    def columns_of(self, names: Sequence[str], present: KeySet) -> tuple[Output, ...]:
        """What stands for all columns of the grouping over the stage of one set."""
        at, columns = iter(range(len(present), self.width)), list[Output]()
        for place, (name, key) in enumerate(zip(names, self._keys, strict=False)):
            found = Column(present.index(place), name, key.type) if place in present else None
            columns.append(Output(name, Literal(None, key.type) if found is None else found))
        for name, call in zip(names[len(self._keys) :], self._calls, strict=True):
            if isinstance(call, GroupingMark):
                columns.append(Output(name, call.of(present)))
            else:
                columns.append(Output(name, Column(next(at), name, call.type)))
        return tuple(columns)

    def plain_names(self) -> list[str]:
        """What the columns are called where no output names them."""
        keys = [self._key_name(key, place) for place, key in enumerate(self._keys)]
        return [*keys, *(call.name for call in self._calls)]

    def expressions(self) -> list[Expression]:
        """All that is computed for the rows."""
        found = list(self._keys)
        for call in self._calls:
            found += call.expressions() if isinstance(call, AggregateCall) else ()
        return found


def bind_aggregate(node: exp.Expr, function: AggregateFunction, scope: Scope) -> AggregateCall:
    """A call of an aggregate, over the rows of a scope, named after it. Raises TypeMismatch, NotSupported."""
    name = str(node.args["name"])
    place = scope.place(node)
    written: list[exp.Expr] = node.args.get("expressions") or []
    distinct = bool(node.args.get("distinct"))
    arguments: tuple[Expression, ...] = ()
    if node.args.get("star"):
        if not function.takes_rows:
            raise place.refuse(
                TypeMismatch,
                f"{name}(*) is not supported: only COUNT takes *",
                hint=f"write {function.usage}",
            )
        _, type_ = function.types(())
    else:
        undistinct = len(written) > 1 and function.takes_rows and not distinct
        if undistinct or not function.arguments.least <= len(written) <= function.arguments.most:
            raise place.refuse(
                TypeMismatch,
                f"{name} does not take {len(written)} argument{'' if len(written) == 1 else 's'}",
                hint="write COUNT(DISTINCT a, b)" if undistinct else f"write {function.usage}",
            )
        arguments, type_ = bind_arguments(
            function, node, scope, lambda part, at: _argument(part, function, at)
        )
    if distinct and function.distinct is DistinctUse.REFUSED:
        raise place.refuse(
            NotSupported,
            f"{name}(DISTINCT ...) is not supported",
            hint="select DISTINCT in a subquery: FROM (SELECT DISTINCT ...)",
        )
    condition = node.args.get("filter")
    keep = None if condition is None else bind_condition(condition, replace(scope, clause="FILTER"))
    distinct = distinct and function.distinct is DistinctUse.SERVED
    order = _order(node, function, scope)
    return AggregateCall(function.name.lower(), function.name, arguments, type_, distinct, keep, order)


_LENGTHS = frozenset(
    [
        *("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "MODE", "MEDIAN", "ARG_MIN", "ARG_MAX"),
        *("PERCENTILE_CONT", "PERCENTILE_DISC"),
    ]
)
"""Aggregates that give an INTERVAL of one; others take its milliseconds for a number."""


_OF_TOTALS = frozenset(["SUM", "AVG", "MEDIAN", "PERCENTILE_CONT"])
"""Those of them that make other values, which a TIME has none of."""


def _argument(node: exp.Expr, function: AggregateFunction, scope: Scope) -> Expression:
    """An argument, an INTERVAL or a TIME as a number."""
    found = bind_scalar(node, scope)
    if found.type == TIME and (function.name in _OF_TOTALS or function.name not in (*_LENGTHS, "COUNT")):
        return found  # which no such aggregate takes
    return in_ms(found)


def as_interval(found: Expression, node: exp.Expr, function: AggregateFunction, scope: Scope) -> Expression:
    """What an aggregate gives, as an INTERVAL or a TIME where it is one of these."""
    written = node.args.get("expressions") or []
    if not written or function.name not in _LENGTHS:
        return found
    type_ = bind_scalar(written[0], scope).type
    return of_ms(found) if type_ == INTERVAL else Cast(found, TIME) if type_ == TIME else found


def _order(node: exp.Expr, function: AggregateFunction, scope: Scope) -> tuple[SortKey, ...]:
    """ORDER BY inside the brackets, of a function that depends on the order of rows."""
    scope = replace(scope, clause="ORDER BY inside an aggregate")
    items: list[exp.Expr] = node.args.get("order") or []
    keys = [sort_key(bind_scalar(item.this, scope), item, scope) for item in items]
    return tuple(keys) if function.order_dependent else ()


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate stands in an expression, outside of subqueries."""
    for part in node.walk(prune=lambda found: isinstance(found, nodes.SelectQuery)):
        if isinstance(part, nodes.Call) and aggregate_named(str(part.args["name"])) is not None:
            return True
    return False
