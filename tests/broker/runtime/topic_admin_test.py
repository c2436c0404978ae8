"""How many shards a service has: as set, else as many as its topics, else one for each core."""

from __future__ import annotations

from broker.base.settings import load
from broker.runtime.topic_admin import shards
from topics.admin import Admin, Policies
from tureen.protocol import TopicNames


def test_a_service_keeps_the_shards_of_its_topics(kafka: str, service_id: str) -> None:
    admin = Admin({"bootstrap.servers": kafka})
    new = load(service_id=service_id)
    assert shards(admin, new) == new.shards
    admin.ensure_service_topics(TopicNames(service_id), Policies(shards=3))
    assert shards(admin, load(service_id=service_id)) == 3
    assert shards(admin, load(service_id=service_id, shards=5)) == 5  # which its topics then refuse
