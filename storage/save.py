"""One save on its way to be a write: what the engine puts, resolved against what the database holds.

Rows of a source lie in pieces and segments without gaps or overlap:

    ordinals     -3 .. 0   1 .. 4096   4097 .. 4100   4101 .. 4102
    keys         -3        1           4097           4101            (each: the first ordinal)

so that the end of each is the key of the next, and ``drop_rows(below)`` has to find one boundary: the last
that is not above ``below``. Rows that come before the first are put behind a ``cut_rows`` of all pieces whose
rows have other ordinals now, or begin elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

from engine.model.batch import Batch
from engine.model.persistence import HeldState, QueryState, SourceState
from engine.model.source import Derived, SourceName
from engine.model.state_tree import Tree
from storage import row_codec
from storage.database import Changes, Database
from storage.held_codec import encode_held
from storage.keys import (
    META,
    QUERIES,
    SEGMENTS,
    SOURCES,
    SWAPPED,
    VIEW_PREFIX,
    RowKind,
    held_key,
    key_number,
    name_key,
    part_key,
    rows_key,
    rows_range,
    source_range,
)
from storage.state_codec import encode_derived, encode_query, encode_source
from storage.tree_codec import encode_tree


class Save:
    """Collects the changes of one commit, in the order in which they were put.

    doubtful: keys in ``segments`` that an earlier, failed write may have left; they are deleted first.
    floors: for each source the ordinal below which nothing is stored, where that is known.
    """

    def __init__(
        self, database: Database, doubtful: Iterable[bytes], floors: Mapping[SourceName, int]
    ) -> None:
        self.changes = Changes()
        self.keys_put: set[bytes] = set()
        self.floors = dict(floors)
        self._database = database
        self._doubtful = frozenset(doubtful)
        self._put: dict[SourceName, dict[int, int]] = {}  # first ordinal -> end, of rows in this save
        self._emptied: set[SourceName] = set()
        self._cut: dict[SourceName, int] = {}  # no committed piece that begins below is there any more
        for key in sorted(self._doubtful):
            self.changes.delete(SEGMENTS, key)

    def put_source(self, state: SourceState) -> None:
        self.changes.put(SOURCES, name_key(state.stream.name), encode_source(state))

    def drop_source(self, source: SourceName) -> None:
        self.changes.delete(SOURCES, name_key(source))
        self.changes.delete_range(SEGMENTS, *source_range(source))
        self._put.pop(source, None)
        self._cut.pop(source, None)
        self.floors.pop(source, None)
        self._emptied.add(source)

    def put_derived(self, derived: Derived) -> None:
        self.changes.put(META, VIEW_PREFIX + name_key(derived.name), encode_derived(derived))

    def drop_derived(self, name: SourceName) -> None:
        self.changes.delete(META, VIEW_PREFIX + name_key(name))

    def put_query(self, state: QueryState) -> None:
        key = name_key(state.registration.query_id)
        self.changes.put(QUERIES, key, encode_query(state))
        self.changes.delete(SWAPPED, key)

    def swap_query(self, state: QueryState) -> None:
        key = name_key(state.registration.query_id)
        self.changes.put(SWAPPED, key, encode_query(state))
        self.changes.delete(QUERIES, key)

    def drop_query(self, query_id: str) -> None:
        self.changes.delete(QUERIES, name_key(query_id))
        self.changes.delete(SWAPPED, name_key(query_id))

    def put_held(self, state: HeldState) -> None:
        self.changes.put(META, held_key(state.over, state.source), encode_held(state))

    def drop_held(self, over: tuple[SourceName, ...], source: SourceName) -> None:
        self.changes.delete(META, held_key(over, source))

    def put_part(self, name: str, tree: Tree) -> None:
        self.changes.put(META, part_key(name), encode_tree(tree))

    def drop_part(self, name: str) -> None:
        self.changes.delete(META, part_key(name))

    def put_rows(self, source: SourceName, first_ordinal: int, rows: Batch, *, seal: bool) -> None:
        """A piece, or with ``seal`` a segment in place of all that begins among its ordinals."""
        if not len(rows):
            return
        end = first_ordinal + len(rows)
        key = rows_key(source, RowKind.VISIBLE, first_ordinal)
        put = self._put.setdefault(source, {})
        if seal:
            self.changes.delete_range(SEGMENTS, key, rows_key(source, RowKind.VISIBLE, end))
            for first in [first for first in put if first_ordinal <= first < end]:
                del put[first]
        put[first_ordinal] = end
        self._put_segment(key, rows)
        if self.floors.get(source, first_ordinal) > first_ordinal:
            self.floors[source] = first_ordinal

    def put_pending(self, source: SourceName, piece: int, rows: Batch) -> None:
        self._put_segment(rows_key(source, RowKind.PENDING, piece), rows)

    def drop_pending(self, source: SourceName, piece: int) -> None:
        self.changes.delete(SEGMENTS, rows_key(source, RowKind.PENDING, piece))

    def cut_rows(self, source: SourceName, below_ordinal: int) -> None:
        """Delete the pieces and segments that begin below. O(1)."""
        begin, _ = rows_range(source, RowKind.VISIBLE)
        self.changes.delete_range(SEGMENTS, begin, rows_key(source, RowKind.VISIBLE, below_ordinal))
        put = self._put.get(source, {})
        for first in [first for first in put if first < below_ordinal]:
            del put[first]
        self.floors.pop(source, None)
        self._cut[source] = max(below_ordinal, self._cut.get(source, below_ordinal))

    def drop_rows(self, source: SourceName, below_ordinal: int) -> None:
        """Delete the pieces and segments whose rows are all below. O(log pieces)."""
        cut = self._boundary(source, below_ordinal)
        floor = self.floors.get(source)
        if cut is None or (floor is not None and cut <= floor):
            return
        begin = rows_range(source, RowKind.VISIBLE)[0]
        if floor is not None:
            begin = rows_key(source, RowKind.VISIBLE, floor)
        self.changes.delete_range(SEGMENTS, begin, rows_key(source, RowKind.VISIBLE, cut))
        put = self._put.get(source, {})
        for first in [first for first in put if first < cut]:
            del put[first]
        self.floors[source] = cut

    def _put_segment(self, key: bytes, rows: Batch) -> None:
        self.changes.put(SEGMENTS, key, row_codec.encode(rows))
        self.keys_put.add(key)

    def _boundary(self, source: SourceName, below: int) -> int | None:
        """The last boundary between pieces that is not above ``below``; None where there are no rows."""
        pieces = []
        put = self._put.get(source, {})
        firsts = sorted(put)
        place = bisect_right(firsts, below)
        if place:
            pieces.append((firsts[place - 1], put[firsts[place - 1]]))
        stored = None if source in self._emptied else self._last_stored(source, below)
        if stored is not None and not any(first <= stored[0] < end for first, end in pieces):
            pieces.append(stored)
        return max((end if end <= below else first for first, end in pieces), default=None)

    def _last_stored(self, source: SourceName, below: int) -> tuple[int, int] | None:
        """(first ordinal, end) of the last committed piece that begins at or before ``below``."""
        begin = rows_range(source, RowKind.VISIBLE)[0]
        if source in self._cut:
            begin = rows_key(source, RowKind.VISIBLE, self._cut[source])
        last = rows_key(source, RowKind.VISIBLE, below)
        for key, value in self._database.scan_back(SEGMENTS, begin, last):
            if key not in self._doubtful:
                first = key_number(key)
                return first, first + row_codec.count(value, f"rows of {source} from ordinal {first}")
        return None
