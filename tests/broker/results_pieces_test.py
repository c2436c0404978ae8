"""Answers that do not fit one transaction are written in several: nothing doubled, nothing lost, in order."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.model.step import BEGINNING, Register, Written
from tests.broker.conftest import stream_sql
from tests.broker.folding import compare, folded, of_query, position_of
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from topics.journal import RecordsNamed, StepRecord
from topics.journal_reader import read_steps
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT, v BIGINT, ts TIMESTAMP"
PIECE = 1_000
CHANGES_MAX = 20_000
SETTINGS = {"SHARDS": 1, "TRANSACTION_RECORDS_MAX": PIECE, "SAVE_INTERVAL_MS": 100}
PAIRS = "SELECT a.id, b.id AS b FROM {s} {w} AS a JOIN {s} {w} AS b ON a.v = b.v EMIT CHANGES"


@pytest.fixture(scope="module")
def one(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory: Path = tmp_path_factory.mktemp("pieces")
    name = f"p{directory.stat().st_ino}"
    with broker(kafka, directory / "data", name, CHANGES_MAX=CHANGES_MAX, **SETTINGS) as made:
        yield made


def send(one: Broker, name: str, count: int, start: int = 0) -> None:
    """Rows of three values, all of which but the last become visible."""
    one.send(name, [{"id": i, "v": i % 3, "ts": BASE_MS + i} for i in range(start, start + count)])
    now_ms = BASE_MS + start + count - 2
    wait_until(lambda: one.source(name)["now_ms"] == now_ms, what=f"NOW of {name}")


def pairs(rows: int) -> int:
    """How many pairs of so many visible rows there are."""
    return sum(count * count for count in Counter(i % 3 for i in range(rows)).values())


def journal(one: Broker) -> list[StepRecord]:
    return list(read_steps({"bootstrap.servers": one.bootstrap}, one.names.steps, 0, BEGINNING))


def waiting(one: Broker, handle: str) -> int:
    """How many changes are still to be written."""
    count: int = one.http.get(f"/queries/{handle}").json()["output"]["waiting"]
    return count


def told(one: Broker, handle: str) -> list[Any]:
    topic = one.http.get(f"/queries/{handle}").json()["output"]["topic"]
    return of_query(one.records(topic), handle)


def test_a_first_answer_in_several_transactions(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    send(one, name, 140)
    select = PAIRS.format(s=name, w="[RANGE 1 HOUR]")
    handles = {
        form: one.register(f"{select} INTO {name}_{form} WITH (format = '{form}')")
        for form in ("upsert", "debezium", "diff")
    }
    slim = one.register(f"SELECT id FROM {name} EMIT CHANGES")
    send(one, name, 30, 140)
    for form, handle in handles.items():
        wait_until(lambda: waiting(one, handle) == 0, what="all is written")  # noqa: B023
        rows = compare(one, handle, one.names.results_into(f"{name}_{form}"), form)
        assert rows.total() == pairs(169)
        records = told(one, handle)
        for partition in {record.partition() for record in records}:
            mine = [position_of(record) for record in records if record.partition() == partition]
            assert mine == sorted(mine)
    assert sorted(json.loads(record.value())["id"] for record in told(one, slim)) == list(range(169))
    steps = journal(one)
    ids = {query_id(handle) for handle in handles.values()}
    pieces = [step for step in steps if isinstance(step.body, Written)]
    assert {each.query_id for step in pieces for each in step.body.output} == ids
    assert len(pieces) >= 3 * pairs(139) // (2 * PIECE)


def test_one_query_that_would_write_too_much_ends_before_it_writes(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    send(one, name, 300)
    slim = one.register(f"SELECT id FROM {name} EMIT CHANGES")
    wide = new_handle()
    reply = one.http.post(
        "/queries", json={"sql": PAIRS.format(s=name, w="") + f" INTO {name}", "handle": wide}
    )
    assert reply.status_code < 500
    wait_until(lambda: one.state(wide) == "ERROR", what="it ends")
    error = one.http.get(f"/queries/{wide}").json()["error"]
    assert error["code"] == "changes_broken"
    assert "changes_max is 20,000" in error["message"]
    assert one.records(one.names.results_into(name)) == []
    send(one, name, 10, 300)
    wait_until(lambda: len(told(one, slim)) == 309, what="others go on")
    assert one.readiness()[0] == 200


def test_what_waits_counts_with_what_comes(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    send(one, name, 220)
    wide = one.register(PAIRS.format(s=name, w=""))
    assert pairs(219) < 20_000 < pairs(1_200)
    one.send(name, [{"id": i, "v": i % 3, "ts": BASE_MS + i} for i in range(220, 1_200)])
    wait_until(lambda: one.state(wide) == "ERROR", what="it ends")
    numbers = Counter(record.key() for record in of_query(one.records(one.names.results_log), wide))
    assert set(numbers.values()) <= {1}
    assert one.readiness()[0] == 200


def test_first_answers_that_wait_keep_no_rows_waiting(one: Broker, name: str) -> None:
    large, quiet = f"{name}_large", f"{name}_quiet"
    one.create(stream_sql(large, columns=COLUMNS))
    one.create(stream_sql(quiet, columns="id BIGINT, ts TIMESTAMP"))
    send(one, large, 220)
    slim = one.register(f"SELECT id FROM {quiet} EMIT CHANGES INTO {quiet}")
    sent: list[int] = []
    over = threading.Event()

    def feed() -> None:
        while not over.wait(0.005):
            one.send(quiet, [{"id": len(sent), "ts": BASE_MS + len(sent)}])
            sent.append(len(sent))

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        sql = PAIRS.format(s=large, w="") + f" INTO {large} WITH (format = 'diff')"
        handles = [new_handle() for _ in range(5)]
        lines = [json.dumps({"sql": sql, "handle": handle}) for handle in handles]
        headers = {"Content-Type": "application/x-ndjson"}
        one.http.post("/queries", content="\n".join(lines), headers=headers).raise_for_status()
        wait_until(lambda: {one.state(handle) for handle in handles} == {"RUNNING"}, what="they stand")
        wait_until(lambda: not any(waiting(one, handle) for handle in handles), what="all is written")
    finally:
        over.set()
        feeding.join()
    assert pairs(219) < CHANGES_MAX < 2 * CHANGES_MAX < len(handles) * pairs(219)
    left = dict.fromkeys(map(query_id, handles), 0)
    most = 0
    for step in journal(one):
        match step.body:
            case Register(registrations):
                left |= {each.query_id: pairs(219) for each in registrations if each.query_id in left}
            case Written(output):
                left |= {each.query_id: pairs(219) - each.rows for each in output if each.query_id in left}
            case RecordsNamed(source=source) if source == quiet:
                most = max(most, sum(left.values()))
    assert most > 2 * CHANGES_MAX, "no rows were taken up while so many changes waited"
    wait_until(lambda: len(told(one, slim)) == len(sent) - 1, what="all but the last are told")
    assert sorted(json.loads(record.value())["id"] for record in told(one, slim)) == sent[:-1]
    records = one.records(one.names.results_into(large))
    for handle in handles:
        rows = folded(of_query(records, handle), "diff")
        assert rows.total() == len(rows) == pairs(219)


@pytest.mark.slow
def test_unregistered_while_it_is_written_all_is_taken_back(one: Broker, name: str) -> None:
    one.create(stream_sql(name, columns=COLUMNS))
    send(one, name, 230)
    handles = {}
    for form in ("upsert", "debezium", "diff"):
        select = PAIRS.format(s=name, w="[RANGE 1 HOUR]")
        handles[form] = one.register(f"{select} INTO {name}_{form} WITH (format = '{form}')")
    for handle in handles.values():
        one.http.delete(f"/queries/{handle}").raise_for_status()
    for form, handle in handles.items():
        topic = one.names.results_into(f"{name}_{form}")

        def ended(topic: str = topic, handle: str = handle) -> bool:
            records = of_query(one.records(topic), handle)
            ends = [r for r in records if dict(r.headers()).get("tureen-occasion") == b"end"]
            return len(ends) == pairs(229)

        wait_until(ended, what="it is taken back")
        assert folded(of_query(one.records(topic), handle), form) == Counter()


@pytest.mark.slow
def test_killed_in_the_middle_of_a_first_answer(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, **SETTINGS).start()
    one.create(stream_sql(name, columns=COLUMNS))
    send(one, name, 250)
    slim = one.register(f"SELECT id FROM {name} EMIT CHANGES")
    forms = {"upsert": "", "diff": "[RANGE 1 HOUR]"}
    handles = {
        form: one.register(
            f"{PAIRS.format(s=name, w=window)} INTO {name}_{form} WITH (format = '{form}')", new_handle()
        )
        for form, window in forms.items()
    }
    topics = [one.names.results_into(f"{name}_{form}") for form in forms]

    def written() -> int:
        """Offsets, those of markers among them: fewer bytes to read than the records."""
        return sum(sum(one.admin.end_offsets(topic).values()) for topic in topics)

    for _ in range(2):
        before = written()
        wait_until(lambda before=before: written() > before, what="a further piece")
        one.kill()
        one.launch()
    one.await_ready()
    send(one, name, 30, 250)
    wait_until(lambda: not any(waiting(one, handle) for handle in handles.values()), what="all is written")
    compare(one, handles["diff"], one.names.results_into(f"{name}_diff"), "diff")
    wait_until(lambda: len(told(one, handles["upsert"])) >= pairs(279), what="all is seen")
    records = told(one, handles["upsert"])
    assert len(records) == pairs(279)
    assert len({record.key() for record in records}) == len(records)
    assert len({record.value() for record in records}) == len(records)
    assert sorted(json.loads(record.value())["id"] for record in told(one, slim)) == list(range(279))
    steps = journal(one)
    owners = {step.position.epoch for step in steps if isinstance(step.body, Written)}
    assert len(owners) > 1, "one owner alone wrote it"
