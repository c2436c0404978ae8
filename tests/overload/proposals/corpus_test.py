"""Every SELECT of the golden files has proposals, or none: nothing breaks, and each differs in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.tolerance import EXACT
from engine.overload.precision.freedom import freedoms
from engine.overload.proposals.propose import propose, rewrites
from tests.language.fixtures import CATALOGUE
from tureen.errors import TureenError

FOLDER = Path(__file__).parents[2] / "language" / "golden"


def _selects() -> list[Path]:
    found = []
    for path in sorted(FOLDER.glob("*/*.sql")):
        try:
            statement = parse(path.read_text(encoding="utf-8"), CATALOGUE, Limits())
        except TureenError:
            continue
        if isinstance(statement, Query):
            found.append(path)
    return found


@pytest.mark.parametrize("path", _selects(), ids=lambda path: path.stem)
def test_rewrites_of_a_select_bind_or_are_left_out(path: Path) -> None:
    sql = path.read_text(encoding="utf-8")

    def bind(text: str) -> Query:
        query = parse(text, CATALOGUE, Limits())
        assert isinstance(query, Query)
        return query

    query = bind(sql)
    found = propose(
        query, sql, CATALOGUE, Limits(), bind, lambda one: [100.0] * (len(one.stages) + 1), {}, EXACT
    )
    texts = {one.sql for one in found}
    assert texts <= {one.sql for one in rewrites(sql, CATALOGUE, Limits())}
    assert sql not in texts
    for one in found:
        assert bind(one.sql).columns == query.columns
        if one.expected is not None:
            assert 0.0 <= (one.expected.fp or 0.0) <= 1.0
            assert 0.0 <= (one.expected.fn or 0.0) <= 1.0
    streams = {name: one for name, one in CATALOGUE.items() if name in query.sources}
    assert len(freedoms(query, streams, EXACT)) == len(list(query.scans()))  # type: ignore[arg-type]
