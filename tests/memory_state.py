"""A store in memory behind the engine's persistence interfaces: small, real, and strict about its callers.

Nothing counts before ``commit``; a commit that is told to fail leaves the store as it was. What an engine
hands over is checked: rows without gaps, seals over exactly the pieces they replace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

from engine.model.batch import Batch
from engine.model.persistence import HeldState, QueryState, SourceState
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.source import Derived, SourceName
from engine.model.state_tree import Tree
from engine.model.step import Position
from storage.tree_codec import decode_tree, encode_tree
from tureen.errors import StoreFull


class MemoryState:
    """A StateSink and a StateSource over the same dictionaries."""

    def __init__(self) -> None:
        self.full = False
        self._position: Position | None = None
        self._sources: dict[SourceName, SourceState] = {}
        self._rows: dict[SourceName, dict[int, Batch]] = {}
        self._pending: dict[SourceName, dict[int, Batch]] = {}
        self._queries: dict[str, QueryState] = {}
        self._swapped: dict[str, QueryState] = {}
        self._derived: dict[SourceName, Derived] = {}
        self._held: dict[tuple[tuple[SourceName, ...], SourceName], HeldState] = {}
        self._parts: dict[str, bytes] = {}
        self._staged: list[Callable[[], None]] = []

    # --- sink ---------------------------------------------------------------------------------------

    def put_source(self, state: SourceState) -> None:
        def put() -> None:
            self._sources[state.stream.name] = state
            self._rows.setdefault(state.stream.name, {})
            self._pending.setdefault(state.stream.name, {})

        self._staged.append(put)

    def drop_source(self, source: SourceName) -> None:
        def drop() -> None:
            self._sources.pop(source, None)
            self._rows.pop(source, None)
            self._pending.pop(source, None)

        self._staged.append(drop)

    def put_derived(self, derived: Derived) -> None:
        self._staged.append(lambda: self._derived.update({derived.name: derived}))

    def drop_derived(self, name: SourceName) -> None:
        self._staged.append(lambda: self._derived.pop(name, None) and None)

    def append_rows(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        def append() -> None:
            pieces = self._rows.setdefault(source, {})
            assert all(first + len(piece) <= first_ordinal for first, piece in pieces.items()), (
                "rows come twice"
            )
            pieces[first_ordinal] = rows

        assert len(rows), "nothing to append"
        self._staged.append(append)

    def seal(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        def seal() -> None:
            pieces = self._rows.setdefault(source, {})
            end = first_ordinal + len(rows)
            for first in [first for first in pieces if first_ordinal <= first < end]:
                assert first + len(pieces[first]) <= end, (
                    "a piece reaches beyond the segment that replaces it"
                )
                del pieces[first]
            assert not any(f < first_ordinal < f + len(p) for f, p in pieces.items()), (
                "a segment begins in a piece"
            )
            pieces[first_ordinal] = rows

        self._staged.append(seal)

    def cut_rows(self, source: SourceName, below_ordinal: int) -> None:
        def cut() -> None:
            pieces = self._rows.setdefault(source, {})
            for first in [first for first in pieces if first < below_ordinal]:
                del pieces[first]

        self._staged.append(cut)

    def drop_rows(self, source: SourceName, below_ordinal: int) -> None:
        def drop() -> None:
            pieces = self._rows.setdefault(source, {})
            for first in [first for first, rows in pieces.items() if first + len(rows) <= below_ordinal]:
                del pieces[first]

        self._staged.append(drop)

    def put_pending(self, source: SourceName, piece: int, rows: Batch) -> None:
        def put() -> None:
            pieces = self._pending.setdefault(source, {})
            assert piece not in pieces, "a pending piece is written once"
            assert not pieces or piece > max(pieces), "pending pieces ascend"
            pieces[piece] = rows

        self._staged.append(put)

    def drop_pending(self, source: SourceName, piece: int) -> None:
        self._staged.append(lambda: self._pending.setdefault(source, {}).pop(piece, None) and None)

    def put_query(self, state: QueryState) -> None:
        query_id = state.registration.query_id
        self._staged.append(lambda: self._queries.update({query_id: state}))
        self._staged.append(lambda: self._swapped.pop(query_id, None) and None)

    def swap_query(self, state: QueryState) -> None:
        query_id = state.registration.query_id
        self._staged.append(lambda: self._swapped.update({query_id: state}))
        self._staged.append(lambda: self._queries.pop(query_id, None) and None)

    def drop_query(self, query_id: str) -> None:
        self._staged.append(lambda: self._queries.pop(query_id, None) and None)
        self._staged.append(lambda: self._swapped.pop(query_id, None) and None)

    def swapped_query(self, query_id: str) -> QueryState | None:
        return self._swapped.get(query_id)

    def swapped_queries(self) -> Iterable[QueryState]:
        return list(self._swapped.values())

    def put_held(self, state: HeldState) -> None:
        self._staged.append(lambda: self._held.update({(state.over, state.source): state}))

    def drop_held(self, over: tuple[SourceName, ...], source: SourceName) -> None:
        self._staged.append(lambda: self._held.pop((over, source), None) and None)

    def put_part(self, name: str, tree: Tree) -> None:
        encoded = encode_tree(tree)
        self._staged.append(lambda: self._parts.update({name: encoded}))

    def drop_part(self, name: str) -> None:
        self._staged.append(lambda: self._parts.pop(name, None) and None)

    def commit(self, position: Position) -> None:
        staged, self._staged = self._staged, []
        if self.full:
            raise StoreFull("the store is full")
        for change in staged:
            change()
        self._position = position

    # --- source -------------------------------------------------------------------------------------

    def position(self) -> Position | None:
        return self._position

    def sources(self) -> Iterable[SourceState]:
        """Streams by way of their plain form, as from any store: equal to what came, and other objects."""
        return [
            replace(state, stream=stream_from_dict(stream_as_dict(state.stream)))
            for state in self._sources.values()
        ]

    def derived(self) -> Iterable[Derived]:
        return list(self._derived.values())

    def rows(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        pieces = sorted(self._rows.get(source, {}).items())
        for (first, rows), (following, _) in pairwise(pieces):
            assert first + len(rows) == following, "stored rows have a gap"
        return pieces

    def pending(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        return sorted(self._pending.get(source, {}).items())

    def queries(self) -> Iterable[QueryState]:
        return list(self._queries.values())

    def held(self) -> Iterable[HeldState]:
        return list(self._held.values())

    def state_parts(self, prefix: str) -> Iterable[tuple[str, Tree]]:
        return [
            (name, decode_tree(value, name))
            for name, value in sorted(self._parts.items())
            if name.startswith(prefix)
        ]
