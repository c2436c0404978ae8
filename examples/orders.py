"""Twenty thousand orders for the topic `orders`: something to query while getting to know Tureen.

python examples/orders.py
python examples/orders.py 10       # later: the next ten, in the order of time
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

KAFKA = os.environ.get("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:19092")
TOPIC = os.environ.get("ORDERS_TOPIC", "orders")
WAIT_S = float(os.environ.get("ORDERS_WAIT_S", "120"))
"""How long a Kafka may take that is starting, or busy."""
LATE = (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)

ORDERS = 20_000
BEGIN_MS = 1_748_772_000_000  # 2025-06-01 10:00 UTC
STEP_MS = 500
CITIES = ["Basel", "Bern", "Geneva", "Lausanne", "Zug", "Zurich"]
SHARES = [15, 12, 20, 10, 3, 40]


def main() -> None:
    """Send them; to an equal topic the same ones each time."""
    arguments = argparse.ArgumentParser(description=f"Send {ORDERS:,} orders to the topic {TOPIC}.")
    arguments.add_argument("more", nargs="?", type=int, default=0, help="send so many later orders instead")
    more = arguments.parse_args().more
    producer = Producer(
        {
            "bootstrap.servers": KAFKA,
            "log_level": 0,
            "message.timeout.ms": int(WAIT_S * 1_000),
            # A retry never overtakes: without it rows may come out of order, and late.
            "enable.idempotence": True,
        }
    )
    deadline = time.monotonic() + WAIT_S
    partitions = find(producer)
    begin = max(ORDERS, count(partitions)) if more else 0
    chance = random.Random(1)
    failed: list[KafkaError] = []
    for number in range(begin + (more or ORDERS)):
        (city,) = chance.choices(CITIES, SHARES)
        price = round(chance.expovariate(1 / 40), 2)
        at = BEGIN_MS + number * STEP_MS
        order = {"id": number, "customer": chance.randrange(1_000), "city": city, "price": price, "at": at}
        if number >= begin:
            producer.produce(
                TOPIC, json.dumps(order), on_delivery=lambda error, _: error and failed.append(error)
            )
            producer.poll(0)
    left = producer.flush(max(1.0, deadline - time.monotonic()))
    if left or failed:
        refused = failed[0] if failed and failed[0].code() not in LATE else None
        told = f"The Kafka at {KAFKA} did not take {left + len(failed):,} of {more or ORDERS:,} orders"
        producer.purge()  # of what is left the client would complain at the end
        producer.flush(1)
        if refused is not None:
            sys.exit(f"{told}: {refused.str()}")
        sys.exit(f"{told} in {WAIT_S:g} s. It answers, so it may be busy: `tureen doctor` looks at it.")
    print(f"{more or ORDERS:,} orders are on the topic {TOPIC}")


def find(producer: Producer) -> list[int]:
    """Wait for Kafka, which may be starting, and look for the topic; its partitions."""
    for wait_s in (min(5.0, WAIT_S), WAIT_S / 4):
        try:
            topics = producer.list_topics(timeout=wait_s).topics
            if TOPIC not in topics:
                sys.exit(f"There is no topic {TOPIC}: create the stream first.")
            return list(topics[TOPIC].partitions)
        except KafkaException:
            print(f"Kafka does not answer at {KAFKA} yet ...", file=sys.stderr)
    sys.exit(f"No Kafka answers at {KAFKA} (TUREEN_KAFKA__BOOTSTRAP_SERVERS): `tureen up` starts one.")


def count(partitions: list[int]) -> int:
    """How many records were ever sent to these partitions: orders that were sent again would be late."""
    consumer = Consumer({"bootstrap.servers": KAFKA, "group.id": "orders", "log_level": 0})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=WAIT_S)
            for number in partitions
        ]
    except KafkaException as error:
        sys.exit(f"Kafka does not tell how many records {TOPIC} has: {error.args[0].str()}")
    finally:
        consumer.close()
    return sum(end for _, end in ends)


if __name__ == "__main__":
    main()
