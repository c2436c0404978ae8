"""Selections on executors tell what the engine does, wherever rows are cut, and of samples as it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from engine.embedding import Embedding
from engine.language.query import Query
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import Registration
from engine.stems.query_stem import QueryStem
from spark_jobs.scale_out.selections import AtWork, stateless
from tests.capacities import small_engine
from tests.strategies import batch_of

TEXTS = {
    "exact": "SELECT v FROM s WHERE v >= 0 EMIT CHANGES",
    "sampled": "SELECT v FROM s SAMPLE(30) WHERE v >= 0 EMIT CHANGES",
}


def test_a_sample_is_a_tag_of_its_changes_alone() -> None:
    engine: Embedding = small_engine()
    engine.create("CREATE STREAM s (v INT, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')")
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    rows = batch_of(stream.schema, [(0, at, at, (at, at)) for at in range(400)])
    at_work = AtWork(QueryStem(stream.stored_schema))
    for query_id, sql in TEXTS.items():
        engine.register(query_id, sql)
        query = engine.prepare(sql)
        at_work.add(Registration(query_id, sql), query)
    told = list(at_work.tell(stream, rows, None, 399, Limits()))
    tags = {name: one.approximation.get(name, ()) for one in told for name in one.query_ids}
    view = engine.view()
    assert tags == {name: view.approximation(name) for name in TEXTS}
    assert [len(tags[name]) for name in TEXTS] == [0, 1]
    counts = {name: int(np.diff(one.starts)[at]) for one in told for at, name in enumerate(one.query_ids)}
    engine.ingest("s", rows)
    assert counts["exact"] == 400
    visible = engine.view().snapshot("sampled").table.num_rows  # NOW is before the last row
    assert counts["sampled"] - visible in (0, 1)
    assert 60 < counts["sampled"] < 180
    at_work.remove("sampled")
    (left,) = at_work.tell(stream, rows, None, 399, Limits())
    assert (left.query_ids, left.approximation) == (("exact",), {})


EACH_FOR_ITSELF = {
    "SELECT v FROM s": True,
    "SELECT ISTREAM(v) FROM s BEGIN TIMESTAMP '1970-01-01' END NOW": True,
    "SELECT ISTREAM(ts, v) FROM s [RANGE 5 MILLISECONDS]": True,
    "SELECT ISTREAM(v) FROM s [RANGE 5 MILLISECONDS]": False,
    "SELECT ISTREAM(v) FROM s [NOW]": False,
    "SELECT v FROM s [RANGE 5 MILLISECONDS]": False,
    "SELECT DSTREAM(v) FROM s": False,
}
"""Whether a row is told whatever other rows do: not where it may come as an equal one leaves."""


@pytest.mark.parametrize(("sql", "expected"), EACH_FOR_ITSELF.items())
def test_rows_are_told_each_for_itself_where_none_comes_as_an_equal_one_leaves(
    sql: str, expected: bool
) -> None:
    engine: Embedding = small_engine()
    engine.create("CREATE STREAM s (v INT, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')")
    stream, query = engine.catalogue["s"], engine.prepare(f"{sql} EMIT CHANGES")
    assert isinstance(stream, Stream)
    assert isinstance(query, Query)
    assert stateless(query, {SourceName("s"): stream}) == expected
    rows = batch_of(stream.schema, [(0, place, at, (1, at)) for place, at in enumerate((0, 1, 6, 7, 20))])
    engine.register("q", f"{sql} EMIT CHANGES")
    at_work = AtWork(QueryStem(stream.stored_schema))
    at_work.add(Registration("q", sql), query)
    found = [each for piece in range(4) for each in _of_piece(at_work, stream, rows, piece)]
    assert (_told(found) == _told(engine.ingest("s", rows).changes)) == expected


def _of_piece(at_work: AtWork, stream: Stream, rows: Batch, piece: int) -> list[Changes]:
    """A row a micro-batch."""
    at = rows.timestamp.tolist()
    since = at[piece] - 1 if piece else None
    return list(at_work.tell(stream, rows.slice(piece, piece + 1), since, at[piece + 1] - 1, Limits()))


def _told(changes: Iterable[Changes]) -> Counter[Any]:
    """What came, when. A micro-batch of one row knows of none that leaves."""
    return Counter(
        (at, row["v"])
        for one in changes
        for at, row in zip(one.at_ms.tolist(), one.table.to_pylist(), strict=True)
    )
