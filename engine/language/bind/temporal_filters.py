"""Conditions on age, as ``t > NOW() - INTERVAL '10' MINUTE``: what Materialize calls temporal filters.

Such a condition changes for a row without any row that comes. Where ``t`` is what a window of time goes by,
the condition is a window, so that a row comes and goes at that very millisecond, and everybody who knows
windows knows it:

    at >= NOW() - t      [RANGE t]                    at > NOW() - t      [RANGE t less 1 ms]
    at <= NOW() - t      all up to NOW - t            at BETWEEN NOW() - s AND NOW() - t      both

``t`` is the column of event time of a stream, or ``window_end`` of a table function, whose rows have the
instant 1 ms before it. Both sides may have an INTERVAL added: what matters is their difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.language.bind.relation import BoundRelation, over
from engine.language.bind.scope import Scope
from engine.language.grammar import nodes
from engine.language.grammar.words import A_WINDOW_INSTEAD
from engine.language.places import Place
from engine.model.expressions import (
    NEGATED,
    TURNED,
    And,
    Arithmetic,
    Cast,
    Column,
    Compare,
    CompareOp,
    Expression,
    Function,
    Literal,
    Negate,
    Not,
    children,
)
from engine.model.types import BOOLEAN, TIMESTAMP, TIMESTAMP_MS_MIN, Kind
from engine.windows.clauses import NOW, Instant, TimeWindow
from tureen.errors import NotSupported, QueryError

NOW_CALL = Function("NOW", (), TIMESTAMP)
"""What NOW() is bound to while its condition is looked at; no query has it."""
WITH_NOW = "a comparison with NOW()"
"""The clause in which NOW() may stand, while its condition is bound."""
_BEGINNING = Instant(relative=False, ms=TIMESTAMP_MS_MIN)
_FORM = "write a comparison joined by AND: WHERE at > NOW() - INTERVAL '10' MINUTE"


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """``column >= NOW + begin_ms`` and ``column <= NOW + end_ms``, of which one may be None."""

    column: Column
    begin_ms: int | None
    end_ms: int | None
    place: Place

    @property
    def is_never(self) -> bool:
        """Whether no row can be so: none is later than NOW."""
        begin_ms = self.begin_ms
        return begin_ms is not None and (begin_ms > 0 or (self.end_ms is not None and self.end_ms < begin_ms))


def bind_now(node: exp.Expr, scope: Scope) -> Expression:
    """NOW() in a condition that becomes a window. Raises NotSupported where it may not stand."""
    if scope.clause != WITH_NOW:
        raise refused(scope.place(node))
    return NOW_CALL


def names_now(node: exp.Expr) -> bool:
    """Whether a condition names NOW(), itself or in a subquery."""
    return next(node.find_all(nodes.NowCall), None) is not None


def temporal_filters(
    condition: Expression, node: exp.Expr, scope: Scope
) -> list[Expression | TemporalFilter]:
    """The parts of a condition, those with NOW() as filters. Raises NotSupported where one is no such filter,
    LimitExceeded where it looks back too far.
    """
    place = scope.place(node)
    return [_filter(part, place, scope) if _has_now(part) else part for part in _conjuncts(condition)]


def refused(
    place: Place, what: str = "NOW() is allowed in WHERE and ON, in a comparison with a time"
) -> QueryError:
    """The refusal of NOW() in any other place."""
    return place.refuse(NotSupported, f"{what}: elsewhere it would change an answer without rows", hint=_FORM)


def _conjuncts(condition: Expression) -> Iterable[Expression]:
    match condition:
        case And(operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case Not(Compare(op, left, right)):
            yield Compare(NEGATED[op], left, right)
        case Not(Not(operand)):
            yield from _conjuncts(operand)
        case _:
            yield condition


def _has_now(expression: Expression) -> bool:
    return expression == NOW_CALL or any(map(_has_now, children(expression)))


@dataclass(frozen=True, slots=True)
class _Sum:
    """``now`` times NOW, and ``sign`` times a column, and so many milliseconds."""

    now: int = 0
    sign: int = 0
    column: Column | None = None
    ms: int = 0

    def plus(self, other: _Sum, sign: int) -> _Sum | None:
        """The sum of both, or their difference; None where both have a column."""
        if self.column is not None and other.column is not None:
            return None
        column = self.column or other.column
        signs = self.sign + sign * other.sign
        return _Sum(self.now + sign * other.now, signs, column, self.ms + sign * other.ms)


def _sum(expression: Expression) -> _Sum | None:
    """An instant, or a difference of instants; None where it is another function of NOW and a column."""
    if expression == NOW_CALL:
        return _Sum(now=1)
    match expression:
        case Column(type=type_) if type_ == TIMESTAMP:
            return _Sum(sign=1, column=expression)
        case Literal(type=type_) if type_.is_integer or type_ == TIMESTAMP:
            return _Sum(ms=expression.value) if isinstance(expression.value, int) else None
        case Function("TO_TIMESTAMP" | "EPOCH_MS", (operand,)):
            return _sum(operand)
        case Cast(operand, type_) if type_.kind is Kind.BIGINT:
            return _sum(operand)
        case Negate(operand):
            found = _sum(operand)
            return None if found is None else _Sum().plus(found, -1)
        case Arithmetic("+" | "-" as op, left, right):
            one, other = _sum(left), _sum(right)
            return None if one is None or other is None else one.plus(other, 1 if op == "+" else -1)
    return None


def _filter(condition: Expression, place: Place, scope: Scope) -> TemporalFilter:
    if not isinstance(condition, Compare) or condition.op == "<>":
        raise refused(place, "NOW() is allowed in a comparison with a time that AND joins with others")
    left, right = _sum(condition.left), _sum(condition.right)
    both = None if left is None or right is None else left.plus(right, -1)
    if both is None or both.column is None or (both.sign, both.now) not in ((1, -1), (-1, 1)):
        raise place.refuse(
            NotSupported,
            "NOW() is compared with the time column of a stream alone, with or without a fixed INTERVAL",
            hint=f"{_FORM}; months have no fixed length, write 30 DAYS",
        )
    op: CompareOp = condition.op if both.sign == 1 else TURNED[condition.op]
    ms = -both.ms * both.sign
    most_ms = scope.binding.limits.window_ms_max
    if -ms > most_ms:
        raise place.exceeded("window_ms_max", most_ms, -ms, hint="compare with a TIMESTAMP, or leave it out")
    begin_ms = {">": ms + 1, ">=": ms, "=": ms}.get(op)
    end_ms = {"<": ms - 1, "<=": ms, "=": ms}.get(op)
    return TemporalFilter(both.column, begin_ms, end_ms, place)


# --- to windows


def filtered(relation: BoundRelation, filters: Iterable[TemporalFilter]) -> BoundRelation:
    """The relation with filters of its WHERE as windows. Raises NotSupported."""
    for each in filters:
        relation = _of_relation(relation, each, len(relation.joins))
    return relation


def asked_of_partners(relation: BoundRelation, filters: Iterable[TemporalFilter]) -> BoundRelation:
    """The relation with filters of the ON of its last join as windows. Raises NotSupported."""
    for each in filters:
        *before, last = relation.joins
        if each.column.index < last.offset:
            if last.kind not in ("inner", "semi"):
                raise _beside_a_join(each)
            relation = _of_relation(relation, each, len(before))
            continue
        if last.kind not in ("inner", "left", "semi", "anti") or last.latest is not None:
            raise _beside_a_join(each)
        inner = _windowed(last.inner, each, each.column.index - last.offset, is_flat=last.is_flat)
        relation = replace(relation, joins=(*before, replace(last, inner=inner)))
    return relation


def _of_relation(relation: BoundRelation, wanted: TemporalFilter, level: int) -> BoundRelation:
    """With a filter on what the first ``level`` joins give."""
    joins = list(relation.joins)
    needed = 0
    for number, join in enumerate(joins[:level]):
        if join.gives and wanted.column.index >= join.offset:
            needed = number + 1
    if any(join.kind in ("right", "full") for join in joins[needed:]):
        raise _beside_a_join(wanted)
    if not needed and relation.below is not None and wanted.column.index < relation.below.width:
        below = relation.below
        return over(relation, _of_relation(below, wanted, len(below.joins)))
    if not needed:
        below = _windowed(replace(relation, joins=()), wanted, wanted.column.index, is_flat=True)
        return replace(below, joins=relation.joins)
    join = joins[needed - 1]
    if join.kind not in ("inner", "right") or join.latest is not None:
        raise _beside_a_join(wanted)
    inner = _windowed(join.inner, wanted, wanted.column.index - join.offset, is_flat=join.is_flat)
    joins[needed - 1] = replace(join, inner=inner)
    return replace(relation, joins=tuple(joins))


def _beside_a_join(wanted: TemporalFilter) -> QueryError:
    return wanted.place.refuse(
        NotSupported,
        "NOW() is not compared with the time of the side that this join fills with NULLs or chooses from",
        hint="ask it in ON, or write the window behind that stream: b [RANGE 10 MINUTES]",
    )


def _windowed(relation: BoundRelation, wanted: TemporalFilter, at: int, *, is_flat: bool) -> BoundRelation:
    """A scan with the filter in its window. at: the column's place in what the scan gives."""
    stream, window = relation.stream, relation.scan.window
    given = relation.given()
    if relation.stages or relation.joins or relation.scan.history or stream.is_table or not is_flat:
        raise _no_time(wanted)
    shift_ms = 0
    if relation.scan.assignment is None:
        is_time = given[at].name == stream.timestamp_column and at < len(stream.schema)
    else:
        is_time, shift_ms = at == len(given) - 1, -1  # window_end
    if not is_time:
        raise _no_time(wanted)
    begin_ms = None if wanted.begin_ms is None else wanted.begin_ms + shift_ms
    end_ms = None if wanted.end_ms is None else wanted.end_ms + shift_ms
    wanted = replace(wanted, begin_ms=begin_ms, end_ms=end_ms)
    if not isinstance(window, TimeWindow) or window.slide_ms is not None or not window.end.relative:
        raise _two_windows(wanted)
    begin, end = window.begin, window.end
    if end_ms is not None and end_ms < end.ms:
        end = Instant(relative=True, ms=end_ms)
    if begin_ms is not None:
        if begin is not None and not begin.relative and begin != _BEGINNING:
            raise _two_windows(wanted)
        if begin is None or not begin.relative or begin.ms < begin_ms:
            begin = Instant(relative=True, ms=begin_ms)
    if wanted.is_never or (begin is not None and begin.relative and begin.ms > end.ms):
        return relation.narrowed([Literal(False, BOOLEAN)])
    if begin is None and end != NOW:
        begin = _BEGINNING
    return replace(relation, scan=replace(relation.scan, window=TimeWindow(begin, end)))


def _two_windows(wanted: TemporalFilter) -> QueryError:
    return wanted.place.refuse(
        NotSupported,
        "NOW() is compared with the time of a stream whose window counts rows, moves in steps "
        "or has a fixed end",
        hint="leave the window out, or write it in a subquery: FROM (SELECT ...) [RANGE 10 MINUTES]",
    )


def _no_time(wanted: TemporalFilter) -> QueryError:
    name = wanted.column.name
    return wanted.place.refuse(
        NotSupported,
        f"NOW() is compared with the time column of a stream, or window_end, in the query that reads it; "
        f"{name!r} is none",
        hint=A_WINDOW_INSTEAD,
    )
