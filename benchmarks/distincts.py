"""What linked lists would visit for query 2, whatever its columns."""

from __future__ import annotations

from benchmarks import linked_lists
from benchmarks.connections import Connections
from benchmarks.experiment import Lists
from benchmarks.linked_lists import Size
from benchmarks.update_patterns import Point, Query


def lists_of(query: Query) -> Lists:
    """Per 1,000 rows of link 1."""

    def visits(strategy: str, rows: Connections, window: int, point: Point) -> float:
        assert query.answer is not None
        values = Size.of(query.answer, rows, window).rows
        replaced = min(1.0, values / window)  # a value lives on by a younger row a window later at most
        came = max(point.came, replaced)
        a_unit = (
            linked_lists.windows(strategy, 1)
            + linked_lists.distinct(strategy, 1, window, values, came)
            + linked_lists.view(strategy, 1, came, values, values)
        )
        return 1_000 * a_unit

    return visits
