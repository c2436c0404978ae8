"""Paused queries: nothing is told of them, and when they run again what differs from what was told last."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.allotment import Allotment, ScanAllotment
from engine.model.limits import Limits
from engine.model.persistence import QueryState
from engine.model.step import Allocate, Register, Registration, StepResult
from engine.standing.query import INACTIVE_WEIGHT
from tests.capacities import small_restored
from tests.engine.feed import Feed, ticks
from tests.memory_state import MemoryState
from tests.queries.subscriptions import COUNTS, SLIDING, folded, register, spelled, step
from tureen.errors import LimitExceeded, OptionRefused, QueryPaused

TEXTS = (
    SLIDING,
    COUNTS,
    "SELECT k, v FROM s [ROWS 3] WHERE v > 2 EMIT CHANGES WITH (format = 'diff')",
    "SELECT DISTINCT k FROM s [RANGE 4 MILLISECONDS] EMIT CHANGES",
    "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 9 MILLISECONDS] EMIT CHANGES",
)


def pause(feed: Feed, sql: str, query_id: str = "q", **options: str) -> StepResult:
    return register(feed, query_id, sql, paused="true", **options)


def restart(feed: Feed, store: MemoryState | None = None) -> None:
    """store: what earlier restarts saved to."""
    store = store or MemoryState()
    feed.engine.save(store)
    feed.engine = small_restored(store)
    feed.engine._check()


@settings(max_examples=max(12, settings.default.max_examples // 8))
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["rows", "rows", "pause", "resume", "restart"]), st.integers(0, 4)),
        max_size=14,
    )
)
def test_the_sum_of_what_was_told_is_the_answer_whenever_a_query_runs(moves: list[tuple[str, int]]) -> None:
    feed, at_ms, store = Feed(), 10, MemoryState()
    for number, sql in enumerate(TEXTS):
        register(feed, f"q{number}", sql)
    for what, number in moves:
        query_id, sql = f"q{number}", TEXTS[number]
        match what:
            case "rows":
                feed.put(*((at_ms + more, "ab"[more % 2], float(at_ms % 7)) for more in range(number + 1)))
                at_ms += number + 2
            case "pause":
                pause(feed, sql, query_id)
            case "resume":
                register(feed, query_id, sql)
            case "restart":
                restart(feed, store)
        view = feed.engine.view()
        told = list(spelled(feed.told))
        for other in range(len(TEXTS)):
            name = f"q{other}"
            if view.query(name).paused:
                with pytest.raises(QueryPaused):
                    view.snapshot(name)
            else:
                assert folded(told, name) == Counter(feed.rows(name))
    feed.engine._check()


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        ("", [(-1, 10.0), (-1, 11.0), (1, 19.0), (1, 20.0)]),
        ("ISTREAM", [(1, 19.0), (1, 20.0)]),
        ("DSTREAM", [(-1, 10.0), (-1, 11.0)]),
        ("RSTREAM", [(1, 19.0), (1, 20.0)]),
    ],
)
def test_what_the_operator_lets_through_of_the_difference_is_told(
    operator: str, told: list[tuple[int, float]]
) -> None:
    feed = Feed()
    sql = (
        f"SELECT {operator}(v) FROM s [RANGE 1 MILLISECONDS]"
        if operator
        else ("SELECT v FROM s [RANGE 1 MILLISECONDS]")
    )
    register(feed, "q", sql)
    feed.engine.follow("q")
    feed.put(*ticks([10, 11, 12]))
    pause(feed, sql)
    assert not list(spelled([feed.put(*ticks([13, 19, 20, 21]))]))
    resumed = [told[2:] for told in spelled([register(feed, "q", sql)])]
    assert sorted((weight, v) for weight, at_ms, (v,) in resumed if at_ms == 20) == sorted(told)
    assert len(resumed) == len(told)


def test_the_answer_of_a_paused_query_that_goes_is_taken_back_as_it_was_told() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    feed.put(*ticks([10, 11, 12]))
    pause(feed, SLIDING)
    feed.put(*ticks([13, 14]))
    restart(feed)
    feed.told.append(feed.engine.unregister("q"))
    assert not folded(spelled(feed.told), "q")


def test_a_query_that_an_earlier_version_paused_begins_with_its_whole_answer() -> None:
    """It had taken the answer back, and kept nothing of it."""

    class Earlier(MemoryState):
        def put_query(self, state: QueryState) -> None:
            super().put_query(QueryState(state.registration, state.born, state.predicate_errors))

    feed = Feed()
    register(feed, "q", SLIDING)
    feed.put(*ticks([10, 11, 12]))
    pause(feed, SLIDING)
    store = Earlier()
    feed.engine.save(store)
    feed.engine = small_restored(store)
    told = list(spelled([register(feed, "q", SLIDING)]))
    assert {occasion for _, occasion, *_ in told} == {"snapshot"}
    assert folded(told, "q") == Counter(feed.rows("q"))


def test_a_pause_that_an_earlier_version_journalled_takes_the_answer_back() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    feed.put(*ticks([10, 11, 12]))
    paused = Registration("q", SLIDING, options={"paused": "true"})
    step(feed, Register((paused,), takes_back=True))
    assert not folded(spelled(feed.told), "q")
    feed.put(*ticks([13]))
    register(feed, "q", SLIDING)
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


def test_replays_of_a_pause_keep_the_answer_too() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    feed.put(*ticks([10, 11, 12]))
    feed.engine.tells = False
    pause(feed, SLIDING)
    feed.put(*ticks([13, 14]))
    feed.engine.tells = True
    register(feed, "q", SLIDING)
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))


def test_an_answer_too_large_to_be_told_breaks_the_query_when_it_runs_again() -> None:
    feed = Feed()
    feed.engine._parts.settings.limits = feed.engine._following.answers._limits = Limits(changes_max=3)
    sql = SLIDING.replace("5 MILL", "500 MILL")
    register(feed, "q", sql)
    for at_ms in range(10, 30):
        feed.put(*ticks([at_ms]))
    pause(feed, sql)
    restart(feed)
    assert isinstance(register(feed, "q", sql).broken["q"], LimitExceeded)


def test_rows_are_kept_for_a_paused_query_unless_it_releases_them() -> None:
    feeds = {release: Feed(retain="5 MILLISECONDS") for release in ("false", "true")}
    sql = SLIDING.replace("5 MILL", "40 MILL")
    for release, feed in feeds.items():
        register(feed, "q", sql)
        feed.put(*ticks(range(10, 30)))
        pause(feed, sql)
        pause(feed, sql, release=release)
        restart(feed)
        feed.put(*ticks(range(30, 60)))
        register(feed, "q", sql)
        assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
        feed.engine._check()
    kept, released = (feed.engine.view().snapshot("q") for feed in feeds.values())
    assert (kept.complete, kept.table.num_rows) == (True, 41)
    assert (released.complete, released.complete_from_ms) == (False, 53)
    assert released.table.num_rows == 6
    feed = feeds["true"]
    feed.put(*ticks(range(60, 105)))
    assert feed.engine.view().snapshot("q").complete
    feed.engine.unregister("q")
    feed.put(*ticks(range(105, 120)))
    (source,) = feed.engine.view().sources()
    assert source.rows == 6


def test_a_paused_query_counts_for_next_to_nothing() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    register(feed, "r", SLIDING)
    pause(feed, SLIDING, "r")
    standing = feed.engine.view().standing
    assert (standing["q"].weight, standing["r"].weight) == (1.0, INACTIVE_WEIGHT)
    assert feed.engine.needs.demand("s").weight == 1.0 + INACTIVE_WEIGHT


@pytest.mark.parametrize(
    ("options", "paused"),
    [({"active": "false"}, True), ({"active": "true"}, False), ({"active": "false", "paused": "true"}, True)],
)
def test_active_is_the_opposite_of_paused(options: dict[str, str], paused: bool) -> None:
    feed = Feed()
    register(feed, "q", SLIDING, **options)
    assert feed.engine.view().query("q").paused == paused


@pytest.mark.parametrize(
    "options", [{"active": "true", "paused": "true"}, {"active": "perhaps"}, {"release": "some"}]
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str]) -> None:
    feed = Feed()
    result = step(feed, Register((Registration("q", SLIDING, options=options),)))
    assert isinstance(result.failed["q"], OptionRefused)


def test_a_weight_that_is_set_while_a_query_runs_counts_at_once_and_after_a_restart() -> None:
    feed, store = Feed(), MemoryState()
    for query_id in ("q", "r"):
        step(feed, Register((Registration(query_id, SLIDING, weight=2.0),)))
    assert feed.engine.needs.demand("s").weight == 4.0
    step(feed, Register((Registration("q", SLIDING, weight=0.5),)))
    for _ in range(2):
        assert feed.engine.view().standing["q"].weight == 0.5
        assert feed.engine.needs.demand("s").weight == 2.5
        restart(feed, store)
    pause(feed, SLIDING, "r")
    assert feed.engine.needs.demand("s").weight == pytest.approx(0.5 + INACTIVE_WEIGHT, abs=1e-9)


def test_a_paused_query_that_is_given_less_stays_silent_and_differs_by_that_too() -> None:
    feed = Feed()
    sql = SLIDING.replace("5 MILLISECONDS", "20 MILLISECONDS DOWN TO 5 MILLISECONDS")
    register(feed, "q", sql)
    feed.put(*ticks(range(10, 40)))
    pause(feed, sql)
    silent = [
        step(feed, Allocate((("q", Allotment((ScanAllotment(6),))),))),
        feed.put(*ticks(range(40, 70))),
    ]
    assert not list(spelled(silent))
    restart(feed)
    told = register(feed, "q", sql)
    assert {occasion for _, occasion, *_ in spelled([told])} == {"step"}
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    assert len(feed.rows("q")) == 7
    assert [tag.kind for tag in feed.engine.view().approximation("q")] == ["window"]
