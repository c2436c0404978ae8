"""How the engine's state leaves and comes back: interfaces that ``storage`` implements.

The engine says what changed since the last save; the store makes all of it durable at once, with the
position, or none of it. Local state is a cache of the journal: a store may lag behind, the steps past its
position are replayed. Match bits are not stored: they are computed again from rows and queries at restore.

Rows of a source have *ordinals*: int64, ascending in (timestamp, partition, offset) order, without gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from engine.model.allotment import Allotment
from engine.model.batch import Batch, Int64Array
from engine.model.last_answer import LastAnswer
from engine.model.shed import ShedRun
from engine.model.source import Derived, SourceName, Stream
from engine.model.state_tree import Tree
from engine.model.step import Position, Registration

UNREAD = -1


@dataclass(frozen=True, slots=True)
class PartitionClock:
    """One partition's part of a source's time.

    timestamp_max_ms: the largest timestamp seen, None before the first row.
    active_clock_ms: the clock of the last step that brought a record or a heartbeat, None before the first.
    next_offset: where reading goes on; UNREAD: nothing of it was read yet.
    promised_ms: no row at or before this instant follows, as a heartbeat said; None: none did.
    """

    timestamp_max_ms: int | None
    active_clock_ms: int | None
    next_offset: int
    promised_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """What is known of one constraint besides what the retained rows tell.

    broken: rows that broke it. bound: of ORDERED, of all but the last k rows the largest value, as a number
    that orders as the values do; None: there is none. open: of CLUSTERED, of each value that is not over the
    numbers of its last and its first row, and how many rows it has. unchecked_from: of REFERENCES, the number
    of the first row of which it is not known whether it is kept; None: the other stream is elsewhere. past:
    of CLUSTERED and UNIQUE, hashes of values that no retained row has, int64 in the order of this machine.
    runs: instead, of one column of whole numbers, the first and then the last ones of the runs that such
    values make up. forgotten: how many values are in neither; of REFERENCES, how many rows were not checked.
    """

    broken: int = 0
    bound: int | None = None
    open: tuple[tuple[int, int, int], ...] = ()
    unchecked_from: int | None = None
    past: bytes = b""
    forgotten: int = 0
    runs: bytes = b""


@dataclass(frozen=True, slots=True)
class PromiseState:
    """The state of all constraints of a stream, in their order. rows: how many entered, by whose count rows
    have numbers. since: the position with which a constraint was first broken. withheld_ms: the instant of
    the last row that did not enter, None: all did. touched: the queries that lack such a row, or may.
    """

    rows: int
    constraints: tuple[ConstraintState, ...]
    since: Position | None = None
    withheld_ms: int | None = None
    touched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceState:
    """Everything about a source but its rows.

    base, end: the retained visible rows are the ordinals base <= o < end. origin: rows below it never were.
    complete_from_ms: rows of earlier instants may be missing among those; None: none are. late, rejected,
    unreadable: records that gave no row, by why, since the clock was counted_from_ms; None: since a time that
    is not known. promises: None of a stream without constraints. sheds: which of its rows were shed, oldest
    first.
    """

    stream: Stream
    sql: str
    now_ms: int | None
    clock_ms: int
    retained_from_ms: int | None
    base: int
    end: int
    late: int
    rejected: int
    partitions: Mapping[int, PartitionClock] = field(default_factory=dict)
    origin: int = 0
    complete_from_ms: int | None = None
    unreadable: int = 0
    counted_from_ms: int | None = None
    promises: PromiseState | None = None
    sheds: tuple[ShedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryState:
    """A registered query. ``predicate_errors``: for each of its predicates with kept matches, the rows so
    far for which it ended as an error. last: of a followed query that is paused, the answer told last; None:
    nothing was told, or it was taken back. allotment: what it is given, since the step allotted_at; None: all
    that its text asks for.
    """

    registration: Registration
    born: Position
    predicate_errors: tuple[int, ...]
    last: LastAnswer | None = None
    allotment: Allotment | None = None
    allotted_at: Position | None = None


@dataclass(frozen=True, slots=True)
class HeldState:
    """What joins of followed queries need of a stream, beside the rows that it retains.

    over: the streams that these queries read; source: one of them. first: the first ordinal that is retained,
    None: nobody asked yet. needed: int64, ascending, ordinals of rows that are needed, of those below
    needed_below; None: all may be. rows: those that the stream let go of, ordinals: theirs, let_go: the
    sequence numbers of the steps in which it did, int64[n] each.
    """

    over: tuple[SourceName, ...]
    source: SourceName
    first: int | None
    needed: Int64Array
    needed_below: int | None
    ordinals: Int64Array
    let_go: Int64Array
    rows: Batch


class StateSink(Protocol):
    """Takes one save. Nothing is durable before :meth:`commit`, everything is after it."""

    def put_source(self, state: SourceState) -> None:
        """Create or replace; comes with every save for every source that changed."""

    def drop_source(self, source: SourceName) -> None:
        """The source and all its rows."""

    def put_derived(self, derived: Derived) -> None:
        """A view or a derived stream: create or replace."""

    def drop_derived(self, name: SourceName) -> None: ...

    def append_rows(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        """Rows that became visible since the last save, the next ordinals without a gap."""

    def seal(self, source: SourceName, first_ordinal: int, rows: Batch) -> None:
        """A full segment: takes the place of the pieces appended for exactly these ordinals."""

    def cut_rows(self, source: SourceName, below_ordinal: int) -> None:
        """Pieces and segments that begin below this ordinal go whole, even if they reach beyond it. What is
        still needed of their rows follows, under other ordinals perhaps.
        """

    def drop_rows(self, source: SourceName, below_ordinal: int) -> None:
        """Rows with lower ordinals may go; whole pieces or segments, when all their rows are below."""

    def put_pending(self, source: SourceName, piece: int, rows: Batch) -> None:
        """Rows that arrived since the last save and are not visible yet, under an ascending number."""

    def drop_pending(self, source: SourceName, piece: int) -> None:
        """All rows of that piece are visible by now."""

    def put_query(self, state: QueryState) -> None: ...

    def drop_query(self, query_id: str) -> None:
        """Also one that is swapped out. Harmless where there is none."""

    def swap_query(self, state: QueryState) -> None:
        """A query is swapped out: the store has it, where ``queries`` does not give it. :meth:`put_query` of
        its id ends that.
        """

    def put_held(self, state: HeldState) -> None:
        """Create or replace what is held of a stream for queries over some."""

    def drop_held(self, over: tuple[SourceName, ...], source: SourceName) -> None:
        """Nothing of it is held any more."""

    def put_part(self, name: str, tree: Tree) -> None:
        """State that is a tree, of a part that is found by its name: create or replace. Names are paths,
        such as ``promising/7``; the tree is not changed afterwards by whoever hands it over.
        """

    def drop_part(self, name: str) -> None:
        """A part is no more."""

    def commit(self, position: Position) -> None:
        """Make this save durable in one write. Raises StoreFull and leaves the store as it was."""


class StateSource(Protocol):
    """Gives back what the last commit made durable."""

    def position(self) -> Position | None:
        """The position of the last commit; None: the store is empty."""

    def sources(self) -> Iterable[SourceState]: ...

    def derived(self) -> Iterable[Derived]: ...

    def rows(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        """(first ordinal, rows) of segments and pieces, ascending, without gaps, from base or below."""

    def pending(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        """(piece, rows), ascending; rows with timestamp <= NOW are visible already: pass them over."""

    def queries(self) -> Iterable[QueryState]: ...

    def held(self) -> Iterable[HeldState]:
        """In any order."""

    def state_parts(self, prefix: str) -> Iterable[tuple[str, Tree]]:
        """(name, tree) of each part whose name begins so, by name."""


class SwappedQueries(Protocol):
    """Gives the queries that are swapped out, as of the last commit."""

    def swapped_query(self, query_id: str) -> QueryState | None:
        """One of them; None: it is none."""

    def swapped_queries(self) -> Iterable[QueryState]:
        """All, by id."""
