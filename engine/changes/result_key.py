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

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
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
class KnownColumns:
    """What is known of the columns of a relation, ``width`` many.

    keys: sets of places, the best first. constant: places that are equal in all rows. filled: places that are
    never NULL.
    """

    width: int
    keys: tuple[Places, ...] = ()
    constant: Places = frozenset()
    filled: Places = frozenset()

    def with_keys(self, *more: Iterable[int]) -> KnownColumns:
        """With these keys too."""
        if not (more or self.keys):
            return self
        wanted = {frozenset(key) - self.constant for key in (*self.keys, *more)}
        least = [key for key in wanted if not any(other < key for other in wanted)]
        least.sort(key=lambda key: (len(key), sorted(key)))
        return KnownColumns(self.width, tuple(least[:KEYS_MAX]), self.constant, self.filled)

    def with_constants(self, places: Iterable[int]) -> KnownColumns:
        """With these equal in all rows."""
        constant = self.constant.union(places)
        if constant == self.constant:
            return self
        return KnownColumns(self.width, self.keys, constant, self.filled).with_keys()

    def seen_as(self, expressions: Sequence[Expression]) -> KnownColumns:
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
        known = KnownColumns(len(expressions), (), frozenset(constant), frozenset(filled))
        return known.with_keys(*keys)

    def moved(self, by: int) -> KnownColumns:
        """Returns what is known of these columns when they stand ``by`` places further right."""

        def along(places: Places) -> Places:
            return frozenset(place + by for place in places)

        keys = tuple(along(key) for key in self.keys)
        return KnownColumns(self.width + by, keys, along(self.constant), along(self.filled))

    def tells(self, expressions: Sequence[Expression]) -> bool:
        """Whether at most one row has given values of these."""
        columns = [_widened(expression) for expression in expressions]
        equal = {column.index for column in columns if isinstance(column, Column)}
        return any(key <= equal for key in self.keys)


def _of_query(query: Query, sources: Mapping[SourceName, Stream]) -> KnownColumns:
    known = _of_scan(query.scan, sources[query.scan.source])
    for stage in query.stages:
        inner = None if stage.right_input is None else _of_query(stage.right_input, sources)
        known = known_above(stage, known, inner)
    return known


def _of_scan(scan: Scan, stream: Stream) -> KnownColumns:
    """A table has a row for each key; a history has versions."""
    schema, window = stream.schema, scan.window
    width = len(schema) + (len(WINDOW_COLUMNS) if scan.assignment is not None else int(scan.history))
    filled = {place for place, field in enumerate(schema) if not field.nullable}
    known = KnownColumns(width, filled=frozenset(filled | set(range(len(schema), width))))
    if stream.is_table and not scan.history:
        known = known.with_keys([place for place, field in enumerate(schema) if field.name in stream.key])
    if isinstance(window, RowWindow) and window.rows == 1:
        places = plain_places(window.keys)
        if places is not None:
            known = known.with_keys(places)
    return known.with_constants(constants_of(scan.predicate))


@asked_of("key")
def known_above(stage: Stage, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    """What is known of the columns of a stage. left: of those of the relation; inner: of those of its second
    input, None where it has one.
    """
    return left


def _widened(expression: Expression) -> Expression:
    """Without a cast that keeps different values different."""
    match expression:
        case Cast(operand, type_) if operand.type == INTEGER and type_ in (BIGINT, DOUBLE):
            return operand
    return expression


def plain_places(expressions: Sequence[Expression]) -> list[int] | None:
    """The columns that these are, None where one is computed."""
    places = [expression.index for expression in expressions if isinstance(expression, Column)]
    return places if len(places) == len(expressions) else None


def constants_of(predicate: Expression | None) -> Iterable[int]:
    """Columns that equal a constant wherever this is TRUE."""
    match predicate:
        case And(operands):
            for operand in operands:
                yield from constants_of(operand)
        case Compare("=", Column(index=index, type=type_), Literal() as literal) if (
            type_ == literal.type or DOUBLE not in (type_, literal.type)  # which would compare them rounded
        ):
            yield index
