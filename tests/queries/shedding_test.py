"""What queries let be shed, what they lack by it, and that they say so."""

from __future__ import annotations

import numpy as np
import pytest

from engine.model.allotment import Allotment, ScanAllotment
from engine.model.batch import Batch, Column
from engine.model.shed import LEVEL_MAX, Shed
from engine.model.source import Stream
from engine.model.step import Allocate, Heartbeat, Records, Register, Registration
from tests.differential.agreement import EngineSubject
from tests.memory_state import MemoryState
from tests.queries.shedding import subject_of
from tureen.errors import AllotmentRefused

N = 100
HOUR_MS = 3_600_000


def bring(subject: EngineSubject, first: int, shed: Shed | None = None, count: int = N) -> None:
    """Rows ``first`` on, one a second; of those that are not read the last."""
    (stream,) = (one for one in subject.engine.catalogue.values() if isinstance(one, Stream))
    begin = first + count - 1 if shed is not None and shed.unread else first
    numbers = np.arange(begin, first + count)
    columns = tuple(
        Column(field.type, 1_000 * numbers if at else numbers) for at, field in enumerate(stream.schema)
    )
    batch = Batch(stream.stored_schema, columns, np.zeros(len(numbers), np.int32), numbers, 1_000 * numbers)
    body = Records(stream.name, batch, {0: first + count}, shed=shed)
    clock_ms = HOUR_MS * (first + count)
    subject.apply(subject.next_step(clock_ms, body))
    subject.apply(subject.next_step(clock_ms + HOUR_MS // 2, Heartbeat(stream.name)))


def test_tolerant_query_lacks_what_was_shed_and_says_so_until_its_window_has_passed_it() -> None:
    subject = subject_of()
    subject.register("blind", "SELECT v FROM s [RANGE 99 SECONDS]", {"max_fn": "0.5"})
    subject.register("exact", "SELECT v FROM s [RANGE 99 SECONDS]", {})
    bring(subject, 0)
    assert not subject.engine.view().approximation("blind")
    bring(subject, N, Shed(500_000, {0: (N, N + 50)}), count=50)
    bring(subject, N + 50, count=50)
    view = subject.engine.view()
    (tag,) = view.approximation("blind")
    assert (tag.kind, tag.where, tag.origin) == ("shed", "s", "dynamic")
    assert (tag.amount, tag.unit) == (50.0, "percent")
    assert tag.contiguous
    assert tag.expected.as_dict() == {"fp": 0.0, "fn": 0.5}
    assert str(tag.since) == "0-6"
    assert subject.answer("blind").rows == [(v,) for v in range(150, 200)]
    assert subject.answer("exact").rows == [(v,) for v in range(100, 200)]
    assert not view.approximation("exact")
    bring(subject, 2 * N)
    assert not subject.engine.view().approximation("blind")
    assert subject.answer("blind") == subject.answer("exact")


def test_what_is_shed_and_what_is_given_less_are_under_one_bound() -> None:
    subject = subject_of()
    subject.register("blind", "SELECT v FROM s [RANGE 99 SECONDS]", {"max_fn": "0.6"})
    subject.register("other", "SELECT v FROM s [RANGE 99 SECONDS]", {"max_fn": "0.9"})
    bring(subject, 0)
    bring(subject, N, Shed(500_000, {0: (N, N + 50)}), count=50)
    bring(subject, N + 50, count=50)
    engine = subject.engine
    half = Allotment((ScanAllotment(50_000),), by_hand=True)
    with pytest.raises(AllotmentRefused, match=r"missing rows of 0\.7"):
        engine.expecting("blind", half)
    assert engine.needs.sheddable("s").levels == (600_000, 900_000)
    less = engine.expecting("blind", Allotment((ScanAllotment(90_000),), by_hand=True))
    subject.apply(subject.next_step(HOUR_MS * 2 * N, Allocate((("blind", less),))))
    # Nothing more is shed for the one that is given less; of what the other allows it sees every row.
    assert engine.needs.sheddable("s").levels == (900_000,)
    assert engine.needs.sheddable("s").is_seen


def test_rows_that_nobody_read_are_told_to_queries_that_come_later() -> None:
    subject = subject_of()
    subject.register("blind", "SELECT v FROM s [RANGE 1 HOUR]", {"max_fn": "1"})
    assert subject.engine.needs.sheddable("s").is_unseen(LEVEL_MAX)
    bring(subject, 0)
    bring(subject, N, Shed(LEVEL_MAX, {0: (N, 2 * N)}, unread=N - 1))
    bring(subject, 2 * N)
    subject.register("later", "SELECT v FROM s [RANGE 1 HOUR]", {})
    assert not subject.engine.needs.sheddable("s").is_unseen(LEVEL_MAX)
    answer = subject.answer("later")
    assert not answer.complete
    assert answer.complete_from_ms == 1_000 * (2 * N - 1) + 1
    (tag,) = subject.engine.view().approximation("blind")
    assert tag.amount == 33.44
    assert tag.as_dict() | {"since": "", "expected": {}} == {
        "kind": "shed",
        "where": "s",
        "origin": "dynamic",
        "amount": 33.44,
        "unit": "percent",
        "since": "",
        "expected": {},
        "contiguous": True,
        "rows_missing": 100,
        "rows_due": 299,  # the last row stays above NOW
        "intervals": [[99_001, 199_000]],
    }


def test_window_of_the_last_rows_counts_those_that_were_shed() -> None:
    subject = subject_of()
    subject.register("blind", "SELECT v FROM s [ROWS 10]", {"max_fn": "0.5"})
    bring(subject, 0, count=95)
    bring(subject, 95, Shed(400_000, {0: (95, 98)}), count=3)
    bring(subject, 98, count=2)
    assert subject.answer("blind").rows == [(v,) for v in (*range(90, 95), 98, 99)]
    (tag,) = subject.engine.view().approximation("blind")
    assert tag.amount == 30.0


def test_other_tolerance_shows_rows_again_and_tells_them_to_followers() -> None:
    subject = subject_of()
    subject.register("q", "SELECT v FROM s", {"max_fn": "0.5"})
    subject.engine.follow("q")
    bring(subject, 0, Shed(200_000, {0: (0, N)}))
    assert subject.answer("q").rows == []
    other = Register((Registration("q", "SELECT v FROM s", options={"max_fn": "0.1"}),))
    result = subject.apply(subject.next_step(0, other))
    assert len(subject.answer("q").rows) == N
    assert sum(len(one) for one in result.changes) == N
    assert not subject.engine.view().approximation("q")
    again = subject.restarted(MemoryState())
    assert again.answer("q") == subject.answer("q")


@pytest.mark.parametrize(
    ("sql", "options", "levels"),
    [
        ("SELECT v FROM s", {}, ()),
        ("SELECT v FROM s", {"max_fn": "0"}, ()),
        ("SELECT v FROM s", {"max_fp": "0.5"}, ()),
        ("SELECT v FROM s", {"max_fn": "0.25"}, (250_000,)),
        ("SELECT v FROM s WITH (max_fn = 0.25)", {}, (250_000,)),
        ("SELECT v FROM s SAMPLE(80 DOWN TO 20)", {}, (750_000,)),
        ("SELECT v FROM s [RANGE 1 HOUR DOWN TO 10 MINUTES]", {}, ()),
        ("SELECT a.v AS v FROM s a, s b WHERE a.v = b.v", {"max_fn": "0.19"}, (100_000,)),
        ("SELECT SUM(v) AS v FROM s", {"max_fn": "0.5", "max_error": "0.2"}, (200_000,)),
        ("SELECT v FROM s EXCEPT SELECT v + 1 AS v FROM s", {"max_fn": "0.5"}, ()),
        ("SELECT v FROM s ORDER BY v LIMIT 3", {"max_fn": "0.5"}, ()),
        ("SELECT v FROM s [PARTITION BY v ROWS 3]", {"max_fn": "0.5"}, ()),
        ("SELECT v FROM s [ROWS 3 WHERE v > 7]", {"max_fn": "0.5"}, ()),
    ],
)
def test_what_a_query_lets_be_shed(sql: str, options: dict[str, str], levels: tuple[int, ...]) -> None:
    subject = subject_of()
    subject.register("q", sql, options)
    sheddable = subject.engine.needs.sheddable("s")
    assert sheddable.levels == levels
    assert sheddable.is_seen == (not levels)


def test_weights_of_tolerant_queries_add_up() -> None:
    subject = subject_of()
    subject.register("light", "SELECT v FROM s WITH (max_fn = 0.25, weight = 2)", {})
    subject.register("heavy", "SELECT v + 1 AS v FROM s WITH (max_fn = 0.5, weight = 30)", {})
    subject.register("exact", "SELECT v FROM s WITH (weight = 500)", {})
    sheddable = subject.engine.needs.sheddable("s")
    assert (sheddable.levels, sheddable.weight, sheddable.is_seen) == ((250_000, 500_000), 32.0, True)
