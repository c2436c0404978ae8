"""Answers folded from result topics, as transactions write them."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client.results import PARTITIONS, Writer, key
from tests.kafka import wait_until
from tureen.errors import KafkaUnavailable, NotSupported, TopicMissing
from tureen.results import ResultFold, ResultTopic

OWN = zlib.crc32(b"q") % PARTITIONS


@pytest.fixture
def writer(kafka: str, service_id: str) -> Iterator[Writer]:
    return Writer(kafka, service_id)


def row(city: str, n: int) -> dict[str, Any]:
    return {"city": city, "n": n}


def test_rows_by_key_as_committed(writer: Writer) -> None:
    topic = writer.topic("results")
    writer.commit(
        topic,
        [(key("Bern"), row("Bern", 1)), (key("Zug"), row("Zug", 1)), (key("Bern", "r"), row("Bern", 9))],
        partition=OWN,
    )
    with ResultTopic(writer.settings, "q", service_id=writer.service_id) as results:
        assert results.read()
        assert results.rows() == [row("Bern", 1), row("Zug", 1)]
        assert (results.position, results.at_ms) == ("1-7", 1_000)

        writer.producer.begin_transaction()
        writer.write(topic, [(key("Bern"), row("Bern", 2)), (key("Zug"), None)], partition=OWN)
        assert results.read()
        assert results.rows() == [row("Bern", 1), row("Zug", 1)]  # not committed yet
        writer.producer.abort_transaction(60)
        writer.commit(topic, [(key("Bern"), row("Bern", 3)), (key("Zug"), None)], partition=OWN)
        wait_until(lambda: results.poll(0.1), what="what was committed")
        assert results.rows() == results.to_arrow().to_pylist() == [row("Bern", 3)]


def test_a_step_over_several_partitions_is_waited_for(writer: Writer) -> None:
    topic = writer.topic("results.mine")
    writer.commit(topic, [(key(city), row(city, 1)) for city in "abc"])
    with ResultTopic(writer.settings, "q", into="mine", service_id=writer.service_id) as results:
        assert results.read()
        writer.producer.begin_transaction()
        writer.write(topic, [(key(city), row(city, 2)) for city in "abc"])
        assert not results.read(0.3)
        assert sorted(map(str, results.rows())) == [str(row(city, 1)) for city in "abc"]
        writer.producer.commit_transaction(60)
        assert results.read()
        assert sorted(map(str, results.rows())) == [str(row(city, 2)) for city in "abc"]


def test_debezium_and_diff(writer: Writer) -> None:
    changed = writer.topic("results.changed")
    writer.commit(
        changed,
        [
            (key("Bern"), {"before": None, "after": row("Bern", 1), "op": "c"}),
            (key("Zug"), {"before": None, "after": row("Zug", 1), "op": "r"}),
            (key("Bern"), {"before": row("Bern", 1), "after": row("Bern", 2), "op": "u"}),
            (key("Zug"), {"before": row("Zug", 1), "after": None, "op": "d"}),
        ],
        partition=0,
    )
    with ResultTopic(
        writer.settings, "q", into="changed", form="debezium", service_id=writer.service_id
    ) as it:
        assert it.read()
        assert it.rows() == [row("Bern", 2)]

    weighed = writer.topic("results.weighed")
    told = [(1, row("Bern", 1)), (1, {"n": 1, "city": "Bern"}), (1, row("Zug", 1)), (-1, row("Zug", 1))]
    keyed = {"query": "q", "row": "h"}
    writer.commit(weighed, [(keyed, {"row": one, "weight": weight}) for weight, one in told])
    with ResultTopic(writer.settings, "q", into="weighed", form="diff", service_id=writer.service_id) as it:
        assert it.read()
        assert it.rows() == [row("Bern", 1), row("Bern", 1)] or it.rows() == 2 * [{"n": 1, "city": "Bern"}]
    with (
        ResultTopic(
            writer.settings, "q", into="weighed", form="debezium", service_id=writer.service_id
        ) as it,
        pytest.raises(NotSupported, match="debezium"),
    ):
        it.read()


def test_nothing_there(kafka: str, service_id: str) -> None:
    with (
        ResultTopic({"bootstrap.servers": kafka}, "q", service_id=service_id) as results,
        pytest.raises(TopicMissing),
    ):
        results.read()
    nobody = {"bootstrap.servers": "127.0.0.1:1", "socket.connection.setup.timeout.ms": 1_000}
    with ResultTopic(nobody, "q") as results, pytest.raises(KafkaUnavailable):
        results.read(1.0)


def test_reading_again_and_again_says_nothing_beside_it(writer: Writer) -> None:
    topic = writer.topic("results")
    writer.commit(topic, [(key("Bern"), row("Bern", 1))], partition=OWN)
    program = (
        "import sys; from tureen.results import ResultTopic\n"
        "with ResultTopic({'bootstrap.servers': sys.argv[1]}, 'q', service_id=sys.argv[2]) as results:\n"
        "  print([results.read() for _ in range(20)].count(True), results.rows())"
    )
    kafka = writer.settings["bootstrap.servers"]
    done = subprocess.run(
        [sys.executable, "-c", program, kafka, writer.service_id], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("20 [{'city': 'Bern', 'n': 1}]\n", "")


@pytest.mark.parametrize(
    ("form", "operator", "values", "told"),
    [
        ("upsert", "dstream", [row("Bern", 1)], [(-1, row("Bern", 1))]),
        ("upsert", "rstream", [row("Bern", 1)], [(1, row("Bern", 1))]),
        ("diff", "dstream", [{"row": row("Bern", 1), "weight": -1}], [(-1, row("Bern", 1))]),
        ("debezium", "dstream", [{"before": row("Zug", 1), "after": None}], [(-1, row("Zug", 1))]),
        ("diff", "changes", [{"row": row("Zug", 1), "weight": 2}], [(1, row("Zug", 1)), (1, row("Zug", 1))]),
        ("upsert", "changes", [row("Bern", 1), row("Bern", 1), None, None],
         [(1, row("Bern", 1)), (-1, row("Bern", 1))]),
    ],
)  # fmt: skip
def test_what_records_change(form: Any, operator: Any, values: list[Any], told: list[Any]) -> None:
    fold = ResultFold("q", form, operator)
    found = [
        fold.changed(json.dumps(key("Bern")).encode(), None if one is None else json.dumps(one).encode())
        for one in values
    ]
    assert [change for part in found for change in part or ()] == told
    assert fold.changed(json.dumps(key("Bern", "r")).encode(), None) is None
