"""Steps survive the journal, and a step's batch is read again exactly as it was."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import orjson
import pytest

from engine.model.allotment import NOTHING_LESS, Allotment, ScanAllotment
from engine.model.approximation import Expected
from engine.model.batch import Batch
from engine.model.constraint import Clustered, ManyOne, Ordered, References, Unique
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import (
    BEGINNING,
    Allocate,
    AlterSummary,
    Backfill,
    Body,
    Claim,
    CreateSource,
    CreateSummary,
    DropSource,
    DropSummary,
    Heartbeat,
    OutputWritten,
    Position,
    Records,
    Register,
    Registration,
    Rejoin,
    SetApart,
    Step,
    StepResult,
    Unregister,
    Written,
)
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import INTEGER, STRING, TIMESTAMP, decimal
from tests.kafka import wait_until
from tests.topics.consumer import settings
from topics.admin import Admin
from topics.codec import decode
from topics.consumer import BatchConsumer, OffsetLost, Range
from topics.journal import (
    VERSION,
    VERSIONS_READ,
    Deferral,
    HistoryNamed,
    JournalUnreadable,
    RecordsNamed,
    decode_step,
    digest_of,
    encode_step,
)
from topics.journal_reader import RangeReader, last_record, read_steps
from topics.producer import BatchProducer, TransactionalProducer
from tureen.errors import TopicMissing

SOURCE = SourceName("orders")
STREAM = Stream(
    SOURCE,
    Schema(
        (Field("at", TIMESTAMP, False), Field("n", INTEGER), Field("k", STRING), Field("d", decimal(9, 2)))
    ),
    "orders",
    timestamp_column="at",
    lateness_ms=5,
    constraints=(
        Ordered("at", 3),
        Clustered(("k", "n"), 0),
        Unique(("n",)),
        ManyOne(("k",), SourceName("customers"), ("id",)),
        References(("n",), SourceName("lines"), ("order",), 10),
        References(("d",), SourceName("prices"), ("d",), None, 5_000),
    ),
)
SUMMARY = SummaryDefinition(
    "popular",
    SOURCE,
    "k",
    granularity_ms=10_000,
    rate=4,
    depth=3,
    settings=SummarySettings(kind="histogram", bucket_function="range", zone_length_max_ms=1_500),
)
BODIES: list[Body] = [
    CreateSource(STREAM, "CREATE STREAM orders (...)"),
    DropSource(SOURCE),
    Heartbeat(SOURCE, frozenset({2, 0})),
    Heartbeat(SOURCE, frozenset({1}), {3: 1_700_000_000_000, 0: -5}),
    Register((Registration("q", "SELECT 1", 2.0, {"mode": "lazy"}), Registration("r", "é"))),
    Register(
        (
            Registration("q", "SELECT ?, ?, ?, ?", parameters=(1, 2.5, "é'", None)),
            Registration("r", "SELECT :a", parameters={"a": True}),
            Registration("s", "SELECT 1", parameters=()),
        )
    ),
    CreateSummary(SUMMARY, "CREATE SUMMARY popular ON orders (k) ..."),
    AlterSummary("popular", SummarySettings(theta=0.5, zone_rows_min=32)),
    DropSummary("popular"),
    DropSummary("popular", forced=True),
    Heartbeat(SOURCE, frozenset(), grant=250),
    Unregister(("q", "r")),
    Claim("an owner"),
    Written((OutputWritten(3, "q", 70), OutputWritten(4, "r", 1))),
    SetApart(("q", "r")),
    Rejoin(("r",)),
    Allocate(
        (
            ("q", Allotment((ScanAllotment(600_000, Decimal("12.5")), ScanAllotment()), by_hand=True)),
            ("r", Allotment((ScanAllotment(1),), "static", expected=Expected(0.0, 0.1 + 0.2, 1 / 3))),
            ("s", NOTHING_LESS),
        )
    ),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_steps_come_back(body: Body) -> None:
    step = Step(Position(3, 17), 1_700_000_000_000, body)
    key, value = encode_step(step, StepResult(step.position, now_ms=None, idle=frozenset({1})))
    record = decode_step(value)
    assert key == b"3-17"
    assert record.step() == step
    assert (record.now_ms, record.idle) == (None, frozenset({1}))


@pytest.mark.parametrize(
    "deferral",
    [
        Deferral(),
        Deferral(frozenset({"q", "r"}), 70),
        Deferral(None, 3),
        Deferral(dropped=frozenset({"q"})),
        Deferral(None, 1, frozenset({"r"})),
    ],
)
def test_what_is_written_later_comes_back(deferral: Deferral) -> None:
    step = Step(Position(3, 17), 0, Unregister(("q",)))
    _, value = encode_step(step, StepResult(step.position), (), deferral)
    assert decode_step(value).deferral == deferral


def test_records_are_named_not_carried() -> None:
    nothing = Batch.empty(STREAM.schema)
    empty = Records(SOURCE, nothing, {0: 12}, frozenset({0}), complete_from_ms=3, unreadable=2)
    step = Step(Position(1, 1), 5, empty)
    record = decode_step(encode_step(step, StepResult(step.position, 4), [Range(0, 10, 11, 2)])[1])
    assert record.body == RecordsNamed(SOURCE, (Range(0, 10, 11, 2),), {0: 12}, frozenset({0}), 0, 3)
    assert record.step(empty.batch) == step
    with pytest.raises(JournalUnreadable, match="now none"):
        record.step()


def test_grants_are_in_the_records_of_steps() -> None:
    nothing = Batch.empty(STREAM.schema)
    step = Step(Position(1, 1), 5, Records(SOURCE, nothing, {0: 12}, grant=4_096))
    value = encode_step(step, StepResult(step.position))[1]
    assert orjson.loads(value)["grant"] == 4_096
    assert decode_step(value).step(nothing) == step
    without = encode_step(replace(step, body=Records(SOURCE, nothing, {0: 12})), StepResult(step.position))[1]
    assert b"grant" not in without
    assert decode_step(without).step(nothing).body == Records(SOURCE, nothing, {0: 12})


GOLDEN = {
    "grant": b'{"v":8,"epoch":1,"sequence":2,"clock_ms":5,"now_ms":null,"idle":[],"kind":"heartbeat",'
    b'"source":"orders","lagging":[1],"grant":250}',
    "create": b'{"v":8,"epoch":1,"sequence":2,"clock_ms":5,"now_ms":null,"idle":[],"kind":"create_summary",'
    b'"sql":"CREATE SUMMARY popular","summary":{"name":"popular","stream":"orders","attribute":"k",'
    b'"granularity_ms":10000,"rate":4,"depth":3,"settings":{"kind":"histogram","sketch_depth":5,'
    b'"sketch_width":64,"buckets":16,"bucket_function":"range","theta":0.7,"zone_length_max_ms":1500,'
    b'"zone_rows_min":64}}}',
    "alter": b'{"v":8,"epoch":1,"sequence":2,"clock_ms":5,"now_ms":null,"idle":[],"kind":"alter_summary",'
    b'"name":"popular","settings":{"kind":"count_sketch","sketch_depth":5,"sketch_width":64,"buckets":16,'
    b'"bucket_function":"hash","theta":0.25,"zone_length_max_ms":null,"zone_rows_min":64}}',
    "drop": b'{"v":8,"epoch":1,"sequence":2,"clock_ms":5,"now_ms":null,"idle":[],"kind":"drop_summary",'
    b'"name":"popular","forced":true}',
}
GOLDEN_BODIES: dict[str, Body] = {
    "grant": Heartbeat(SOURCE, frozenset({1}), grant=250),
    "create": CreateSummary(SUMMARY, "CREATE SUMMARY popular"),
    "alter": AlterSummary("popular", SummarySettings(theta=0.25)),
    "drop": DropSummary("popular", forced=True),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_steps_of_summaries_and_grants_keep_their_bytes(kind: str) -> None:
    step = Step(Position(1, 2), 5, GOLDEN_BODIES[kind])
    assert encode_step(step, StepResult(step.position))[1] == GOLDEN[kind]
    assert decode_step(GOLDEN[kind]).step() == step


def test_steps_of_older_versions_are_decoded_as_they_were() -> None:
    body = Records(SOURCE, Batch.empty(STREAM.schema), {0: 12})
    step = Step(Position(1, 1), 5, body)
    value = encode_step(step, StepResult(step.position, 4), [Range(0, 10, 11, 2)])[1]
    for version, exact in ((4, True), (VERSION, False)):
        named = decode_step(orjson.dumps(orjson.loads(value) | {"v": version})).body
        assert isinstance(named, RecordsNamed)
        assert named.exact == exact
    near = b'{"At": 1, "N": 3}'
    seconds = b'{"at": 1700000000, "n": 4}'
    given = [0, 0], [0, 1], [1_700_000_000_000] * 2
    old = decode(STREAM, [near, seconds], *given, exact=True)
    assert ([one.place for one in old.bad], old.batch.offset.tolist()) == ([0], [1])
    new = decode(STREAM, [near, seconds], *given)
    assert ([one.place for one in new.bad], new.batch.offset.tolist()) == ([1], [0])


def test_rows_of_the_archive_are_named_not_carried() -> None:
    rows = Batch.empty(STREAM.schema)
    named = HistoryNamed(SOURCE, 5, 90, {0: 12, 3: 4}, 0, digest_of(rows))
    step = Step(Position(1, 1), 5, Backfill(SOURCE, rows, 5, 90))
    record = decode_step(encode_step(step, StepResult(step.position, 4), named)[1])
    assert record.body == named
    named.check(rows)
    with pytest.raises(JournalUnreadable, match="archive"):
        record.step()


def test_other_rows_of_the_archive_are_told_apart() -> None:
    one = decode(STREAM, [b'{"at": 1, "n": 1}', b'{"at": 2, "n": 2}'], [0, 0], [7, 8], [1, 2]).batch
    named = HistoryNamed(SOURCE, 0, 90, {0: 12}, 2, digest_of(one))
    named.check(one)
    for other in (
        one.slice(0, 1),
        replace(one, offset=one.offset + 1),
        replace(one, timestamp=one.timestamp + 1),
    ):
        with pytest.raises(JournalUnreadable, match="2 archived rows"):
            named.check(other)


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"v": 1}', b'{"v": 1, "epoch": 1, "sequence": 2}'])
def test_what_is_no_step(value: bytes) -> None:
    with pytest.raises(JournalUnreadable):
        decode_step(value)


@pytest.mark.parametrize("version", VERSIONS_READ)
def test_pauses_of_earlier_versions_took_answers_back(version: int) -> None:
    step = Step(Position(1, 1), 0, Register((Registration("q", "SELECT 1", options={"paused": "true"}),)))
    _, value = encode_step(step, StepResult(step.position))
    body = decode_step(orjson.dumps({**orjson.loads(value), "v": version})).body
    assert isinstance(body, Register)
    assert body.takes_back == (version < 6)


def test_a_later_version_is_refused() -> None:
    key, value = encode_step(Step(Position(1, 1), 0, DropSource(SOURCE)), StepResult(Position(1, 1)))
    later = orjson.dumps({**orjson.loads(value), "v": VERSION + 1})
    with pytest.raises(JournalUnreadable, match=f"version {VERSION + 1}") as caught:
        decode_step(later)
    assert "later" in str(caught.value.hint)
    assert key


def test_the_first_version_is_read() -> None:
    step = Step(Position(1, 1), 0, Unregister(("q",)))
    _, value = encode_step(step, StepResult(step.position))
    assert decode_step(orjson.dumps({**orjson.loads(value), "v": 1})).step() == step


def test_a_registration_with_a_tolerance_is_read_without_it() -> None:
    step = Step(Position(1, 1), 0, Register((Registration("q", "SELECT 1"),)))
    _, value = encode_step(step, StepResult(step.position))
    earlier = value.replace(b'"query_id":"q",', b'"query_id":"q","tolerance":0.0,')
    assert earlier != value
    assert decode_step(earlier).step() == step


def test_a_batch_is_read_again_as_it_was(kafka: str, service_id: str) -> None:
    """Records with bad ones among them, of two partitions and with transaction markers, as several steps."""
    admin, steps_topic = Admin(settings(kafka)), f"{service_id}-steps"
    stream = replace(STREAM, topic=service_id)
    admin.ensure_source_topic(service_id, 2)
    admin.ensure_source_topic(steps_topic, 2)
    owner = TransactionalProducer(settings(kafka), service_id)
    for part in range(4):
        with owner.transaction() as transaction:
            for n in range(part * 100, part * 100 + 100):
                text = b'{"at":%d,"n":%d,"k":"k%d","d":%d.5}' % (n, n, n % 7, n)
                transaction.send(service_id, b"bad" if n % 10 == 3 else text, partition=n % 2)
    consumer = BatchConsumer(settings(kafka))
    consumer.add(service_id, {0: -1, 1: -1})
    batches: list[Batch] = []
    made: list[Step] = []

    def apply() -> bool:
        for polled in consumer.poll(37, 0.05):
            if not len(polled):
                continue
            decoded = decode(stream, polled.values, polled.partition, polled.offset, polled.append_ms)
            body = Records(SOURCE, decoded.batch, polled.next_offsets, polled.lagging)
            step = Step(Position(1, len(made) + 1), 9, body)
            key, value = encode_step(step, StepResult(step.position, 3), polled.ranges)
            with owner.transaction() as transaction:
                transaction.send(steps_topic, value, key, partition=1)
            made.append(step)
            batches.append(decoded.batch)
        return not consumer.lagging(service_id)

    wait_until(apply)
    assert sum(map(len, batches)) == 360
    found = last_record(settings(kafka), steps_topic, 1)
    assert found is not None
    assert found.position == made[-1].position
    assert last_record(settings(kafka), steps_topic, 0) is None

    reader = RangeReader(settings(kafka))
    records = list(read_steps(settings(kafka), steps_topic, 1, BEGINNING))
    assert [record.position for record in records] == [step.position for step in made]
    for record, batch, step in zip(records, batches, made, strict=True):
        assert isinstance(record.body, RecordsNamed)
        again = reader.read(stream, record.body)
        assert again.to_arrow().equals(batch.to_arrow())
        assert again.partition.tolist() == batch.partition.tolist()
        assert again.offset.tolist() == batch.offset.tolist()
        assert again.timestamp.tolist() == batch.timestamp.tolist()
        replayed = record.step(again).body
        assert isinstance(replayed, Records)
        assert isinstance(step.body, Records)
        assert replayed.next_offsets == step.body.next_offsets
        assert replayed.lagging == step.body.lagging
    later = list(read_steps(settings(kafka), steps_topic, 1, made[2].position))
    assert [record.position for record in later] == [step.position for step in made[3:]]
    assert list(read_steps(settings(kafka), steps_topic, 0, BEGINNING)) == []

    # Back to an earlier range, and to one that says more than there is.
    assert isinstance(records[0].body, RecordsNamed)
    first = records[0].body
    assert reader.read(stream, first).offset.tolist() == batches[0].offset.tolist()
    one_more = replace(first.ranges[0], count=first.ranges[0].count + 1)
    with pytest.raises(OffsetLost) as caught:
        reader.read(stream, replace(first, ranges=(one_more,)))
    assert "1 records" in str(caught.value.hint)
    reader.close()
    consumer.close()
    owner.close()


def test_a_gap_is_no_journal(kafka: str, service_id: str) -> None:
    Admin(settings(kafka)).ensure_source_topic(service_id)
    producer = BatchProducer(settings(kafka))
    for sequence in (1, 2, 4):
        position = Position(1, sequence)
        key, value = encode_step(Step(position, 0, DropSource(SOURCE)), StepResult(position))
        producer.send(service_id, value, key)
    producer.close()
    assert len(list(read_steps(settings(kafka), service_id, 0, Position(1, 3)))) == 1
    with pytest.raises(JournalUnreadable, match="after step 2 of shard 0 comes step 4"):
        list(read_steps(settings(kafka), service_id, 0, Position(1, 1)))


def test_the_place_in_a_long_journal_is_searched(
    kafka: str, service_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.journal_reader.SCANNED_STEPS", 8)
    Admin(settings(kafka)).ensure_source_topic(service_id)
    owner = TransactionalProducer(settings(kafka), service_id)
    for first in range(1, 301, 10):
        with owner.transaction() as transaction:
            for sequence in range(first, first + 10):
                position = Position(first // 100, sequence)
                key, value = encode_step(Step(position, 0, DropSource(SOURCE)), StepResult(position))
                transaction.send(service_id, value, key)
    for after in (0, 137, 300, 400):
        records = read_steps(settings(kafka), service_id, 0, Position(0, after))
        assert [record.position.sequence for record in records] == list(range(after + 1, 301))
    found = last_record(settings(kafka), service_id, 0)
    assert found is not None
    assert found.position == Position(2, 300)
    owner.close()


def test_no_journal_at_all(kafka: str, service_id: str) -> None:
    with pytest.raises(TopicMissing):
        list(read_steps(settings(kafka), service_id, 0, BEGINNING))
