"""MIN and MAX of strings while more of them come at once than there was room for."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.engine.feed import Feed


@pytest.mark.parametrize("grouped", ["", " GROUP BY v"])
def test_strings_of_one_batch_outgrow_what_is_kept(grouped: str) -> None:
    """Labels of strings are given anew in the step in which their entries need more room."""
    feed = Feed(f"SELECT MAX(k) AS m, MIN(k) AS l FROM s [RANGE 900 MILLISECONDS]{grouped} EMIT CHANGES")
    rng, first_ms = random.Random(1), 1_000
    for rows in (10, 300, 1, 900, 2_000):
        feed.put(*((first_ms + row % 500, f"{rng.random()}", float(row % 3)) for row in range(rows)))
        first_ms += 500
    held = Counter[tuple[str | None, ...]]()
    for result in feed.told:
        for changes in result.changes:
            for row, weight in zip(changes.table.to_pylist(), changes.weights.tolist(), strict=True):
                held[row["m"], row["l"]] += weight
    held[None, None] = 0  # of no rows, from the step before the first
    assert +held == Counter(zip(*feed.answer().table.to_pydict().values(), strict=True))
    assert not -held
