"""What becomes of a statement, decided alone and by an engine's steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

import pytest

from engine.engine import Engine
from engine.language.query import (
    CreateFromQuery,
    CreateStream,
    CreateSummary,
    DropStream,
    DropSummary,
    Query,
)
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Derived, Stream
from engine.model.step import CreateDerived, CreateSource, DropSource
from engine.model.step import CreateSummary as CreateSummaryStep
from engine.model.step import DropSummary as DropSummaryStep
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.queries.definitions import (
    Create,
    Decision,
    Definitions,
    Drop,
    Unbound,
    create_of,
    decide,
    referring,
)
from tests.capacities import small_engine
from tests.definitions import CASES, NAMES, Case
from tureen.errors import TureenError, UnknownSource

LETTERS = {name: name for name in NAMES}


class World:
    """Statements that stand, and a query, in plain mappings."""

    def __init__(self, case: Case) -> None:
        self.sources: dict[str, Stream | Derived] = {}
        self.read: dict[str, tuple[str, ...]] = {}
        self.summaries: dict[str, SummaryDefinition] = {}
        for sql in case.stands:
            match self.parse(sql.format(**LETTERS)):
                case CreateStream(stream):
                    self.sources[stream.name] = stream
                case CreateFromQuery(derived, query):
                    self.sources[derived.name] = derived
                    self.read[derived.name] = (*query.sources, *query.uses)
                case CreateSummary(definition):
                    self.summaries[definition.name] = definition
        self.query = None if case.reads is None else self.parse(case.reads.format(**LETTERS))
        assert self.query is None or isinstance(self.query, Query)

    def parse(self, sql: str) -> object:
        made = re.match(r"create (?:or replace )?(?:stream|table|view) (?:if not exists )?(\w+)", sql.lower())
        others = {name: one for name, one in self.sources.items() if made is None or made[1] != name}
        return parse(sql, others, Limits(), summaries=self.summaries)

    @property
    def definitions(self) -> Definitions:
        query = self.query
        reads = () if query is None else (*query.sources, *query.uses)
        uses = () if query is None else query.summaries
        return Definitions(
            self.sources,
            self.summaries,
            readers=reads.count,
            views=lambda name: [other for other, read in self.read.items() if name in read],
            referring=lambda name: referring(
                [one for one in self.sources.values() if isinstance(one, Stream)], name
            ),
            users=uses.count,
        )


def decided(case: Case) -> str:
    world = World(case)
    try:
        wanted: Create | Drop | Unbound
        name = case.about
        try:
            statement = world.parse(case.statement.format(**LETTERS))
        except UnknownSource as missing:
            wanted = Unbound(missing)
        else:
            match statement:
                case CreateStream() | CreateFromQuery():
                    wanted = replace(
                        create_of(statement, world.sources), if_not_exists=statement.if_not_exists
                    )
                case CreateSummary(definition):
                    wanted = Create(definition)
                case DropSummary():
                    wanted = Drop("summary")
                case DropStream(view=view, table=table):
                    wanted = Drop("view" if view else "table" if table else "stream")
                case _:
                    raise AssertionError(statement)
        return decide(name, wanted, world.definitions).value
    except TureenError as refused:
        return refused.code


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_becomes_of_a_statement(case: Case) -> None:
    assert decided(case) == case.becomes


def stands(engine: Engine) -> Mapping[str, object]:
    summaries = engine._parts.catalogue.summaries.standing
    return dict(engine.catalogue) | {name: one.definition for name, one in summaries.items()}


def carried_out(engine: Engine, statement: object) -> str | None:
    """Apply the step of a statement; the code of its refusal."""
    try:
        match statement:
            case CreateStream(stream, sql):
                engine._now(CreateSource(stream, sql), 0)
            case CreateFromQuery(derived):
                engine._now(CreateDerived(derived), 0)
            case CreateSummary(definition, sql):
                engine._now(CreateSummaryStep(definition, sql), 0)
            case DropStream(name):
                engine._now(DropSource(name), 0)
            case DropSummary(name):
                engine._now(DropSummaryStep(name), 0)
            case _:
                raise AssertionError(statement)
    except TureenError as refused:
        return refused.code
    return None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_an_engine_makes_of_the_step(case: Case) -> None:
    if case.of_step is None:
        return
    engine = small_engine()
    for sql in case.stands:
        engine.create(sql.format(**LETTERS))
    if case.reads is not None:
        engine.register("q", case.reads.format(**LETTERS))
    before = stands(engine)
    refused = carried_out(engine, World(case).parse(case.statement.format(**LETTERS)))
    if refused is not None:
        assert stands(engine) == before
        assert refused == case.of_step
        return
    after = stands(engine)
    match Decision(case.of_step):
        case Decision.SAME:
            assert after == before
        case Decision.CREATE:
            assert set(after) - set(before) == {case.about}
        case Decision.REPLACE:
            assert set(after) == set(before)
            assert after[case.about] != before[case.about]
        case Decision.DROP:
            assert set(before) - set(after) == {case.about}
        case Decision.ALTER | Decision.WAITS | Decision.ABSENT as other:
            raise AssertionError(other)
        case other:
            assert_never(other)


def test_a_definition_under_another_name_is_refused() -> None:
    world = World(CASES["drop a summary"])
    for made, code in (
        (world.sources["s"], "source_conflict"),
        (world.summaries["p"], "summary_conflict"),
    ):
        with pytest.raises(TureenError, match="the key is 'other', the statement creates") as refused:
            decide("other", Create(made), Definitions())
        assert refused.value.code == code


def test_a_drop_says_what_it_drops_and_whether_its_readers_go_before() -> None:
    world = World(CASES["drop what a query reads through a view"])
    with pytest.raises(TureenError, match="'v' is a view"):
        decide("v", Drop("stream"), world.definitions)
    assert decide("v", Drop("view", cascade=True), world.definitions) is Decision.DROP


def test_a_summary_goes_by_force_although_queries_use_it() -> None:
    definitions = World(CASES["drop a summary that a query uses"]).definitions
    assert decide("p", Drop("summary", forced=True), definitions) is Decision.DROP


def test_the_text_of_a_summary_may_wait_beside_a_stream_of_its_name() -> None:
    definitions = World(CASES["the same summary"]).definitions
    missing = UnknownSource("gone")
    assert decide("s", Unbound(missing, of_summary=True), definitions) is Decision.WAITS
    with pytest.raises(UnknownSource, match="gone"):
        decide("p", Unbound(missing, of_summary=True), definitions)


ALTERED = SummarySettings(theta=0.1, zone_rows_min=9)


@pytest.mark.parametrize(
    ("changed", "becomes"),
    [
        ({"settings": ALTERED}, "alter"),
        ({"settings": replace(ALTERED, buckets=9)}, None),
        ({"stream": "t"}, None),
        ({"attribute": "ts"}, None),
        ({"granularity_ms": 1}, None),
    ],
    ids=["settings_that_change", "settings_for_life", "stream", "attribute", "granularity"],
)
def test_a_summary_takes_the_place_of_one_that_differs_in_what_can_be_altered(
    changed: dict[str, object], becomes: str | None
) -> None:
    world = World(CASES["the same summary"])
    wanted = Create(replace(world.summaries["p"], **changed), replaces=True)  # type: ignore[arg-type]
    if becomes is not None:
        assert decide("p", wanted, world.definitions).value == becomes
        return
    with pytest.raises(TureenError) as refused:
        decide("p", wanted, world.definitions)
    assert refused.value.code == "summary_conflict"
