"""The key of a result: columns of an answer that tell its rows apart, at every instant.

    SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol        symbol
    SELECT id, name FROM users                                      id, the key of the table
    SELECT name FROM users WHERE id = 7                             none is needed: there is one row at most
    SELECT symbol, price FROM trades [PARTITION BY symbol ROWS 1]   symbol
    SELECT symbol, price FROM trades                                nothing but the values tells rows apart

Found on the way from the scan up: of the columns that a stage gives, which sets of them no two rows agree in
(as groups do: NULL equals NULL, NaN equals NaN). Columns that are equal in all rows tell nothing and are left
out. What the rules below do not see is not taken to be a key, so that a key that is found is one. Records of
result topics are keyed by it: a rule that finds another key for an old text changes what is written there.

Cost: O(stages * columns), nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.language.query import Query, Scan
from engine.model.expressions import And, Cast, Column, Compare, Expression, Literal
from engine.model.source import SourceName, Stream
from engine.model.types import BIGINT, DOUBLE, INTEGER
from engine.windows.assignment import WINDOW_COLUMNS
from engine.windows.clauses import RowWindow

KEYS_MAX = 8
"""So many keys of a relation are followed up, those of the fewest columns."""

Places = frozenset[int]


def result_key(query: Query, sources: Mapping[SourceName, Stream]) -> tuple[int, ...] | None:
    """Places among ``query.columns`` that no two rows of an answer agree in, ascending.

    sources: all streams and tables that the query reads. (): there is never more than one row. None: rows may
    be equal in all columns, or differ in some that are not a key.
    """
    found = _of_query(query, sources).keys
    return tuple(sorted(found[0])) if found else None


def told_by(query: Query, sources: Mapping[SourceName, Stream]) -> tuple[int, tuple[Places, ...]]:
    """How many columns the last stage of a query gives, and sets of places that no two of its rows agree in,
    the best first.
    """
    found = _of_query(query, sources)
    return found.width, found.keys


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the columns of a relation, ``width`` many.

    keys: sets of places, the best first. constant: places that are equal in all rows. filled: places that are
    never NULL.
    """

    width: int
    keys: tuple[Places, ...] = ()
    constant: Places = frozenset()
    filled: Places = frozenset()

    def with_keys(self, *more: Iterable[int]) -> _Known:
        """With these keys too."""
        if not (more or self.keys):
            return self
        wanted = {frozenset(key) - self.constant for key in (*self.keys, *more)}
        least = [key for key in wanted if not any(other < key for other in wanted)]
        least.sort(key=lambda key: (len(key), sorted(key)))
        return _Known(self.width, tuple(least[:KEYS_MAX]), self.constant, self.filled)

    def with_constants(self, places: Iterable[int]) -> _Known:
        """With these equal in all rows."""
        constant = self.constant.union(places)
        if constant == self.constant:
            return self
        return _Known(self.width, self.keys, constant, self.filled).with_keys()

    def seen_as(self, expressions: Sequence[Expression]) -> _Known:
        """Returns what is known of columns that are computed from these by the expressions."""
        at: dict[int, int] = {}
        constant, filled = set(), set()
        for place, expression in enumerate(expressions):
            if isinstance(expression, Column):
                at.setdefault(expression.index, place)
                if expression.index in self.constant:
                    constant.add(place)
                if expression.index in self.filled:
                    filled.add(place)
            elif isinstance(expression, Literal):
                constant.add(place)
        keys = [[at[place] for place in key] for key in self.keys if key <= at.keys()]
        known = _Known(len(expressions), (), frozenset(constant), frozenset(filled))
        return known.with_keys(*keys)


def _of_query(query: Query, sources: Mapping[SourceName, Stream]) -> _Known:
    known = _of_scan(query.scan, sources[query.scan.source])
    for stage in query.stages:
        known = _above(stage, known, sources)
    return known


def _of_scan(scan: Scan, stream: Stream) -> _Known:
    """A table has a row for each key; a history has versions."""
    schema, window = stream.schema, scan.window
    width = len(schema) + (len(WINDOW_COLUMNS) if scan.assignment is not None else int(scan.history))
    filled = {place for place, field in enumerate(schema) if not field.nullable}
    known = _Known(width, filled=frozenset(filled | set(range(len(schema), width))))
    if stream.is_table and not scan.history:
        known = known.with_keys([place for place, field in enumerate(schema) if field.name in stream.key])
    if isinstance(window, RowWindow) and window.rows == 1:
        places = _plain(window.keys)
        if places is not None:
            known = known.with_keys(places)
    return known.with_constants(_held(scan.predicate))


def _above(stage: Stage, known: _Known, sources: Mapping[SourceName, Stream]) -> _Known:
    """What is known above a stage."""
    match stage:
        case Project(outputs):
            return known.seen_as([output.expression for output in outputs])
        case Aggregate(keys, calls):
            return _of_groups([key.expression for key in keys], len(calls), known)
        case Filter(predicate):
            return known.with_constants(_held(predicate))
        case Distinct():
            return known.with_keys(range(known.width))
        case Limit(count):
            return known if count is None or count > 1 else known.with_keys(())
        case RowNumber(keys, _, count):
            numbered = _Known(
                known.width + 1, known.keys, known.constant, known.filled | {known.width}
            ).with_constants([known.width] if count == 1 else [])
            places = _plain(keys)
            return numbered if places is None else numbered.with_keys([*places, known.width])
        case Join():
            return _of_join(stage, known, _of_query(stage.inner, sources))
        case SetOperation():
            return _of_set_operation(stage, known, _of_query(stage.inner, sources))
        case Sort() | SemiJoin():
            return known
        case Streamed():  # a row may come again
            return _Known(known.width, (), known.constant, known.filled)


def _of_groups(keys: Sequence[Expression], calls: int, known: _Known) -> _Known:
    """One row for each value of the keys; so what told rows apart before, among the keys, still does."""
    seen = known.seen_as(keys)
    return _Known(len(keys) + calls, seen.keys, seen.constant, seen.filled).with_keys(range(len(keys)))


def _of_join(join: Join, left: _Known, inner: _Known) -> _Known:
    """A pair is told by what tells its parts; one part is enough where it has one partner at most."""
    if join.kind in ("semi", "anti"):
        return left
    given_left, given_inner = join.kind not in ("right", "full"), join.kind not in ("left", "full")
    moved = _moved(inner, left.width)
    known = _Known(
        left.width + inner.width,
        (),
        # NULLs stand for the columns of a side that gives no partner.
        (left.constant if given_left else frozenset()) | (moved.constant if given_inner else frozenset()),
        (left.filled if given_left else frozenset()) | (moved.filled if given_inner else frozenset()),
    )
    keys = [one | other for one in left.keys for other in moved.keys]
    if join.kind == "full":  # (NULL, b) without a partner may be (a, NULL) without one unless one cannot be
        filled = left.filled | moved.filled
        return known.with_keys(*(key for key in keys if key & filled))
    if join.kind != "right" and (join.latest is not None or _told(inner, [key for _, key in join.keys])):
        keys += left.keys
    if join.kind != "left" and join.latest is None and _told(left, [key for key, _ in join.keys]):
        keys += moved.keys
    return known.with_keys(*keys)


def _of_set_operation(stage: SetOperation, left: _Known, inner: _Known) -> _Known:
    """Returns what is known of the columns that a set operation gives.

    UNION ALL keeps what is known of both sides and has no key: a row of one side may equal a row of the
    other. EXCEPT and INTERSECT give some of the left rows, and INTERSECT rows that are right rows too.
    Without ALL no row is given twice, so all columns together are a key.
    """
    match stage.kind:
        case "union":
            return _Known(left.width, filled=left.filled & inner.filled)
        case "intersect":
            constant, filled = left.constant | inner.constant, left.filled | inner.filled
            known = _Known(left.width, (), constant, filled).with_keys(*left.keys, *inner.keys)
        case "except":
            known = left
    return known if stage.all else known.with_keys(range(left.width))


def _moved(known: _Known, by: int) -> _Known:
    """Returns what is known of these columns when they stand ``by`` places further right."""

    def along(places: Places) -> Places:
        return frozenset(place + by for place in places)

    keys = tuple(along(key) for key in known.keys)
    return _Known(known.width + by, keys, along(known.constant), along(known.filled))


def _told(known: _Known, expressions: Sequence[Expression]) -> bool:
    """Whether at most one row has given values of these."""
    columns = [_widened(expression) for expression in expressions]
    equal = {column.index for column in columns if isinstance(column, Column)}
    return any(key <= equal for key in known.keys)


def _widened(expression: Expression) -> Expression:
    """Without a cast that keeps different values different."""
    match expression:
        case Cast(operand, type_) if operand.type == INTEGER and type_ in (BIGINT, DOUBLE):
            return operand
    return expression


def _plain(expressions: Sequence[Expression]) -> list[int] | None:
    """The columns that these are, None where one is computed."""
    places = [expression.index for expression in expressions if isinstance(expression, Column)]
    return places if len(places) == len(expressions) else None


def _held(predicate: Expression | None) -> Iterable[int]:
    """Columns that equal a constant wherever this is TRUE."""
    match predicate:
        case And(operands):
            for operand in operands:
                yield from _held(operand)
        case Compare("=", Column(index=index, type=type_), Literal() as literal) if (
            type_ == literal.type or DOUBLE not in (type_, literal.type)  # which would compare them rounded
        ):
            yield index
