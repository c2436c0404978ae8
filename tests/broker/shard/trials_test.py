"""Registrations that were at work when a worker died are known by the next, through any restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.runtime import lives
from broker.shard.shard_command import ShardCommand
from broker.shard.trials import Trials

DEAR = ShardCommand.register("dear", "SELECT a FROM s WHERE f(a) = 1", {})
OTHER = ShardCommand.register("other", "SELECT b FROM s", {})


SHARD = 3


def trials(path: Path, *, short: bool = False) -> Trials:
    return Trials(path, SHARD, lambda: short)


def ended(path: Path, cause: str = "crash", at: str = "") -> None:
    """The supervisor notes how the worker ended."""
    lives.note(path.parent.parent, lives.LifeEnd(path.stat().st_mtime + 0.1, cause, 0, at))


def after_a_death(path: Path, *at_work: ShardCommand, cause: str = "crash", at: str = "") -> Trials:
    trials(path).begin(at_work)
    ended(path, cause, at)
    return trials(path)


def test_one_is_tried_once_more_then_refused_until_it_is_another(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "0.trials.json"
    once = after_a_death(path, DEAR)
    assert (once.ends_of(DEAR), once.ends_of(OTHER)) == (1, 0)
    assert once.refusal(DEAR) is None
    twice = after_a_death(path, DEAR)
    refusal = twice.refusal(DEAR)
    assert refusal is not None
    assert (refusal.query_id, refusal.lives) == ("dear", 2)
    assert trials(path).refusal(DEAR) is not None  # it is not tried, and stays refused
    altered = ShardCommand.register("dear", "SELECT a FROM s WHERE a = 1", {})
    assert trials(path).refusal(altered) is None
    assert "f(a)" not in path.read_text()


def test_what_came_is_given_up_or_was_stopped_ends_no_worker(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "0.trials.json"
    one = after_a_death(path, DEAR, OTHER)
    one.begin([DEAR, OTHER])
    assert one.is_at_work(DEAR)
    one.over(["dear"])
    assert not one.knows("dear")
    one.stop()
    ended(path)
    again = trials(path)
    assert (again.ends_of(DEAR), again.ends_of(OTHER)) == (0, 1)
    again.over(["other"])
    assert not path.exists()


def test_one_for_which_nothing_is_done_at_present_ends_no_worker(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "0.trials.json"
    one = after_a_death(path, DEAR, OTHER)
    one.begin([DEAR, OTHER])
    one.rest(["other"])
    ended(path)
    again = trials(path)
    assert (again.ends_of(DEAR), again.ends_of(OTHER)) == (2, 1)


def test_a_file_that_was_cut_off_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "0.trials.json"
    path.parent.mkdir()
    path.write_text('{"at_work": {"dear"')
    assert trials(path).ends_of(DEAR) == 0


@pytest.mark.parametrize(
    ("cause", "at", "blamed"),
    [
        ("crash", "", True),
        ("worker", "", True),
        ("memory", "", True),
        (f"shard-{SHARD}", "it prepares the registration of query dear", True),
        (f"shard-{SHARD}", "it registers query dear", True),
        (f"shard-{SHARD}", "it makes a step of ticks", False),
        ("shard-4", "it registers query another", False),
    ],
)
def test_a_registration_is_blamed_for_an_end_that_it_can_have_caused(
    tmp_path: Path, cause: str, at: str, blamed: bool
) -> None:
    path = tmp_path / "shards" / "3.trials.json"
    assert after_a_death(path, DEAR, cause=cause, at=at).ends_of(DEAR) == int(blamed)


def test_who_kills_a_worker_blames_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "3.trials.json"
    lives.note(tmp_path, lives.LifeEnd(0.0, "crash"))  # of long ago
    for _ in range(3):
        trials(path).begin([DEAR])
    assert trials(path).ends_of(DEAR) == 0
    assert not path.exists()


def test_memory_that_was_short_before_explains_an_end(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "3.trials.json"
    trials(path, short=True).begin([DEAR])
    ended(path, "memory")
    assert trials(path).ends_of(DEAR) == 0
    assert after_a_death(path, DEAR, cause="memory").ends_of(DEAR) == 1
