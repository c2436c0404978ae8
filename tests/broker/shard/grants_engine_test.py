"""Grants over an engine in simulated time: whatever came in what order, no work is left that nobody does."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.shard.grants import MS, QUIET_S, Grants
from engine.engine import Engine
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Heartbeat
from tests.engine.preferences import JOIN, PREFERRED, SELECTED, Feed

REST_MS = 250
UNIT_NS = 3_000
STEP_NS = 2 * MS


class Shard:
    """What a shard does with its grants: a step at a time, and waits between them."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.now_ns = 0
        self.linger_until_ns = 0
        self.grants = Grants(20, 0.1, None, 1_000_000, 0)
        self.worked(alone=False)

    @property
    def linger_s(self) -> float:
        return max(0, self.linger_until_ns - self.now_ns) / 1e9

    def worked(self, *, alone: bool) -> None:
        self.grants.left = self.feed.engine.needs.preference_work()
        if not alone:
            self.grants.stepped()

    def records(self, name: str, rows: list[tuple[int, int, float]], *, lagging: bool) -> None:
        self.grants.records_come()
        granted = self.grants.for_records(self.now_ns, lagging=lagging)
        spent = self.feed.put(name, *rows, grant=granted).spent
        self.now_ns += STEP_NS + spent * UNIT_NS
        self.grants.records_took(STEP_NS + spent * UNIT_NS, granted, spent, spent * UNIT_NS)
        self.linger_until_ns = 0 if lagging else self.now_ns + 4 * MS
        self.worked(alone=False)

    def clock(self, name: str) -> None:
        """A heartbeat without a grant."""
        self.feed.step(Heartbeat(SourceName(name)))
        self.now_ns += STEP_NS
        self.worked(alone=False)

    def rest(self, ms: float) -> int:
        """Nothing comes for so long; how many heartbeats were made."""
        until_ns, made = self.now_ns + int(ms * MS), 0
        while self.now_ns < until_ns:
            wait_s = min(self.grants.next_s(self.now_ns, self.linger_s), (until_ns - self.now_ns) / 1e9)
            self.now_ns += math.ceil(wait_s * 1e9)
            granted = self.grants.for_heartbeat(self.now_ns)
            if granted and not self.linger_s:
                spent = self.feed.work(granted).spent
                self.now_ns += STEP_NS + spent * UNIT_NS
                self.grants.heartbeat_took(STEP_NS + spent * UNIT_NS, granted, spent)
                self.worked(alone=True)
                made += 1
            elif not wait_s:
                self.now_ns += MS
        return made


KEYS = st.lists(st.integers(0, 3), min_size=1, max_size=6)
RECORDS = st.tuples(st.just("records"), st.sampled_from("ab"), KEYS, st.booleans())
CLOCK = st.tuples(st.just("clock"), st.sampled_from("ab"))
LIMIT = st.tuples(st.just("limit"), st.sampled_from([0, 3, 1_000, None]))
REST = st.tuples(st.just("rest"), st.sampled_from([1, 3, 40, 600]))


@given(st.lists(st.one_of(RECORDS, CLOCK, LIMIT, REST), max_size=25), st.sampled_from([4, 1 << 20]))
def test_no_work_is_left_that_nobody_does(actions: list[Any], pairs_max: int) -> None:
    feed = Feed(Engine(limits=Limits(promising_pairs_max=pairs_max)), fresh=True)
    for name in "ab":
        feed.engine.create(
            f"CREATE STREAM {name} (k BIGINT, v DOUBLE, ts TIMESTAMP NOT NULL) "
            "WITH (timestamp = 'ts') RETAIN 1 HOUR",
            10**6,
        )
        feed.summarise(name)
    feed.engine.register("q", PREFERRED)
    feed.engine.register("s", SELECTED)
    windows = "FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS]"
    feed.engine.register("exact", JOIN.replace("FROM a, b", windows))
    shard, at_ms = Shard(feed), 1_000
    for action in actions:
        match action:
            case "records", name, keys, lagging:
                rows = [(at_ms + n, key, 1.0) for n, key in enumerate(keys)]
                at_ms += 400 * len(keys)
                shard.records(name, rows, lagging=lagging)
            case "clock", name:
                shard.clock(name)
            case "limit", per_s:
                shard.grants.limit.set(per_s, shard.now_ns)
            case "rest", ms:
                shard.rest(ms)
    shard.grants.limit.set(None, shard.now_ns)
    shard.rest(2_000)
    assert feed.engine.needs.preference_work() == 0
    assert math.isinf(shard.grants.next_s(shard.now_ns, 0.0))
    assert shard.rest(2_000) == 0
    if pairs_max > 4:
        assert feed.rows() == feed.rows("exact")


@pytest.mark.parametrize("linger_ms", [0, 2, 4, 8, 100])
def test_heartbeat_is_made_behind_records_that_wait_or_before_where_it_fits(linger_ms: int) -> None:
    grants = Grants(20, 0.1, None, 1_000_000, 0)
    grants.left = 5
    fits = linger_ms in (0, 8, 100)
    assert grants.next_s(0, linger_ms / 1_000) == (0.0 if fits else linger_ms / 1_000 + QUIET_S)
    grants.heartbeat_took(MS, 5, 0)
    assert math.isinf(grants.next_s(0, linger_ms / 1_000))
