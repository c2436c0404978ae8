"""Registrations that were at work when a worker died are known by the next, through any restarts."""

from __future__ import annotations

from pathlib import Path

from broker.worker.shard_command import ShardCommand
from broker.worker.trials import Trials

DEAR = ShardCommand.register("dear", "SELECT a FROM s WHERE f(a) = 1", {})
OTHER = ShardCommand.register("other", "SELECT b FROM s", {})


def after_a_death(path: Path, *at_work: ShardCommand) -> Trials:
    Trials(path).begin(at_work)
    return Trials(path)


def test_one_is_tried_once_more_then_refused_until_it_is_another(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "0.trials.json"
    once = after_a_death(path, DEAR)
    assert (once.ends_of(DEAR), once.ends_of(OTHER)) == (1, 0)
    assert once.refusal(DEAR) is None
    twice = after_a_death(path, DEAR)
    refusal = twice.refusal(DEAR)
    assert refusal is not None
    assert (refusal.query_id, refusal.lives) == ("dear", 2)
    assert Trials(path).refusal(DEAR) is not None  # it is not tried, and stays refused
    altered = ShardCommand.register("dear", "SELECT a FROM s WHERE a = 1", {})
    assert Trials(path).refusal(altered) is None
    assert "f(a)" not in path.read_text()


def test_what_came_is_given_up_or_was_stopped_ends_no_worker(tmp_path: Path) -> None:
    path = tmp_path / "0.trials.json"
    trials = after_a_death(path, DEAR, OTHER)
    trials.begin([DEAR, OTHER])
    assert trials.is_at_work(DEAR)
    trials.over(["dear"])
    assert not trials.knows("dear")
    trials.stop()
    again = Trials(path)
    assert (again.ends_of(DEAR), again.ends_of(OTHER)) == (0, 1)
    again.over(["other"])
    assert not path.exists()


def test_one_for_which_nothing_is_done_at_present_ends_no_worker(tmp_path: Path) -> None:
    path = tmp_path / "0.trials.json"
    trials = after_a_death(path, DEAR, OTHER)
    trials.begin([DEAR, OTHER])
    trials.rest(["other"])
    again = Trials(path)
    assert (again.ends_of(DEAR), again.ends_of(OTHER)) == (2, 1)


def test_a_file_that_was_cut_off_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "0.trials.json"
    path.write_text('{"at_work": {"dear"')
    assert Trials(path).ends_of(DEAR) == 0
