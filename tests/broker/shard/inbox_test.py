"""What other threads want of a shard: handed out in order, told, and refused when the shard has ended."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from broker.shard.inbox import Inbox
from broker.shard.shard_command import ShardCommand
from engine.engine import Engine
from tests.kafka import wait_until
from tureen.errors import BrokerUnavailable, TureenError


def test_what_came_is_at_work_until_it_is_told() -> None:
    inbox = Inbox(3)
    first = inbox.submit([ShardCommand.drop("a"), ShardCommand.drop("b")])
    second = inbox.submit([ShardCommand.prove()])
    jobs = inbox.take(60.0)  # waits for nothing, since something is there
    later = inbox.submit([ShardCommand.drop("c")])
    assert [[command.name for command in job.commands] for job in jobs] == [["a", "b"], [""]]
    for number, job in enumerate(jobs):
        job.outcomes = [{"state": "GONE", "position": str(number)}] * len(job.commands)
    assert not first.done()
    inbox.done()
    assert [one["position"] for one in (*first.result(0), *second.result(0))] == ["0", "0", "1"]
    assert not later.done()
    assert [job.future for job in inbox.take(60.0)] == [later]


@pytest.mark.parametrize(
    "bring",
    [
        lambda inbox: inbox.submit([ShardCommand.prove()]),
        lambda inbox: inbox.ask(lambda engine: engine.position),
        lambda inbox: inbox.wake(),
        lambda inbox: inbox.arrived(),
    ],
    ids=["a command", "a question", "a call", "records"],
)
def test_whoever_brings_something_wakes_the_shard(bring: Callable[[Inbox], object]) -> None:
    inbox = Inbox(0)
    shard = Thread(target=inbox.take, args=(3_600.0,), daemon=True)
    shard.start()

    def goes_on() -> bool:
        bring(inbox)
        shard.join(0.05)
        return not shard.is_alive()

    wait_until(goes_on, what="the shard goes on")


def test_records_end_no_wait_while_the_shard_lingers_and_commands_do() -> None:
    inbox = Inbox(0)
    inbox.arrived()
    shard = Thread(target=inbox.take, args=(3_600.0, 3_600.0), daemon=True)
    shard.start()
    shard.join(0.05)
    assert shard.is_alive()
    inbox.submit([ShardCommand.prove()])
    shard.join(60.0)
    assert not shard.is_alive()


def test_a_call_before_the_shard_waits_is_not_lost() -> None:
    inbox = Inbox(0)
    inbox.wake()
    assert inbox.take(3_600.0) == []
    inbox.arrived()
    assert inbox.take(3_600.0) == []


def test_after_its_end_everything_is_refused() -> None:
    inbox = Inbox(3)
    at_work = inbox.submit([ShardCommand.drop("a")])
    (job,) = inbox.take(0.0)
    waiting = inbox.submit([ShardCommand.drop("b")])
    asked = inbox.ask(lambda engine: engine.position)
    left = inbox.close(TureenError("it broke"), {"code": "end"})
    assert [one.future for one in left] == [at_work, waiting]
    assert left[0] is job
    assert not at_work.done()  # whoever closes it decides what becomes of them
    with pytest.raises(TureenError, match="it broke"):
        asked.result(0)
    job.refuse({"code": "end"})
    refusal = {"state": "ERROR", "error": {"code": "end"}, "position": None}
    assert at_work.result(0) == [refusal]
    assert inbox.submit([ShardCommand.drop("c")] * 2).result(0) == [refusal] * 2
    with pytest.raises(BrokerUnavailable, match="shard 3 has stopped"):
        inbox.ask(lambda engine: engine.position).result(0)
    assert inbox.take(0.0) == []


def test_questions_are_answered_by_the_engine_between_steps() -> None:
    inbox, engine = Inbox(0), Engine()
    asked = inbox.ask(lambda engine: engine.position)
    assert inbox.take(60.0) == []  # a question wakes it too
    inbox.answer(engine)
    assert asked.result(0) == engine.position
