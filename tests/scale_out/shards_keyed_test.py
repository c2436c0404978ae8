"""Queries that shards answer each for itself, over rows of all sorts: the answers and changes of one engine.

Rows come late, ahead and out of order, from partitions that lag or fall silent, with NULL keys and such as
equal each other in several ways; windows close by time alone; queries and a view come and go between
micro-batches; processes forget everything, and turns are taken twice.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.scale_out.shards import shard as at_work
from spark_jobs.scale_out.shards.layout import Layout
from tests.scale_out.sharded import Net, Sharded, Whole, net_of
from tests.scale_out.shards_keyed import KEYS, QUERIES, history
from tests.scale_out.shards_same_answers import add, check_folds

WHOLE_QUERIES = (
    "SELECT COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS]",
    "SELECT k, v FROM s [ROWS 5]",
    "SELECT RSTREAM(k, v) FROM s [RANGE 30 MILLISECONDS]",
    "SELECT DSTREAM(v) FROM s",
    "SELECT x, name FROM names",
)


@pytest.mark.parametrize("seed", range(6))
def test_shards_tell_what_one_engine_tells(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    layout = Layout(1 + seed % 4, KEYS, frozenset({"s"}))
    sharded = Sharded(str(tmp_path), layout, rng)
    wholes = [Whole("parts", layout), Whole("lane", layout)]
    told: dict[str, Net] = {}
    held: dict[str, Counter[Any]] = {}
    for one in sharded.rounds(list(history(rng, QUERIES + WHOLE_QUERIES))):
        happens = rng.random()
        if happens < 0.1:
            at_work.forget()  # as after a restart
        mine = [change for each in sharded.all_shards(one) for change in each.changes]
        assert net_of(mine) == net_of(change for whole in wholes for change in whole.take(one))
        if 0.05 < happens < 0.2:
            at_work.forget()  # a turn that is taken twice, by another process
            assert net_of(change for each in sharded.all_shards(one) for change in each.changes) == net_of(
                mine
            )
        add(told, held, mine, one.batch.going)
        for whole in wholes:
            check_folds(whole, told)
    placements = Counter(sharded.placements.values())
    assert placements == {"parts": len(QUERIES) - 2, "rows": 2, "lane": len(WHOLE_QUERIES)}
    assert all(count in (0, 1) for net in held.values() for count in net.values())
