"""Data and helpers that ``meaning_test.py`` shares with other tests."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from tests.language.fixtures import CATALOGUE


def meaning(sql: str) -> Query:
    """The query, without its text and the names it was put together from."""
    query = parse(sql, CATALOGUE, Limits())
    assert isinstance(query, Query)
    return _bare(query)


def _bare(query: Query) -> Query:
    stages = tuple(
        replace(stage, inner=_bare(stage.inner)) if isinstance(stage, SemiJoin | Join) else stage
        for stage in query.stages
    )
    return replace(query, sql="", stages=stages, uses=())
