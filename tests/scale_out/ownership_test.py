"""Whose a service is, on a real Kafka: one run at a time, and no checkpoint behind another's back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import pytest
from confluent_kafka import Consumer

from spark_jobs.errors import CheckpointMismatch, ServiceInUse
from spark_jobs.scale_out.ownership import WAIT_S, Claim, Ownership
from tests.kafka import wait_until
from topics.admin import Admin
from tureen.protocol import TopicNames


class Service:
    """Its topics, and runs that come and go."""

    def __init__(self, kafka: str, service_id: str) -> None:
        self.kafka = {"bootstrap.servers": kafka}
        self.names = TopicNames(service_id)
        self.admin = Admin(self.kafka)
        self.admin.ensure_service_topics(self.names)

    def begin(
        self, checkpoint: str, name: str = "main", *, fresh: bool = True, wait_s: float = WAIT_S
    ) -> Ownership:
        return Ownership(
            self.kafka,
            self.admin,
            self.names,
            Claim(name, checkpoint, path=f"/lake/{checkpoint}", fresh=fresh, epoch=1),
            wait_s,
        )

    @contextmanager
    def broker(self) -> Iterator[None]:
        consumer = Consumer({**self.kafka, "group.id": self.names.control_group})
        consumer.subscribe([self.names.queries])
        while not consumer.assignment():
            consumer.poll(0.1)
        yield
        consumer.close()


@pytest.fixture
def service(kafka: str, service_id: str) -> Service:
    return Service(kafka, service_id)


def test_a_run_is_refused_while_another_one_is_at_work(service: Service) -> None:
    first = service.begin("one")
    first.check()
    for checkpoint, name in (("two", "main"), ("two", "other")):
        with pytest.raises(ServiceInUse) as refused:
            service.begin(checkpoint, name)
        assert "the scale-out main (checkpoint one)" in str(refused.value)
        assert refused.value.hint
    first.check()
    first.close()


def test_a_checkpoint_goes_on_unless_another_did_meanwhile(service: Service) -> None:
    epochs = []
    for checkpoint, fresh in (("one", True), ("one", False), ("two", True)):  # the last is begun anew
        run = service.begin(checkpoint, fresh=fresh)
        epochs.append(run.epoch)
        run.close()
    assert epochs == [1, 2, 3], "positions go on"
    with pytest.raises(CheckpointMismatch) as refused:
        service.begin("one", fresh=False)
    assert "the scale-out main (checkpoint two) went on since" in str(refused.value)
    assert refused.value.hint
    service.begin("two", name="other", fresh=False).close()


def test_an_earlier_run_on_the_same_checkpoint_is_waited_for(service: Service) -> None:
    """Killed it is a member for a while; if it stays, it was not killed."""
    first = service.begin("one")
    with pytest.raises(ServiceInUse):
        service.begin("one", fresh=False, wait_s=0.2)
    first.check()
    ending = Timer(0.3, first.close)
    ending.start()
    service.begin("one", fresh=False).close()
    ending.join()


def test_a_run_that_was_silent_for_too_long_ends(service: Service) -> None:
    """Its membership is over, another began, and it comes back."""
    first = service.begin("one")
    first._consumer.unsubscribe()  # what the end of its session does

    def alone() -> bool:
        first._consumer.poll(0)
        return not service.admin.members(f"{service.names.service_id}.scale-out")

    wait_until(alone)
    second = service.begin("two")
    with pytest.raises(ServiceInUse):
        first.check()
    second.check()
    second.close()
    first.close()


def test_a_broker_is_found_at_the_start_and_later(service: Service) -> None:
    with service.broker(), pytest.raises(ServiceInUse, match="a broker"):
        service.begin("one")
    run = service.begin("one")
    run.check()
    with service.broker(), pytest.raises(ServiceInUse, match="a broker"):
        run.check()
    run.close()
