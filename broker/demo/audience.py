"""The demo's clients: they register, look at answers now and then, and check them at the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from broker.demo.flights import Data
from tureen.client import Client
from tureen.errors import BrokerUnavailable
from tureen.protocol import Handle, new_handle
from tureen.snapshot import Snapshot
from tureen.texts import Template

BULK = 1_000
SETTLE_TIMEOUT_S = 180.0
CHECKERS = 4
_EXACT: Mapping[str, float] = {}


class Question(Protocol):
    """A query and the plain computation that its answer is checked against: a Standing or a Tile."""

    @property
    def sql(self) -> str: ...

    @property
    def asked(self) -> str | Template:
        """What is registered: its text, or a template and parameters that mean the same."""

    @property
    def count(self) -> bool:
        """Whether it counts rows instead of giving them."""

    @property
    def options(self) -> Mapping[str, str]: ...

    @property
    def within(self) -> Mapping[str, float]:
        """By which share a column may differ from what is expected; one that is not there must be equal."""

    def expected(self, data: Data, now_ms: int | None) -> pa.Table: ...


@dataclass
class Progress:
    """How far the broker is, over all streams of the demo; ``now_ms`` is the flights'. tables: their rows.
    deltas: changes of answers that were written to result topics; waiting: that are still to be.
    """

    records: int = 0
    entered: int = 0
    pending: int = 0
    late: int = 0
    refused: int = 0
    now_ms: int | None = None
    per_s: float = 0.0
    queries: int = 0
    by_stream: dict[str, int] = field(default_factory=dict)
    tables: int = 0
    deltas: int = 0
    waiting: int = 0
    deltas_per_s: float = 0.0


@dataclass
class Verdict:
    """The outcome of checking answers: how many of how many, the rows in them, those that were wrong."""

    of: int
    checked: int = 0
    rows: int = 0
    wrong: list[str] = field(default_factory=list)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.of + other.of, self.checked + other.checked, self.rows + other.rows, self.wrong + other.wrong
        )


class Audience:
    """Clients of ``standing``, each with a handle."""

    def __init__(self, client: Client, standing: Sequence[Question]) -> None:
        self.client = client
        self.standing = list(standing)
        self.handles: list[Handle] = [new_handle() for _ in self.standing]
        self.registered = 0
        self._rows = [0] * len(self.standing)
        self._next = 0

    @property
    def matches(self) -> int:
        """Rows in all answers, as they were when each was last looked at."""
        return sum(self._rows)

    def register(self, until: int) -> None:
        """Register up to the query at this place; ``registered`` tells how far it is.

        Raises the first refusal.
        """
        until = min(until, len(self.standing))
        while self.registered < until:
            begin = self.registered
            options = self.standing[begin].options
            end = begin
            while end < min(begin + BULK, until) and self.standing[end].options == options:
                end += 1
            pairs = [
                (one.asked, handle)
                for one, handle in zip(self.standing[begin:end], self.handles[begin:end], strict=True)
            ]
            for query in self.client.register_many(pairs, options=options):
                if query.error is not None:
                    raise query.error
            self.registered = end

    def progress(self) -> Progress:
        """What the broker says of itself."""
        facts = self.client.service()
        found = Progress(
            per_s=facts.get("rates", {}).get("records", 0.0),
            waiting=sum(shard["changes_waiting"] for shard in facts.get("shards", [])),
            deltas=sum(shard["deltas"] for shard in facts.get("shards", [])),
            deltas_per_s=facts.get("rates", {}).get("deltas", 0.0),
            queries=facts.get("queries", {}).get("RUNNING", 0),
        )
        for source in facts.get("sources", []):
            if source["kind"] == "table":
                found.tables += source["rows"]
                continue
            found.records += source["records"]
            found.entered += source["rows"]
            found.pending += source["pending"]
            found.late += source["late"]
            found.refused += source["dead_letters"]
            found.by_stream[source["name"]] = source["records"]
            if source["name"] == "flights":
                found.now_ms = source["now_ms"]
        return found

    def look(self, which: int) -> Snapshot:
        """The answer of one query."""
        snapshot = self.client.snapshot(self.handles[which])
        self._rows[which] = 0 if self.standing[which].count else len(snapshot)
        return snapshot

    def glance(self, budget_s: float) -> None:
        """Look at further answers in turn, for so long."""
        deadline = time.monotonic() + budget_s
        while time.monotonic() < deadline:
            self.look(self._next)
            self._next = (self._next + 1) % self.registered

    def settle(self, sent: int, last_ms: Mapping[str, int]) -> Progress:
        """Wait until everything sent has entered, none waits above NOW, and no change to be written. Once all
        is read, streams are promised that nothing else comes, which else they take from a pause.

        last_ms: of each stream, the time of its last row. Raises BrokerUnavailable.
        """
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        promised = False
        while True:
            progress = self.progress()
            is_read = progress.records + progress.refused >= sent
            if is_read and not promised:
                for name, ms in last_ms.items():
                    self.client.heartbeat(name, ms + 1)
                promised = True
                continue
            waits = progress.pending or progress.waiting
            if is_read and not waits:
                return progress
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"of {sent:,} records {progress.entered:,} have entered, {progress.pending:,} wait above "
                    f"NOW, {progress.late:,} were late, {progress.refused:,} refused"
                )
            time.sleep(0.05)

    def check(self, data: Data, seconds_max: float, most: int | None = None) -> Verdict:
        """Compare answers with the plain computation over the files, all rows in order. most: of so many
        queries, evenly among all; None: of all.

        After ``seconds_max`` no further one is begun; the first are checked first, so some of each kind are.
        """
        of = range(0, len(self.standing), 1 if most is None else max(1, len(self.standing) // most))
        verdict = Verdict(len(of))
        deadline = time.monotonic() + seconds_max

        def compare(which: int) -> tuple[int, str | None] | None:
            if time.monotonic() > deadline:
                return None
            query, snapshot = self.standing[which], self.look(which)
            expected = query.expected(data, snapshot.now_ms)
            if same(snapshot.table, expected, query.within):
                return len(snapshot), None
            wrong = f"{query.sql}: {len(snapshot):,} rows, expected {expected.num_rows:,} at {snapshot.now}"
            return len(snapshot), wrong

        pool = ThreadPoolExecutor(CHECKERS)
        try:
            for found in pool.map(compare, of):
                if found is not None:
                    verdict.checked += 1
                    verdict.rows += found[0]
                    verdict.wrong += [] if found[1] is None else [found[1]]
        finally:
            pool.shutdown(cancel_futures=True)
        return verdict


def same(answer: pa.Table, expected: pa.Table, within: Mapping[str, float] = _EXACT) -> bool:
    """Equal in names, values and order; columns of ``within`` but for this share of what is expected."""
    if answer.column_names != expected.column_names or answer.num_rows != expected.num_rows:
        return False
    for name, share in within.items():
        mine, other = answer[name].to_pylist(), expected[name].to_pylist()
        if not all(
            one == two or (None not in (one, two) and abs(one - two) <= share * abs(two))
            for one, two in zip(mine, other, strict=True)
        ):
            return False
    kept = [name for name in expected.column_names if name not in within]
    exact = expected.select(kept)
    try:
        return bool(answer.select(kept).cast(exact.schema).combine_chunks().equals(exact.combine_chunks()))
    except pa.ArrowInvalid:
        return False
