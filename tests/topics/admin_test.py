"""Topics are made as they must be, and refused when they are otherwise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kafka import free_ports
from topics.admin import FAILURES_MAX, Admin, Policies, TopicPolicy
from tureen.errors import KafkaUnavailable, SettingsError, TopicMissing, TopicPolicyMismatch
from tureen.protocol import TopicNames

FEW = Policies(shards=2)


@pytest.fixture
def admin(kafka: str) -> Admin:
    return Admin({"bootstrap.servers": kafka})


def test_service_topics_are_made_and_then_found(admin: Admin, service_id: str) -> None:
    names = TopicNames(service_id)
    admin.ensure_service_topics(names, FEW)
    admin.ensure_service_topics(names, FEW)
    made = admin.topics()
    assert made[names.queries] == made[names.steps] == 2
    every = [n for n in made if n.startswith(service_id)]
    assert len(every) == 8
    policies = {name: config["cleanup.policy"] for name, config in admin.configs(every).items()}
    compacted = {names.queries, names.sources, names.status, names.plans}
    assert policies == {name: "compact" if name in compacted else "delete" for name in every}
    admin.delete_topics(every)


def test_two_services_may_start_at_once(kafka: str, service_id: str) -> None:
    def ensure(_: int) -> None:
        Admin({"bootstrap.servers": kafka}).ensure_service_topics(TopicNames(service_id), FEW)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ensure, range(3)))


def test_a_wrong_cleanup_policy_is_refused(admin: Admin, service_id: str) -> None:
    names = TopicNames(service_id)
    admin.ensure([TopicPolicy(names.status, 1, {"cleanup.policy": "delete"})])
    with pytest.raises(TopicPolicyMismatch) as caught:
        admin.ensure_service_topics(names, FEW)
    facts = caught.value
    assert (facts.topic, facts.setting) == (names.status, "cleanup.policy")
    assert (facts.expected, facts.found) == ("compact", "delete")
    assert names.queries not in admin.topics()


def test_another_number_of_shards_is_refused(admin: Admin, service_id: str) -> None:
    names = TopicNames(service_id)
    admin.ensure([TopicPolicy(names.steps, 3, {"cleanup.policy": "delete"})])
    with pytest.raises(TopicPolicyMismatch, match="partitions=3, it must be 2"):
        admin.ensure_service_topics(names, FEW)


def test_source_topics(admin: Admin, service_id: str) -> None:
    assert admin.ensure_source_topic(f"{service_id}-a", 3) == 3
    assert admin.ensure_source_topic(f"{service_id}-a", 5) == 3
    with pytest.raises(TopicPolicyMismatch, match="LogAppendTime"):
        admin.ensure_source_topic(f"{service_id}-a", 3, arrival_time=True)
    assert admin.ensure_source_topic(f"{service_id}-b", 2, arrival_time=True) == 2
    assert admin.ensure_source_topic(f"{service_id}-b", 2, arrival_time=True) == 2
    assert (
        admin.begin_offsets(f"{service_id}-a") == admin.end_offsets(f"{service_id}-a") == {0: 0, 1: 0, 2: 0}
    )


def test_topics_of_tables_are_compacted(admin: Admin, service_id: str) -> None:
    topic = f"{service_id}-table"
    assert admin.ensure_source_topic(topic, 2, table=True) == 2
    assert admin.ensure_source_topic(topic, table=True, arrival_time=False) == 2
    config = admin.configs([topic])[topic]
    assert config["cleanup.policy"] == "compact"
    assert int(config["delete.retention.ms"]) == Policies().steps_retention_ms
    admin.ensure_source_topic(f"{service_id}-stream")
    with pytest.raises(TopicPolicyMismatch) as refused:
        admin.ensure_source_topic(f"{service_id}-stream", table=True)
    assert (refused.value.setting, refused.value.expected) == ("cleanup.policy", "compact")


def test_all_that_is_wrong_is_told_at_once(admin: Admin, service_id: str) -> None:
    config = {"cleanup.policy": "delete", "max.message.bytes": "1000"}
    admin.ensure([TopicPolicy(service_id, 1, config, ())])
    wanted = TopicPolicy(service_id, 1, {"cleanup.policy": "compact"}, least={"max.message.bytes": 5_000})
    with pytest.raises(TopicPolicyMismatch) as refused:
        admin.ensure([wanted])
    told = (
        "has cleanup.policy=delete, it must be compact; and max.message.bytes=1000, it must be at least 5000"
    )
    assert told in refused.value.message
    command = f"tureen topic set {service_id} cleanup.policy=compact max.message.bytes=5000;"
    assert command in (refused.value.hint or "")
    admin.set_configs(service_id, {"cleanup.policy": "compact", "max.message.bytes": "5000"})
    admin.ensure([wanted])
    with pytest.raises(SettingsError, match="Kafka refuses it"):
        admin.set_configs(service_id, {"cleanup.policy": "burn"})
    with pytest.raises(TopicMissing):
        admin.set_configs(f"{service_id}-none", {"cleanup.policy": "compact"})


def test_a_topic_made_again_is_another_one(admin: Admin, service_id: str) -> None:
    admin.ensure_source_topic(service_id)
    first = admin.topic_id(service_id)
    admin.delete_topics([service_id, f"{service_id}-never"])
    with pytest.raises(TopicMissing):
        admin.topic_id(service_id)
    with pytest.raises(TopicMissing):
        admin.partitions(service_id)
    admin.ensure_source_topic(service_id)
    assert admin.topic_id(service_id) != first


def test_nobody_answers() -> None:
    with pytest.raises(KafkaUnavailable) as caught:
        Admin({"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}, timeout_s=0.5).topics()
    assert "tureen up" in str(caught.value.hint)


def test_after_some_calls_without_an_answer_a_new_client_asks() -> None:
    (port,) = free_ports(1)
    admin = Admin({"bootstrap.servers": f"127.0.0.1:{port}"}, timeout_s=0.05)
    first = admin._client
    for call in range(FAILURES_MAX):
        assert admin._client is first, call
        with pytest.raises(KafkaUnavailable):
            admin.topics()
    assert admin._client is not first
