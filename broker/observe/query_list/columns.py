"""What is known of every query but for figures, as columns: one row a query, in no order.

A row is one query's as long as that is there; ``born`` tells it from the one that has the row afterwards.
Searched is the text with its parameters, the id and the names that it reads, in lower case, in blocks of
4,096 rows: a block is made again when one of its rows changes.

Not thread-safe: one thread at a time. Memory: some 250 bytes a query, and 1 to 4 for each character of which
is searched, at most :data:`SEARCHED_MAX` a text.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from broker.base.entries import QueryEntry
from engine.language.cutting import without_constants
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.source import SourceName
from engine.standing.query import SetKey, StandingQuery
from engine.stems.match_place import Place

BLOCK = 4_096
SEARCHED_MAX = 2_000
"""Most characters of a text and its parameters that are searched, and sorted by."""
STATES = ("RUNNING", "PAUSED", "PENDING", "ERROR")
MODES = ("auto", "none", "lazy", "eager")
NO_SHARD = -1
NO_SOURCE = -1
ALL_ROWS = -1
"""As a place: the query has no predicate, so all rows match."""
ROW_BYTES = 250
"""Bytes of a row besides its text: its cells, its id, and where that is found."""

Int8Array = npt.NDArray[np.int8]
Reads = tuple[tuple[str, ...], tuple[str, ...]]
"""The sources of a query, and the views that its text names."""
Matched = tuple[SourceName, Place]
"""A predicate's source, and where its matches are kept."""


Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Codes(Generic[Key]):
    """Small numbers of values."""

    numbers: dict[Key, int] = field(default_factory=dict)
    values: list[Key] = field(default_factory=list)

    def of(self, value: Key) -> int:
        """The number of a value, a new one if it is new."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
        return number


class Columns:
    """state, mode: places in STATES and MODES. reads, set_key, shape: by their codes. shard: NO_SHARD of what
    does not stand. match_source, match_place: of the one predicate whose matches are kept, by ``sources``;
    NO_SOURCE where there is none or, in ``several``, more than one. version: another one after each change of
    what is searched, filtered or sorted by.
    """

    # One attribute a column, and the codes of those that have some: it stays one class, as all columns have
    # the same rows, which are taken, given back and made more of together.

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.ids: list[str] = []
        self.version = 0
        self.reads_of = Codes[Reads]()
        self.sets = Codes[SetKey]()
        self.shapes = Codes[str]()
        self.sources = Codes[SourceName]()
        self.several: dict[int, tuple[Matched, ...]] = {}
        """By row with several predicates that keep matches: these predicates."""
        self.alive: BoolArray = np.zeros(BLOCK, np.bool_)
        self.paused: BoolArray = np.zeros(BLOCK, np.bool_)
        self.born: Int64Array = np.zeros(BLOCK, np.int64)
        self.state: Int8Array = np.zeros(BLOCK, np.int8)
        self.mode: Int8Array = np.zeros(BLOCK, np.int8)
        self.shard: Int32Array = np.full(BLOCK, NO_SHARD, np.int32)
        self.reads: Int32Array = np.zeros(BLOCK, np.int32)
        self.set_key: Int32Array = np.full(BLOCK, -1, np.int32)
        self.shape: Int32Array = np.full(BLOCK, -1, np.int32)
        self.match_source: Int32Array = np.full(BLOCK, NO_SOURCE, np.int32)
        self.match_place: Int64Array = np.full(BLOCK, ALL_ROWS, np.int64)
        self.births = 0
        self._free: list[int] = []
        self._shape_ids: list[str] = []
        self._searched: list[pa.Array | None] = []
        self._names: list[pa.Array] = []
        self._ranks: dict[str, tuple[int, Int32Array]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        """Rows that there are, taken or free."""
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """About what is held."""
        texts: int = sum(block.nbytes for block in (*self._searched, *self._names) if block is not None)
        shapes: int = sum(sys.getsizeof(shape) for shape in self.shapes.values)
        ranks: int = sum(ranks.nbytes for _, ranks in self._ranks.values())
        return ROW_BYTES * self.size + texts + shapes + ranks

    @property
    def is_wasteful(self) -> bool:
        """Whether most of what is held is of queries that went: then it is better made again."""
        room = 2 * len(self.rows) + BLOCK
        return self.size > room or len(self.shapes.values) > room or len(self.reads_of.values) > room

    # --- changes ----------------------------------------------------------------------------------

    def update(
        self,
        names: Iterable[str],
        entries: Mapping[str, QueryEntry],
        standing: Mapping[int, Mapping[str, StandingQuery]],
    ) -> None:
        """Take in queries that have come, changed or gone. entries: as they are now; standing: by shard.
        O(names), and O(BLOCK) for each block of which a row changes.
        """
        for name in names:
            entry = entries.get(name)
            row = self.rows.get(name)
            if entry is None:
                if row is not None:
                    self._remove(name, row)
                continue
            shard = entry.shard
            query = None if shard is None or shard not in standing else standing[shard].get(name)
            self._put(self._place(name) if row is None else row, entry, query)
            self.version += 1
        self._search_again(entries)

    def update_standing(self, queries: Iterable[StandingQuery]) -> None:
        """Take in how these queries stand now."""
        for query in queries:
            row = self.rows.get(query.query_id)
            if row is not None:
                self._stands(row, query)

    def _place(self, name: str) -> int:
        """A row for a query that came."""
        if self._free:
            row = self._free.pop()
            self.ids[row] = name
        else:
            row = self.size
            self.ids.append(name)
            if row == len(self.alive):
                self._grow()
            if row // BLOCK == len(self._searched):
                self._searched.append(None)
                self._names.append(None)
        self.rows[name] = row
        self.births += 1
        self.born[row], self.alive[row] = self.births, True
        return row

    def _put(self, row: int, entry: QueryEntry, query: StandingQuery | None) -> None:
        self.state[row] = STATES.index(entry.state) if entry.state in STATES else STATES.index("PENDING")
        self.reads[row] = self.reads_of.of((entry.sources, entry.uses))
        self.shape[row] = -1
        self.shard[row], self.set_key[row] = NO_SHARD, -1
        self._forget_matches(row)
        wanted = str(entry.options.get("maintenance", "auto")).lower()
        self.mode[row] = MODES.index(wanted) if wanted in MODES else 0
        self.paused[row] = entry.state == "PAUSED"
        self._searched[row // BLOCK] = None
        if query is not None and entry.shard is not None:
            self.shard[row] = entry.shard
            self._stands(row, query)

    def _stands(self, row: int, query: StandingQuery) -> None:
        mode = MODES.index(query.maintenance)
        if self.mode[row] != mode or self.paused[row] != query.paused:
            self.version += 1
        self.mode[row], self.paused[row] = mode, query.paused
        self.set_key[row] = self.sets.of(query.set_key)
        self._matches(row, query)

    def _matches(self, row: int, query: StandingQuery) -> None:
        """Note where matches are kept. O(1), but of several sources O(the size of the query)."""
        self._forget_matches(row)
        if len(query.sources) == 1 and len(query.slots) < 2:
            if query.slots or query.keeps_matches:
                self.match_source[row] = self.sources.of(query.sources[0])
                self.match_place[row] = query.slots[0] if query.slots else ALL_ROWS
        elif query.slots:
            of = [source for source, _ in query.query.predicates()]
            self.several[row] = tuple(zip(of, query.slots, strict=True))

    def _forget_matches(self, row: int) -> None:
        self.several.pop(row, None)
        self.match_source[row], self.match_place[row] = NO_SOURCE, ALL_ROWS

    def _remove(self, name: str, row: int) -> None:
        del self.rows[name]
        self.alive[row] = False
        self.ids[row] = ""
        self.shard[row] = NO_SHARD
        self._forget_matches(row)
        self._free.append(row)
        self._searched[row // BLOCK] = None
        self.version += 1

    def _grow(self) -> None:
        more = len(self.alive)
        for name, fill in (
            ("alive", False),
            ("paused", False),
            ("born", 0),
            ("state", 0),
            ("mode", 0),
            ("shard", NO_SHARD),
            ("reads", 0),
            ("set_key", -1),
            ("shape", -1),
            ("match_source", NO_SOURCE),
            ("match_place", ALL_ROWS),
        ):
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.full(more, fill, held.dtype)]))

    # --- texts ------------------------------------------------------------------------------------

    def _search_again(self, entries: Mapping[str, QueryEntry]) -> None:
        for number, block in enumerate(self._searched):
            if block is None:
                ids = self.ids[BLOCK * number : BLOCK * (number + 1)]
                texts = [searched(name, entries.get(name)) for name in ids]
                self._searched[number] = pa.array(texts, pa.binary())
                self._names[number] = pa.array(ids, pa.string())

    def containing(self, words: Iterable[str]) -> BoolArray:
        """bool[size]: rows whose text, parameters, id, name or names of sources contain all these,
        whatever their case.
        """
        found: BoolArray = self.alive[: self.size].copy()
        texts = pa.chunked_array(self._searched, pa.binary())
        for word in words:
            has = pc.match_substring(texts, word.casefold().encode("utf-8", "replace"))
            found &= has.to_numpy().astype(np.bool_)
        return found

    def reading(self, source: str) -> BoolArray:
        """bool[size]: rows that read a stream, a table or a view, by its name."""
        codes = [code for code, of in enumerate(self.reads_of.values) if source in of[0] or source in of[1]]
        return np.isin(self.reads[: self.size], codes)

    def shape_codes(self, entries: Mapping[str, QueryEntry]) -> Int32Array:
        """int32[size]: the code of each row's text without constants; -1 of rows without a text. O(new rows *
        length).
        """
        shapes = self.shape[: self.size]
        for row in np.flatnonzero((shapes == -1) & self.alive[: self.size]).tolist():
            entry = entries.get(self.ids[row])
            if entry is not None and entry.sql is not None:
                shapes[row] = self.shapes.of(without_constants(entry.sql))
        return shapes

    def shape_ids(self) -> list[str]:
        """Short ids of shapes, by their codes; the same after a restart."""
        self._shape_ids += [shape_id(shape) for shape in self.shapes.values[len(self._shape_ids) :]]
        return self._shape_ids

    def rank(self, by: str) -> Int32Array:
        """int32[size]: places of rows in the order of their ids (by ``id``) or texts (by ``text``).

        O(n log n) after a change, then O(1).
        """
        known = self._ranks.get(by)
        if known is not None and known[0] == self.version:
            return known[1]
        blocks = self._names if by == "id" else self._searched
        order = pc.sort_indices(
            pa.chunked_array(blocks, pa.string() if by == "id" else pa.binary())
        ).to_numpy()
        ranks = np.empty(self.size, np.int32)
        ranks[order] = np.arange(self.size, dtype=np.int32)
        self._ranks[by] = self.version, ranks
        return ranks

    def _check(self) -> None:
        assert int(self.alive.sum()) == len(self.rows)
        for name, row in self.rows.items():
            assert self.alive[row]
            assert self.ids[row] == name
        assert len(self._free) + len(self.rows) == self.size
        assert len(set(self.born[: self.size][self.alive[: self.size]].tolist())) == len(self.rows)


def shape_id(shape: str) -> str:
    """The id of a text without constants: eight letters and digits."""
    digest = hashlib.blake2b(shape.encode("utf-8", "replace"), digest_size=5).digest()
    return base64.b32encode(digest).decode().lower()


def searched(name: str, entry: QueryEntry | None) -> bytes:
    """What is searched of a query: the begin of its text and parameters, its id, its name, the names that it
    reads.
    """
    if entry is None:
        return b""
    text = entry.sql or ""
    if entry.parameters is not None:
        text += "\n" + orjson.dumps(entry.parameters).decode()
    names = "\n".join((name, entry.query_name or "", *entry.sources, *entry.uses))
    return f"{text[:SEARCHED_MAX]}\n{names}".casefold().encode("utf-8", "replace")
