"""Portions ordered beside the shard: the same changes in the same order, one portion after another."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from broker.shard import pending as waiting
from broker.shard.ordering import Ordering
from broker.shard.pending import Pending, Portion
from engine.model.changes import Changes
from engine.model.step import OutputWritten, Position
from topics.destination import Destination
from tureen.errors import InternalError

TO = Destination("t", False, True, "diff", "json", "istream")
NO_SUCH_KEY = Destination("t", True, True, "upsert", "json", "changes", (7,))
ROWS = 50
DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "ORDERED_BESIDE_ROWS", ROWS)


def portion(sequence: int, query_id: str, rows: int, to: Destination = TO) -> Portion:
    values = np.random.default_rng(sequence).permutation(rows)
    table = pa.table({"v": [f"value {value:06}" for value in values]})
    changes = Changes.of_one(query_id, table, np.ones(rows, np.int8), np.full(rows, 5), 5, "snapshot")
    return Portion(Position(1, sequence), query_id, to, [changes], is_whole=True, rows=rows)


class Shard:
    """What a shard does with what waits."""

    def __init__(self, *portions: Portion) -> None:
        self.pending = Pending()
        self.pending.put(portions)
        self.called = threading.Event()
        self.ordering = Ordering(0, self.called.set)

    def ready(self) -> list[str]:
        """Queries of which some can be written."""
        can_write = self.ordering.look(self.pending)
        found = [one.query_id for one in self.pending.firsts() if one.is_ready]
        assert can_write <= bool(found)  # one may have become so meanwhile
        return found

    def rest(self) -> None:
        assert self.called.wait(DEADLINE_S)
        self.called.clear()


def pieces(one: Portion) -> Iterator[str]:
    """All of it, as it is written."""
    pending = Pending()
    pending.put([one])
    while pending:
        changes = one.next(7)
        yield from changes.table["v"].to_pylist()
        pending.wrote(OutputWritten(one.position.sequence, one.query_id, one.written + len(changes)))


def test_a_large_portion_is_ordered_as_it_is_in_the_step() -> None:
    large = portion(1, "large", ROWS)
    alike = copy.deepcopy(large)
    shard = Shard(large)
    shard.ordering.look(shard.pending)
    shard.rest()
    assert shard.ready() == ["large"]
    assert list(pieces(large)) == list(pieces(alike)) == [f"value {value:06}" for value in range(ROWS)]


def test_small_ones_do_not_wait_for_large_ones() -> None:
    shard = Shard(portion(1, "large", ROWS), portion(2, "small", ROWS - 1))
    assert "small" in shard.ready()


def test_one_is_ordered_after_another() -> None:
    shard = Shard(*(portion(number, f"q{number}", ROWS) for number in range(1, 4)))
    for count in range(1, 4):
        shard.ready()
        shard.rest()
        assert len([one for one in shard.pending.firsts() if one.is_ready]) == count
    assert shard.ready() == ["q1", "q2", "q3"]


def test_what_cannot_be_ordered_is_told_when_it_is_to_be_written() -> None:
    large = portion(1, "large", ROWS, NO_SUCH_KEY)
    shard = Shard(large, portion(2, "other", ROWS))
    shard.ready()
    shard.rest()
    with pytest.raises(InternalError):
        large.next(7)
    shard.ready()
    shard.rest()
    assert shard.ready() == ["large", "other"]
