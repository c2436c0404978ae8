"""Data and helpers that ``shards_same_answers_test.py`` shares with other tests."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from typing import Any

from engine.changes.operator import operator_over
from engine.language.query import Query
from engine.model.source import Stream
from engine.model.step import (
    Step,
)
from spark_jobs.scale_out.shards import shard as at_work
from spark_jobs.scale_out.shards.layout import Layout
from tests.differential.agreement import exact_rows, plain_rows
from tests.scale_out.sharded import Net, Sharded, Whole, keys_of, net_of


def agree_on(steps: list[Step], layout: Layout, rng: random.Random) -> Counter[str]:
    """Do what :func:`agree` does, for steps whose queries emit."""
    with tempfile.TemporaryDirectory() as checkpoint:
        sharded = Sharded(checkpoint, layout, rng)
        wholes = [Whole("parts", sharded.layout), Whole("lane", sharded.layout)]
        told: dict[str, Net] = {}
        held: dict[str, Counter[Any]] = {}
        for one in sharded.rounds(steps):
            mine = [change for each in sharded.all_shards(one) for change in each.changes]
            theirs = [change for whole in wholes for change in whole.take(one)]
            assert net_of(mine) == net_of(theirs)
            happens = rng.random()
            if happens < 0.2:
                at_work.forget()
            if happens < 0.4:
                again = [change for each in sharded.all_shards(one) for change in each.changes]
                assert net_of(again) == net_of(mine)
            add(told, held, mine, one.batch.going)
            for whole in wholes:
                check_folds(whole, told)
            check_copies(wholes, held)
        return Counter(sharded.placements.values())


def add(told: dict[str, Net], held: dict[str, Counter[Any]], changes: list[Any], going: Any) -> None:
    for query_id, net in net_of(changes).items():
        told.setdefault(query_id, Counter()).update(net)
    for query_id, keys in keys_of(changes).items():
        held.setdefault(query_id, Counter()).update(keys)
    for query_id in going:
        told.pop(query_id, None)
        held.pop(query_id, None)


def check_copies(wholes: list[Whole], held: Mapping[str, Counter[Any]]) -> None:
    """A copy of a row comes once and goes once; one that nobody was told of at the beginning only goes."""
    for whole in wholes:
        for query_id, standing in whole.engine.view().standing.items():
            emit = standing.query.emit
            least = 0 if emit is not None and emit.snapshot else -1
            counts = held.get(query_id, Counter()).values()
            assert all(least <= count <= 1 for count in counts), (query_id, held[query_id])


def check_folds(whole: Whole, told: Mapping[str, Net]) -> None:
    """Check that changes fold to the answer for queries that tell all changes and begin with their answer."""
    view = whole.engine.view()
    for query_id, standing in view.standing.items():
        query: Query = standing.query
        streams: dict[Any, Stream] = {
            name: one for name, one in whole.engine.catalogue.items() if isinstance(one, Stream)
        }
        if standing.paused or query.emit is None or not query.emit.snapshot:
            continue
        if operator_over(query, streams) != "changes":
            continue
        folded: Counter[Any] = Counter()
        for (_, _, row), weight in told.get(query_id, Counter()).items():
            folded[row] += weight
        assert min(folded.values(), default=0) >= 0
        assert +folded == Counter(exact_rows(plain_rows(view.snapshot(query_id).table))), query_id
