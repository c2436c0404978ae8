"""Who makes the steps of few records, of shards that share a process."""

from __future__ import annotations

import threading

from broker.shard.small_turns import SmallTurns

DEADLINE_S = 30.0


def test_small_turns_come_one_after_the_other() -> None:
    turns, most, at_work = SmallTurns(DEADLINE_S), [], []

    def work(number: int) -> None:
        for _ in range(200):
            with turns.one_at_a_time(is_small=True):
                at_work.append(number)
                most.append(len(at_work))
                at_work.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(DEADLINE_S)
    assert most == [1] * 600


def test_who_has_waited_goes_on_without_the_place() -> None:
    turns, passed = SmallTurns(0.001), []

    def work() -> None:
        for _ in range(2):  # what was not had is not given back
            with turns.one_at_a_time(is_small=True):
                passed.append("small")

    with turns.one_at_a_time(is_small=True):
        other = threading.Thread(target=work)
        other.start()
        other.join(DEADLINE_S)
        assert passed == ["small"] * 2


def test_a_turn_with_many_records_does_not_ask() -> None:
    turns, passed = SmallTurns(2 * DEADLINE_S), []

    def work() -> None:
        with turns.one_at_a_time(is_small=False):
            passed.append("large")

    with turns.one_at_a_time(is_small=True):
        other = threading.Thread(target=work)
        other.start()
        other.join(DEADLINE_S)
        assert passed == ["large"]
