"""Who owns a shard: the last that said so in its journal, whatever becomes of anybody's producer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from broker.base.settings import Settings
from broker.shard.outbox import Letter, Outbox, Outgoing
from broker.shard.stalls import Stalls
from engine.model.source import SourceName
from engine.model.step import BEGINNING, Claim, DropSource, Position, Step, StepResult
from tests.kafka import wait_until
from topics.admin import Admin, TopicPolicy
from topics.journal import StepRecord, encode_step
from topics.journal_reader import read_steps
from topics.producer import CommitUnknown, TransactionAborted
from topics.results import Records
from tureen.errors import Fenced, KafkaUnavailable

SHARD = 1


class Journal:
    """A service's journal, and owners of one of its shards."""

    def __init__(self, bootstrap: str, service_id: str) -> None:
        self.kafka = {"bootstrap.servers": bootstrap}
        self.settings = Settings.model_validate(
            {"service_id": service_id, "retry_ms": 200, "transaction_timeout_ms": 5_000}
        )
        Admin(self.kafka).ensure([TopicPolicy(self.settings.names.steps, 2, {}, verified=())])
        self._owners: list[Outbox] = []

    def owner(self, **kafka: str) -> Outbox:
        stalls = Stalls(SHARD, self.settings.retry_ms)
        one = Outbox(SHARD, self.settings, {**self.kafka, **kafka}, stalls, lambda _: {})
        self._owners.append(one)
        return one

    def outgoing(self, position: Position) -> Outgoing:
        """A step, and what it caused."""
        step = Step(position, 0, DropSource(SourceName("s")))
        key, value = encode_step(step, StepResult(position))
        return Outgoing([Letter(self.settings.names.steps, value, key, SHARD)], last=position)

    def steps(self) -> list[StepRecord]:
        return list(read_steps(self.kafka, self.settings.names.steps, SHARD, BEGINNING))

    def positions(self) -> list[str]:
        return [str(record.position) for record in self.steps()]

    def close(self) -> None:
        for one in self._owners:
            one.close()


@pytest.fixture
def journal(kafka: str, service_id: str) -> Iterator[Journal]:
    made = Journal(kafka, service_id)
    yield made
    made.close()


def after(position: Position) -> Position:
    return Position(position.epoch, position.sequence + 1)


def test_an_owner_says_in_the_journal_that_it_is_one(journal: Journal) -> None:
    assert journal.owner().take_over(BEGINNING) == Position(1, 1)
    assert journal.owner().take_over(Position(1, 1)) == Position(2, 2)
    claims = [record.body for record in journal.steps()]
    assert len({claim.owner for claim in claims if isinstance(claim, Claim)}) == 2


def test_after_a_loss_of_the_journal_the_store_says_where_it_was(journal: Journal) -> None:
    assert journal.owner().take_over(Position(7, 40)) == Position(8, 41)


@pytest.mark.parametrize("cut_off", [KafkaUnavailable, TransactionAborted, CommitUnknown])
def test_an_owner_that_was_cut_off_does_not_take_its_shard_back(
    journal: Journal, cut_off: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = journal.owner(), journal.owner()
    began = old.take_over(BEGINNING)
    old.commit(journal.outgoing(after(began)))
    second = new.take_over(after(began))
    new.commit(journal.outgoing(after(second)))

    def cut(*_: Any, **__: Any) -> None:
        monkeypatch.undo()
        raise cut_off("as of a connection that broke")

    monkeypatch.setattr(old, "_try", cut)
    with pytest.raises(Fenced):
        old.commit(journal.outgoing(after(after(began))))
    new.commit(journal.outgoing(after(after(second))))
    assert journal.positions() == ["1-1", "1-2", "2-3", "2-4", "2-5"]


def test_who_is_fenced_by_one_that_is_no_owner_any_more_goes_on(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = journal.owner(), journal.owner()
    began = old.take_over(BEGINNING)
    second = new.take_over(began)
    old._fence()  # as one does that was cut off, before it looks
    new.commit(journal.outgoing(after(second)))
    with pytest.raises(Fenced):
        old.commit(journal.outgoing(after(began)))
    new.commit(journal.outgoing(after(after(second))))
    assert journal.positions() == ["1-1", "2-2", "2-3", "2-4"]


def test_who_comes_takes_over_from_who_fences_it_meanwhile(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = journal.owner(), journal.owner()
    began = old.take_over(BEGINNING)
    write = new._try

    def late(*args: Any, **kwargs: Any) -> None:
        monkeypatch.undo()
        old._fence()
        old.commit(journal.outgoing(after(began)))
        write(*args, **kwargs)

    monkeypatch.setattr(new, "_try", late)
    assert new.take_over(began) == Position(2, 3)
    with pytest.raises(Fenced):
        old.commit(journal.outgoing(Position(1, 3)))
    assert journal.positions() == ["1-1", "1-2", "2-3"]


def test_a_commit_that_happened_though_nobody_said_so_is_not_done_again(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = journal.owner()
    began = one.take_over(BEGINNING)
    write = one._try

    def silent(*args: Any, **kwargs: Any) -> None:
        monkeypatch.undo()
        write(*args, **kwargs)
        raise CommitUnknown("no answer came")

    monkeypatch.setattr(one, "_try", silent)
    one.commit(journal.outgoing(after(began)))
    one.commit(journal.outgoing(after(after(began))))
    assert journal.positions() == ["1-1", "1-2", "1-3"]


class Halting(list[Letter]):
    """Letters; after the last, the first time, it waits until Kafka has ended the transaction."""

    def __init__(self, letters: list[Letter], ended: Callable[[], bool]) -> None:
        super().__init__(letters)
        self._ended = ended
        self.halted = 0

    def __iter__(self) -> Iterator[Letter]:
        yield from super().__iter__()
        if not self.halted:
            self.halted += 1
            wait_until(self._ended, what="Kafka ends the transaction")


@pytest.mark.timeout(120, func_only=True)  # Kafka looks for such transactions every ten seconds
def test_a_transaction_that_took_too_long_is_written_again(journal: Journal) -> None:
    one = journal.owner()
    began = one.take_over(BEGINNING)
    outgoing = journal.outgoing(after(began))
    admin, topic = Admin(journal.kafka), journal.settings.names.steps
    before = admin.end_offsets(topic)[SHARD]
    outgoing.letters = halting = Halting(outgoing.letters, lambda: admin.end_offsets(topic)[SHARD] > before)
    one.commit(outgoing)
    one.commit(journal.outgoing(after(after(began))))
    assert halting.halted
    assert journal.positions() == ["1-1", "1-2", "1-3"]


def test_letters_fill_a_transaction_as_changes_do() -> None:
    """Else a flood of late rows would be written at once, and all queries of the shard would wait for it."""
    outgoing = Outgoing([Letter("late", b"{}")] * 3, deferred=2)
    assert (outgoing.told, outgoing.written, outgoing.caused) == (0, 3, 5)
    values = pa.array([b"one", b"two"], pa.large_binary())
    for topic, size in (("a", 10), ("b", 7), ("a", 2)):
        outgoing.tell([Records(topic, values, values, [], None, size)])
    assert (outgoing.told, outgoing.told_bytes, outgoing.written, outgoing.caused) == (6, 19, 9, 11)
    outgoing.leave_out({"a"})
    assert [one.topic for one in outgoing.records] == ["b"]
    assert (outgoing.told, outgoing.told_bytes, outgoing.written, outgoing.caused) == (2, 7, 5, 7)
