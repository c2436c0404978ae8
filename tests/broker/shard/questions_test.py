"""Questions to an engine from other threads, counts of answers, and the measured costs; no broker needed."""

from __future__ import annotations

import dataclasses
import math
from threading import Thread

import pytest

from broker.runtime import calibration
from broker.shard.questions import AT_ONCE, BUCKETS, Asked, Questions
from engine.engine import Engine
from tureen.errors import BrokerUnavailable, UnknownQuery

STREAM = "CREATE STREAM s (v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')"


def test_questions_are_answered_in_order_and_a_few_at_a_time() -> None:
    engine = Engine()
    engine.create(STREAM)
    questions = Questions()
    asked = [questions.put(lambda found, place=place: (place, list(found.catalogue))) for place in range(40)]
    assert bool(questions)
    questions.answer(engine)
    assert [future.done() for future in asked] == [True] * AT_ONCE + [False] * (40 - AT_ONCE)
    questions.answer(engine)
    assert [future.result(0) for future in asked] == [(place, ["s"]) for place in range(40)]
    assert not questions


def test_what_a_question_raises_goes_to_whoever_asked() -> None:
    questions = Questions()
    refused, fine = (questions.put(lambda e, i=i: e.explain(query_id="q") if i == 0 else i) for i in range(2))
    questions.answer(Engine())
    with pytest.raises(UnknownQuery):
        refused.result(0)
    assert fine.result(0) == 1


def test_a_question_nobody_waits_for_is_not_asked() -> None:
    questions, asked = Questions(), []
    questions.put(asked.append).cancel()
    questions.answer(Engine())
    assert asked == []


def test_a_shard_that_ends_refuses_what_waits() -> None:
    questions = Questions()
    waiting = questions.put(lambda engine: engine.position)
    questions.refuse(BrokerUnavailable("the shard has stopped"))
    with pytest.raises(BrokerUnavailable):
        waiting.result(0)


def test_answers_are_counted_over_the_last_periods() -> None:
    asked = Asked(period_s=0.0)
    threads = [Thread(target=lambda: [asked.count("a") for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked.count("b")
    turned = asked.turn()
    assert turned is not None
    assert dict(turned[0]) == {"a": 2_000, "b": 1}
    for _ in range(BUCKETS - 1):
        turned = asked.turn()
        assert turned is not None
        assert turned[0]["b"] == 1
    turned = asked.turn()
    assert turned is not None
    assert dict(turned[0]) == {}


def test_no_period_has_passed() -> None:
    assert Asked(period_s=3_600.0).turn() is None


def test_every_cost_is_measured() -> None:
    costs = dataclasses.asdict(calibration.measure())
    for measured in (costs.pop("units"), costs):
        assert all(math.isfinite(ns) and ns > 0 for ns in measured.values()), measured
