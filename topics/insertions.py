"""Which queries insert into which streams, so that nothing goes round in a circle.

Of the queries of one process: what those of another node insert is not known here.
"""

from __future__ import annotations

from collections.abc import Collection

from tureen.errors import NotSupported


class Insertions:
    """From the streams that queries read to those that they insert into; never a cycle.

    topics: of streams that are inserted into. They are not made here, nor is it said what their policy is.
    """

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._of: dict[str, tuple[frozenset[str], str]] = {}

    def add(self, query_id: str, reads: Collection[str], stream: str) -> None:
        """A query is to insert into a stream. O(insertions). Raises NotSupported where that stream's rows
        would come back to it.
        """
        reached, waiting = {stream}, [stream]
        while waiting:
            at = waiting.pop()
            for read, into in self._of.values():
                if at in read and into not in reached:
                    reached.add(into)
                    waiting.append(into)
        circle = sorted(reached.intersection(reads))
        if circle:
            raise NotSupported(
                f"rows inserted into {stream} would come back: queries insert from it into {circle[0]}, "
                "which this one reads",
                hint="insert into another stream, or drop the query that inserts into what this one reads",
            )
        self._of[query_id] = frozenset(reads), stream

    def discard(self, query_id: str) -> None:
        """A query inserts no more, if it did."""
        self._of.pop(query_id, None)
