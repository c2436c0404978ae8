"""Queries that insert into streams that others read: circles are refused, whatever their length."""

from __future__ import annotations

import pytest

from topics.insertions import Insertions
from tureen.errors import NotSupported


def test_circles_are_refused() -> None:
    known = Insertions()
    known.add("q1", ["a"], "b")
    known.add("q2", ["b", "t"], "c")
    known.add("q3", ["b"], "d")
    for reads, into in ((["c"], "a"), (["d", "x"], "a"), (["b"], "a"), (["c"], "b"), (["e"], "e")):
        with pytest.raises(NotSupported, match="would come back"):
            known.add("q4", reads, into)
    known.add("q4", ["c"], "e")
    known.add("q5", ["c", "a"], "e")
    known.discard("q2")
    known.add("q6", ["c"], "a")
    known.discard("nobody")
