"""Conditions that joins imply change no answer, whatever is joined and wherever constants stand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from engine.language.bind import select
from engine.language.query import CreateStream, Query
from engine.language.statements import parse
from engine.model.expressions import Literal
from engine.model.limits import Limits
from engine.model.source import Schema, Stream
from engine.model.step import Position, Register, Registration, Step
from engine.model.types import BOOLEAN, Kind
from engine.reference import Reference
from tests.sql_joins import KINDS, Joins
from tests.sql_strategies import literal
from tests.strategies import common
from tests.worlds import settled_worlds

SOME = settings(max_examples=max(12, settings.default.max_examples // 2))
VALUES = {
    Kind.INTEGER: (1, 2, 0),
    Kind.BIGINT: (1, 2, 0),
    Kind.DOUBLE: (1.5, 0.0),
    Kind.STRING: ("a", "ab", ""),
}
"""What columns mostly hold (:func:`tests.strategies.common`)."""


class Constants(Joins):
    """Joins by keys, some of whose columns equal constants."""

    def equals(self, schema: Schema) -> str:
        fields = [field for field in schema if field.type.kind in VALUES]
        if not fields:
            return "TRUE"
        field = self.draw(st.sampled_from(fields))
        said = [literal(field.type, value) for value in VALUES[field.type.kind]]
        return self.pick(f"{field.name} = {self.pick(*said)}", f"{field.name} IN ({said[0]}, {said[1]})")

    def on(self, left: Schema, right: Schema) -> str:
        keys = [self.equal(left, right) for _ in range(self.draw(st.sampled_from([1, 1, 2])))]
        return " AND ".join(
            keys + ([self.equals(self.draw(st.sampled_from([left, right])))] if self.chance(2) else [])
        )

    def statement(self, depth: int = 1) -> str:
        item = (self.versions() if self.chance(4) else None) or self.input(depth)
        for _ in range(self.draw(st.sampled_from([1, 1, 2]))):
            item = self.joined(item, self.input(depth), self.pick(*KINDS))
        where = [self.equals(item.schema) for _ in range(self.draw(st.sampled_from([0, 1, 1, 2])))]
        said = f" WHERE {' AND '.join(where)}" if where else ""
        return f"SELECT {', '.join(field.name for field in item.schema)} FROM {item.text}{said}"


@st.composite
def texts(draw: st.DrawFn, sources: Mapping[str, Stream]) -> str:
    return Constants(draw, sources).statement(depth=0)


def plainly(sql: str, sources: Mapping[str, Stream]) -> Query:
    """Bound without them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "with_implied", lambda query, _: query)
        query = parse(sql, sources, Limits())
    assert isinstance(query, Query)
    return query


@SOME
@given(steps=settled_worlds(2, common), data=st.data())
def test_answers_are_the_same(steps: list[Step], data: st.DataObject) -> None:
    reference = Reference(Limits())
    for step in steps:
        reference.apply(step)
    streams = {str(name): source.stream for name, source in reference.sources.items()}
    for number in range(8):
        sql = data.draw(texts(streams), label="text")
        position = Position(reference.position.epoch, reference.position.sequence + 1)
        told = reference.apply(Step(position, reference.clock, Register((Registration(str(number), sql),))))
        assert not told.failed
        standing = reference.queries[str(number)]
        asked, plain = standing.query, plainly(sql, streams)
        if asked == plain:
            continue
        rows = reference.answer(str(number)).rows
        event(f"at least {min(len(rows), 2)} rows")
        standing.query = plain
        assert reference.answer(str(number)).rows == rows


def test_a_scan_that_gives_nothing_is_asked_once() -> None:
    """FALSE and a condition that follows is FALSE: binding would never end if that counted as more."""
    streams = {}
    for name in "su":
        created = parse(
            f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')", {}, Limits()
        )
        assert isinstance(created, CreateStream)
        streams[name] = created.stream
    sql = "SELECT s.k FROM s JOIN u ON s.k = u.k WHERE FALSE AND u.k = 3"
    query = parse(sql, streams, Limits())
    assert isinstance(query, Query)
    assert query.scan.predicate == Literal(False, BOOLEAN)
