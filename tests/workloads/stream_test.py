"""STREAM's query repository: what is served answers as the reference does, all else is refused with a reason.

The repository publishes queries and no data, and is known here by a paraphrase; our text of each query is in
``stream/``, or in ``stream/refused/``. The data is made up so that every query has rows.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.language.functions import FunctionCatalogue
from engine.model.expressions import UserFunction
from engine.model.source import SourceName, Stream
from engine.model.step import Body, CreateSource, Heartbeat, Position, Records, Register, Registration, Step
from engine.model.types import DOUBLE
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, exact_rows, outcome, told
from tests.differential.telling import (
    Fold,
    Line,
    assert_same_telling,
    of_engine,
    of_reference,
    told_by_query,
)
from tests.strategies import batch_of
from tests.workloads import loading
from tests.worlds import table_batch
from tureen.errors import QueryError

EVENT = "WITH (topic = '{name}', timestamp = 'ts')"
STREAMS = {
    "bid": "item BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP NOT NULL",
    "open_auction": "item BIGINT, seller BIGINT, start_price DOUBLE, ts TIMESTAMP NOT NULL",
    "closed_auction": "item BIGINT, buyer BIGINT, ts TIMESTAMP NOT NULL",
    "registration": "id BIGINT, ts TIMESTAMP NOT NULL",
    "packet": """
        id BIGINT, src STRING, dst STRING, bytes BIGINT, port INTEGER, flags STRING, ts TIMESTAMP NOT NULL
    """,
    "backbone": "id BIGINT, bytes BIGINT, ts TIMESTAMP NOT NULL",
    "reading": """
        sensor BIGINT, x DOUBLE, y DOUBLE, light DOUBLE, temperature DOUBLE, ts TIMESTAMP NOT NULL
    """,
    "event": "kind STRING, x DOUBLE, y DOUBLE, ts TIMESTAMP NOT NULL",
    "requests": "client_id BIGINT, domain STRING, url STRING, ts TIMESTAMP NOT NULL",
}
TABLES = {
    "person": "id BIGINT PRIMARY KEY, name STRING, state STRING",
    "item": "id BIGINT PRIMARY KEY, category BIGINT",
    "device": "sensor BIGINT PRIMARY KEY, kind STRING, region STRING",
    "domains": "domain STRING PRIMARY KEY, type STRING, ts TIMESTAMP NOT NULL",
}
AS_STREAMS = ("auctions_5_rstream", "network_5_dstream", "requests_1_istream")
FORGOTTEN = ("requests_3_commerce",)
"""Retention takes rows from these answers, which is told of no stream."""
EURO = UserFunction("DOLLAR_TO_EURO", (DOUBLE,), DOUBLE, lambda price: price * 0.875, deterministic=True)
DOMAINS = ("stanford.edu", "shop.com", "sale.org")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
START, ROUNDS, ROUND_MS = 1_000_000_000, 24, 40_000


class Life:
    """Auctions, packets, sensors: the rows of each round, the last of which stands a millisecond after all
    others, so that these are at NOW.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.web = random.Random(seed)
        self.items = 0
        self.open: list[int] = [0]
        self.packets = 0

    def round(self, number: int) -> dict[str, list[tuple[Any, ...]]]:
        rng = self.rng
        opened = [self.items + n for n in range(1, 3)]
        self.items += len(opened)
        self.open += opened
        closed = [self.open.pop(rng.randrange(len(self.open))) for _ in range(2)]
        packets = [(self.packets + n, *self.packet()) for n in range(9)]
        self.packets += len(packets)
        kinds = ["bird", "fox"]
        return {
            "open_auction": [(item, rng.randrange(8), 10.0 * rng.randrange(1, 9)) for item in opened],
            "closed_auction": [(item, rng.randrange(8)) for item in closed],
            "bid": [
                (rng.choice([*self.open, *closed, 1, 2]), rng.randrange(8), 5.0 * rng.randrange(30))
                for _ in range(6)
            ],
            "registration": [(rng.randrange(8),) for _ in range(2)],
            "packet": packets,
            "backbone": [(row[0], row[3]) for row in packets if rng.random() < 0.7] + [(-1, 40)],
            "reading": [self.reading() for _ in range(26)],
            "event": [(rng.choice(kinds), *self.spot()) for _ in range(2)],
            "person": [(rng.randrange(8), rng.choice("abc"), rng.choice(["or", "ca"])) for _ in range(3)],
            "item": [(item, rng.choice([10, 11])) for item in opened],
            "device": [(n, rng.choice("AAAAAAB"), "north") for n in range(40)] if number == 0 else [],
            "domains": [
                (domain, self.web.choice(["commerce", "education"])) for domain in DOMAINS[number % 2 :]
            ],
            "requests": [self.request() for _ in range(9)],
        }

    def request(self) -> tuple[Any, ...]:
        """A few clients with many requests, so that windows of ten rows are full, and some that no query of
        the range from 1 to 1,000 takes.
        """
        client = self.web.choice([0, 1, 2, 3, 1_000, 1_001])
        domain = self.web.choice(DOMAINS)
        return client, domain, f"http://{self.web.choice(['cs', 'www'])}.{domain}/{self.web.randrange(5)}"

    def packet(self) -> tuple[Any, ...]:
        rng = self.rng
        src, dst = rng.choice("uvwxyz"), rng.choice("uvwxyz")
        return (
            src,
            dst,
            2 ** rng.randrange(5, 12),
            rng.choice([80, 443]),
            rng.choice(["SYN", "SYN-ACK", "ACK"]),
        )

    def spot(self) -> tuple[float, float]:
        return float(self.rng.randrange(40)), float(self.rng.randrange(40))

    def reading(self) -> tuple[Any, ...]:
        return self.rng.randrange(40), *self.spot(), self.rng.randrange(80) / 4, self.rng.randrange(80) / 4


class Pair:
    """The engine and the reference, which take every step together."""

    def __init__(self) -> None:
        functions = FunctionCatalogue([EURO])
        self.engine = EngineSubject(small_engine(functions=functions))
        self.reference = Reference(functions=functions)
        self.sequence = 0
        self.lines: dict[str, list[Line]] = {}

    def apply(self, clock_ms: int, body: Body) -> None:
        self.sequence += 1
        step = Step(Position(1, self.sequence), clock_ms, body)
        result = self.engine.apply(step)
        assert not result.failed
        assert told(result) == told(self.reference.apply(step))
        mine, theirs = of_engine(result), of_reference(self.reference)
        assert_same_telling({name: mine[name] for name in AS_STREAMS if name in mine}, theirs)
        for name, lines in told_by_query([mine]).items():
            self.lines.setdefault(name, []).extend(lines)

    def register(self, texts: Mapping[str, str]) -> None:
        """All are followed, those that are streams by the reference as well."""
        self.apply(START, Register(tuple(Registration(name, text) for name, text in texts.items())))
        for name in texts:
            self.engine.engine.follow(name)
        for name in AS_STREAMS:
            self.reference.follow(name)

    def create(self, text: str) -> None:
        statement = self.engine.engine.prepare(text)
        self.apply(START, CreateSource(statement.stream, text))  # type: ignore[union-attr]

    def bring(self, name: str, rows: list[tuple[Any, ...]], first: int, clock_ms: int) -> None:
        stream = self.engine.engine.catalogue[name]
        assert isinstance(stream, Stream)
        if stream.is_table:
            placed = [(0, first + n, clock_ms, row) for n, row in enumerate(rows)]
            gone = [place % 5 == 4 for place in range(first, first + len(rows))]
            batch = table_batch(stream, placed, gone if name == "person" else [False] * len(rows))
        else:
            placed = [(0, first + n, clock_ms, row) for n, row in enumerate(rows)]
            placed.append((0, first + len(rows), clock_ms + 1, rows[-1]))
            batch = batch_of(stream.schema, placed)
        self.apply(clock_ms, Records(SourceName(name), batch, {}))


@pytest.fixture(scope="module")
def seen() -> dict[str, int]:
    """How many rows each query gave, over all rounds that were looked at, engine and reference agreeing; of
    those that are streams, how many were told. What was told of the others adds up to their answers.
    """
    pair, life = Pair(), Life(seed=7)
    for name, columns in STREAMS.items():
        pair.create(f"CREATE STREAM {name} ({columns}) {EVENT.format(name=name)}")
    for name, columns in TABLES.items():
        options = EVENT.format(name=name) if "ts TIMESTAMP" in columns else f"WITH (topic = '{name}')"
        pair.create(f"CREATE TABLE {name} ({columns}) {options}")
    texts = {text.stem: text.read_text() for text in loading.texts("stream")}
    found = dict.fromkeys(texts, 0)
    pair.register(texts)
    first = {name: exact_rows(pair.engine.answer(name).rows) for name in texts}
    offsets = dict.fromkeys((*STREAMS, *TABLES), 0)
    for number in range(ROUNDS):
        clock_ms = START + number * ROUND_MS
        for name, rows in life.round(number).items():
            if rows:
                pair.bring(name, rows, offsets[name], clock_ms)
                offsets[name] += len(rows) + 1
        for name in TABLES:
            pair.apply(clock_ms + 1, Heartbeat(SourceName(name)))
        if number % 6 == 5:
            for name in texts:
                mine, theirs = outcome(pair.engine, name, None), outcome(pair.reference, name, None)
                assert mine == theirs, name
                found[name] += len(theirs[0])
                if name not in (*AS_STREAMS, *FORGOTTEN):
                    assert summed(first[name], pair.lines.get(name, [])) == Counter(theirs[0]), name
    for name in AS_STREAMS:
        found[name] = len(pair.lines[name])
    return found


def summed(rows: Iterable[Hashable], lines: Iterable[Line]) -> Counter[Hashable]:
    """An answer with what has changed in it since; nothing goes that was not there."""
    fold = Fold(rows)
    fold.add(lines)
    return fold.rows


@pytest.mark.parametrize("text", loading.texts("stream"), ids=lambda text: text.stem)
def test_it_is_served_and_has_rows(seen: dict[str, int], text: Path) -> None:
    assert seen[text.stem] > 0


def listed(folder: str) -> set[str]:
    """The names on the page's lines about a folder's queries."""
    section = PAGE.read_text().partition(f"## {folder}")[2].partition("\n## ")[0]
    return set(re.findall(r"`(\w+)`", section))


@pytest.mark.parametrize("text", loading.texts("stream/refused"), ids=lambda text: text.stem)
def test_what_is_refused_is_on_the_page(text: Path) -> None:
    pair = Pair()
    for name, columns in STREAMS.items():
        pair.create(f"CREATE STREAM {name} ({columns}) {EVENT.format(name=name)}")
    with pytest.raises(QueryError) as refusal:
        pair.engine.engine.prepare(text.read_text())
    assert refusal.value.hint
    assert refusal.value.line is not None
    assert text.stem in listed("STREAM")
