"""The programs under examples/, run as they are."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import tureen
from tests.client.conftest import Broker
from tests.kafka import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(broker: Broker, name: str, *args: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        env=broker.environment | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_is_run_here_or_sends_what_the_tour_reads() -> None:
    """Fails for a new example, to say that it wants a test."""
    tested = set(re.findall(r"\"(\w+\.py)\"", Path(__file__).read_text()))
    assert {one.name for one in EXAMPLES.glob("*.py")} == tested


def test_watch_list_per_user(broker: Broker) -> None:
    assert example(broker, "watch_list_per_user.py").splitlines() == [
        "ada: ACME at 9.5, ACME at 8.0",
        "bob: INIT at 95.0",
        "eve: INIT at 55.0",
    ]


def test_come_back_later(broker: Broker, tmp_path: Path) -> None:
    kept = tmp_path / "alarms.handle"
    assert "registered" in example(broker, "come_back_later.py", str(kept))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    wait_until(
        lambda: "2 alarms" in example(broker, "come_back_later.py", str(kept)), what="the alarms are in"
    )


def test_by_topic_alone(broker: Broker) -> None:
    assert example(broker, "by_topic_alone.py") == "2 failed logins: root, root\n"


def test_alerts_per_user(broker: Broker) -> None:
    told = example(broker, "alerts_per_user.py", USERS="300").splitlines()
    assert told[0].startswith("300 alerts are running")
    assert re.fullmatch(r"3 users are online and were notified \d+ times", told[1])
    assert re.fullmatch(r"user \d+, notified of payments above \d+: \w+ \d+.*", told[2])
    assert told[3].endswith("the user's own among them")


def test_live_dashboard(broker: Broker) -> None:
    shown = example(broker, "live_dashboard.py", "2")
    for word in ("the last ten seconds", "/checkout", "each second", "second", "requests"):
        assert word in shown
    assert int(shown.splitlines()[-1].split()[0]) > 6


def test_offline_client(broker: Broker, client: tureen.Client, tmp_path: Path) -> None:
    kept = tmp_path / "deliveries.json"
    assert example(broker, "offline_client.py", str(kept)) == "0 parcels; going offline\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    handle = json.loads(kept.read_text())["handle"]
    wait_until(lambda: {"parcel": 1, "stop": "3 door"} in client.snapshot(handle).rows(), what="the parcels")
    back = example(broker, "offline_client.py", str(kept))
    assert "came" in back
    assert back.endswith("parcel 1: 3 door\nparcel 2: 1 depot\n")

    # Registered anew under its handle it is another query, of whose changes the old position knows nothing.
    client.unregister(handle)
    wait_until(lambda: tureen.query_id(handle) not in {one.query_id for one in client.queries()}, what="gone")
    client.register("SELECT parcel, MAX(stop) AS stop FROM parcels GROUP BY parcel", handle)
    anew = example(broker, "offline_client.py", str(kept))
    assert anew.startswith("away for longer than changes are kept")
    assert anew.endswith("parcel 1: 3 door\nparcel 2: 1 depot\n")


def test_feature_store(broker: Broker) -> None:
    told = example(broker, "feature_store.py", PURCHASES="3000").splitlines()
    assert "customers are known" in told[0]
    assert "payments scored" in told[1]
    assert "it equals the snapshot" in told[2]


def test_what_the_tour_reads(broker: Broker, client: tureen.Client) -> None:
    topic = f"tour_{tureen.new_handle()[:8]}"
    client.create(f"CREATE STREAM {topic} (id BIGINT) WITH (topic = '{topic}')")
    assert "20,000 orders" in example(broker, "orders.py", ORDERS_TOPIC=topic)
    assert "1,000 customers" in example(broker, "customers.py", CUSTOMERS_TOPIC=topic)


def run_orders(
    bootstrap: str, *args: str, name: str = "orders.py", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        env={**os.environ, "TUREEN_KAFKA__BOOTSTRAP_SERVERS": bootstrap} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize(
    "name", ["orders.py", "live_dashboard.py", "come_back_later.py", "offline_client.py"]
)
def test_those_with_arguments_tell_them(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage:" in done.stdout


def test_orders_say_that_kafka_or_the_topic_is_missing_or_why_it_refuses(kafka: str, service_id: str) -> None:
    away = run_orders("127.0.0.1:1", "1", ORDERS_WAIT_S="1")
    assert away.returncode == 1
    assert "No Kafka answers at 127.0.0.1:1" in away.stderr
    for name, source in (("orders", "stream"), ("customers", "table")):
        missing = run_orders(kafka, name=f"{name}.py", ORDERS_TOPIC=service_id, CUSTOMERS_TOPIC=service_id)
        assert missing.returncode == 1
        assert missing.stderr == f"There is no topic {service_id}: create the {source} first.\n"
    topic = NewTopic(service_id, 1, 1, config={"max.message.bytes": "100"})
    admin = AdminClient({"bootstrap.servers": kafka})
    (made,) = admin.create_topics([topic]).values()
    made.result(20)
    refused = run_orders(kafka, "7", ORDERS_TOPIC=service_id)
    assert refused.returncode == 1
    assert re.fullmatch(rf"The Kafka at {kafka} did not take 7 of 7 orders: .*large.*\n", refused.stderr)


def test_more_orders_follow_those_that_are_there(kafka: str, service_id: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    (made,) = admin.create_topics([NewTopic(service_id, 1, 1)]).values()
    made.result(20)
    for count in ([], ["2"], ["2"]):
        done = run_orders(kafka, *count, ORDERS_TOPIC=service_id)
        assert done.returncode == 0, done.stderr
    reader = Consumer({"bootstrap.servers": kafka, "group.id": service_id})
    reader.assign([TopicPartition(service_id, 0, 19_999)])
    orders = [json.loads(record.value() or b"") for record in reader.consume(5, timeout=60)]
    reader.close()
    assert [order["id"] for order in orders] == [19_999, 20_000, 20_001, 20_002, 20_003]
    assert orders == sorted(orders, key=lambda order: order["at"])
