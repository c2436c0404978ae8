"""Selections on executors tell of their samples as the engine does."""

from __future__ import annotations

import numpy as np

from engine.embedding import Embedding
from engine.engine import Engine
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import Registration
from engine.stems.query_stem import QueryStem
from spark_jobs.scale_out.selections import AtWork
from tests.strategies import batch_of

TEXTS = {
    "exact": "SELECT v FROM s WHERE v >= 0 EMIT CHANGES",
    "sampled": "SELECT v FROM s SAMPLE(30) WHERE v >= 0 EMIT CHANGES",
}


def test_a_sample_is_a_tag_of_its_changes_alone() -> None:
    engine: Embedding = Engine()
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
