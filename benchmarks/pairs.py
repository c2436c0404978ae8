"""What linked lists would visit for query 1, whatever its protocol."""

from __future__ import annotations

from benchmarks import linked_lists
from benchmarks.connections import Connections
from benchmarks.experiment import Lists
from benchmarks.link_queries import pairs
from benchmarks.linked_lists import Size
from benchmarks.update_patterns import Point


def lists_of(protocol: str) -> Lists:
    """Per 1,000 rows of both links."""

    def visits(strategy: str, rows: Connections, window: int, point: Point) -> float:
        answer = pairs(protocol).answer
        assert answer is not None
        size = Size.of(answer, rows, window)
        share = float(rows.of(protocol)[:2].mean())
        rates, sizes = (share, share), (share * window, share * window)
        a_unit = (
            linked_lists.windows(strategy, 2)
            + linked_lists.join(strategy, rates, sizes)
            + linked_lists.view(strategy, 2 * share, 2 * point.came, size.rows, size.keys)
        )
        return 1_000 / 2 * a_unit

    return visits
