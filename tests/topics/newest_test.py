"""The newest records of a topic, and how far back is looked for those that are wanted."""

from __future__ import annotations

from topics.admin import Admin
from topics.newest import facts_of, look
from topics.producer import BatchProducer


def test_bytes_bound_how_far_back_is_looked_and_how_much_is_held(kafka: str, service_id: str) -> None:
    settings = {"bootstrap.servers": kafka}
    admin = Admin(settings)
    admin.ensure_source_topic(service_id, 1)
    producer = BatchProducer(settings)
    producer.send_many(service_id, [b"%04d" % at + b"x" * 9_996 for at in range(60)])
    producer.close()
    facts = facts_of(admin, service_id)

    def offsets(count: int, **bounds: int) -> tuple[list[int], bool]:
        looked = look(settings, service_id, facts, count, **bounds)  # type: ignore[arg-type]
        return [one.offset() for one in looked.messages], looked.whole

    assert offsets(5) == ([55, 56, 57, 58, 59], False)
    assert offsets(100) == ([*range(60)], True)
    assert offsets(20, bytes_max=50_000) == ([55, 56, 57, 58, 59], False)
    rare = look(settings, service_id, facts, 1, wanted=lambda one: one.offset() == 3, bytes_max=100_000)
    assert (rare.messages, rare.whole) == ([], False), "it is further back than that many bytes allow"
    found = look(settings, service_id, facts, 1, wanted=lambda one: one.offset() == 3)
    assert [one.offset() for one in found.messages] == [3]
