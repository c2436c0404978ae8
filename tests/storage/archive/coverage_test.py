"""What commits say of themselves: the text, and what several of them say together."""

from __future__ import annotations

import json

import pytest

from storage.archive.coverage import COMMITS_LOOKED_AT, COMPLETE, Coverage, Covered, coverage_of, in_force
from storage.archive.errors import ArchiveVersionUnknown

ONE = Coverage("t", {0: Covered(3, 10, 77), 12: Covered(0, 0)}, 5, "life")


def test_the_text_and_back() -> None:
    assert coverage_of(ONE.to_text()) == ONE
    assert json.loads(ONE.to_text())["tureen"]["partitions"]["0"] == {"from": 3, "next": 10, "max_ms": 77}
    assert (ONE.reached, ONE.max_ms, Coverage("t", {}).max_ms) == (12, 77, None)


@pytest.mark.parametrize("text", [None, "", "words", "[]", "{}", '{"other": 1}', "7"])
def test_what_is_not_ours(text: str | None) -> None:
    assert coverage_of(text) is None
    assert in_force([text, ONE.to_text()]) == ONE
    assert in_force([text]) is None


def test_another_version_is_refused() -> None:
    with pytest.raises(ArchiveVersionUnknown) as refused:
        coverage_of('{"tureen": {"version": 9}}')
    assert (refused.value.version, refused.value.hint is not None) == (9, True)


def test_commits_that_crossed_are_united() -> None:
    append = Coverage("t", {0: Covered(0, 20, 90), 1: Covered(0, 5, 3)}, COMPLETE, "life")
    retention = Coverage("t", {0: Covered(0, 10, 80)}, 50, "life")
    together = Coverage("t", {0: Covered(0, 20, 90), 1: Covered(0, 5, 3)}, 50, "life")
    for order in ([append, retention], [retention, append]):
        assert in_force([one.to_text() for one in order]) == together


def test_an_earlier_life_of_the_topic_says_nothing() -> None:
    before = Coverage("t", {0: Covered(0, 99, 1)}, COMPLETE, "earlier")
    assert in_force([ONE.to_text(), before.to_text()]) == ONE


def test_records_between_that_were_lost() -> None:
    """A gap was accepted: who is behind it counts, whichever is told first."""
    before, behind = Coverage("t", {0: Covered(0, 10, 5)}), Coverage("t", {0: Covered(20, 30, 9)}, 6)
    for order in ([before, behind], [behind, before]):
        assert in_force([one.to_text() for one in order]) == behind


def test_only_the_newest_commits_count() -> None:
    newest = [ONE.to_text()] * COMMITS_LOOKED_AT
    assert in_force([*newest, Coverage("t", {0: Covered(0, 99)}, COMPLETE, "life").to_text()]) == ONE
