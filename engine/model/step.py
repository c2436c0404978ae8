"""Steps: what an engine applies, one after another, and what each of them caused.

A step is atomic: its effects become visible together, at its end. Everything that decides an answer is in
the step, the clock included, so that the same steps give the same answers. Sequence numbers of one engine
count 1, 2, 3, ... without a gap; the epoch counts its owners.

Cutting one `Records` step into several with the same clock, where each names the partitions of the rest in
``lagging``, changes no answer: NOW and lateness are decided row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.model.allotment import Allotment
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.shed import Shed
from engine.model.source import Derived, SourceName, Stream
from engine.model.summary import SummaryDefinition, SummaryName, SummarySettings


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """After which step something is true. Opaque to clients; text form ``epoch-sequence``."""

    epoch: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.sequence}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The inverse of ``str``. Raises ValueError."""
        epoch, sequence = text.split("-")
        return cls(int(epoch), int(sequence))


BEGINNING = Position(0, 0)


Parameter = bool | int | float | str | None
Parameters = tuple[Parameter, ...] | Mapping[str, Parameter]

_NO_OPTIONS: Mapping[str, str] = {}
_NOTHING_PROMISED: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class Registration:
    """A query as it was published.

    weight: as its options ask for; None: as its text does. parameters: the values of the placeholders in
    ``sql``, by place or by name; None: ``sql`` has none (:mod:`engine.language.parameters`).
    """

    query_id: str
    sql: str
    weight: float | None = None
    options: Mapping[str, str] = field(default_factory=lambda: _NO_OPTIONS)
    parameters: Parameters | None = None


@dataclass(frozen=True, slots=True)
class CreateSource:
    """A stream comes to be. ``sql`` is the statement it was made by, kept for DESCRIBE and the store."""

    stream: Stream
    sql: str


@dataclass(frozen=True, slots=True)
class CreateDerived:
    """A view or a derived stream comes to be."""

    derived: Derived


@dataclass(frozen=True, slots=True)
class DropSource:
    """A stream goes with its rows, or a view. Refused while a query or a view reads it."""

    source: SourceName


@dataclass(frozen=True, slots=True)
class CreateSummary:
    """A summary comes to be, as if it had always been there. ``sql``: the statement, kept for DESCRIBE."""

    definition: SummaryDefinition
    sql: str


@dataclass(frozen=True, slots=True)
class AlterSummary:
    """A summary gets other settings; what its zones are made of changes from the next row on."""

    name: SummaryName
    settings: SummarySettings


@dataclass(frozen=True, slots=True)
class DropSummary:
    """A summary goes. Refused while a query uses it, unless ``forced``: such queries stand on with what they
    have found, and find nothing more until a summary of that name comes again, on the same attribute.
    """

    name: SummaryName
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """NOW of a source after a step, worked out elsewhere from rows that this engine sees some of only.

    None: there is none yet. It never goes back.
    """

    now_ms: int | None


@dataclass(frozen=True, slots=True)
class Records:
    """Rows of one source in the order of reading.

    Within a partition offsets ascend and follow those of earlier steps. ``lagging``: the partitions that
    have more records waiting in the log after this step (they hold NOW back even if they are quiet).
    ``next_offsets``: where reading goes on, per partition read by this step, past records that gave no
    row as well (dead letters, transaction markers).
    ``complete_from_ms``: rows of earlier instants may be missing, since a partition lacked its first records
    when it was read for the first time; None: nothing is known to. It counts from this step on.
    ``unreadable``: so many records were read besides that gave no row.
    ``unknown_schemas``: ids of schemas that some of these named and the registry did not know.
    ``decided``: NOW goes there; the rows have the instants they entered with where that was decided, and
    none of them is late or rejected. ``lagging`` then means nothing. One source has all its steps so, or
    none.
    ``shed``: which records queries that allow it do not see, all that the step reads; None: no. Of records
    that were passed over without being read, the batch has the last of each partition.
    ``grant``: units of work that queries with a preference may spend after the rows entered, all together;
    a stored row that is visited is one, in a join for each row that looks for partners there.
    """

    source: SourceName
    batch: Batch
    next_offsets: Mapping[int, int]
    lagging: frozenset[int] = frozenset()
    decided: Decided | None = None
    complete_from_ms: int | None = None
    unreadable: int = 0
    shed: Shed | None = None
    grant: int = 0
    unknown_schemas: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Backfill:
    """Rows from before what a stream retains: all it had at ``complete_from_ms <= timestamp < until_ms``.

    In (timestamp, partition, offset) order, as many as there are. ``until_ms``: the source's history
    boundary, which is ``retained_from_ms``, or while there is none the timestamp of the first retained row,
    or just above NOW where it has no row. Afterwards ``retained_from_ms`` is ``complete_from_ms``. Rows below
    the history boundary that are there for windows of the last n rows are replaced by these. Exempt from
    lateness; NOW, offsets and idleness do not move.

    Refused, and nothing changes: see :class:`tureen.errors.BackfillRefused` in ``StepResult.failed``.
    """

    source: SourceName
    batch: Batch
    complete_from_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The clock went on and no record came; ``lagging`` as in :class:`Records`.

    below: partition -> ms since 1970; a promise that no row of the partition below it follows. It counts as a
    record of the partition, unless its watermark is that far already: then it changes nothing.
    ``grant``: as in :class:`Records`.

    Refused, and nothing changes: see :class:`tureen.errors.HeartbeatRefused` in ``StepResult.failed``.
    """

    source: SourceName
    lagging: frozenset[int] = frozenset()
    below: Mapping[int, int] = field(default_factory=lambda: _NOTHING_PROMISED)
    grant: int = 0


@dataclass(frozen=True, slots=True)
class Register:
    """Queries come, all at one instant: they see every row before this step and every one after.

    One that stands with the same text and other options gets those. takes_back: whoever follows one that is
    paused is told that its answer goes, as in journals before version 6; else nothing until it runs again.
    """

    registrations: tuple[Registration, ...]
    takes_back: bool = False


@dataclass(frozen=True, slots=True)
class Alter:
    """Registered queries get other texts, with the options given here, all at one instant.

    Each is registered, and named once. One that is refused stays as it was.
    """

    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True)
class Allocate:
    """Queries are given other shares of what their texts ask for, all at one instant.

    allotments: (query id, allotment) of each that changes, named once; one that is empty gives all again. The
    registration, and the step after which the query stands, stay. Refused, and that query stays as it was:
    what the query does not tolerate, or what its changes could not go on from.
    """

    allotments: tuple[tuple[str, Allotment], ...]


@dataclass(frozen=True, slots=True)
class Unregister:
    """Queries go. Ids that are not registered are passed over."""

    query_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """An owner takes the steps over; no answer changes. owner: a text that no other owner has."""

    owner: str


@dataclass(frozen=True, slots=True)
class OutputWritten:
    """The changes of one query that one earlier step caused: the first ``rows`` of them are written."""

    sequence: int
    query_id: str
    rows: int


@dataclass(frozen=True, slots=True)
class Written:
    """Changes that earlier steps caused were written; no answer changes."""

    output: tuple[OutputWritten, ...]


@dataclass(frozen=True, slots=True)
class SetApart:
    """From now on what changes in the answers of these followed queries is worked out beside the steps, and
    told by the :class:`Rejoin` with their ids. Until then none of them can be changed, and no history comes
    to their sources. Ids of queries that are not followed, or are paused, are passed over.
    """

    query_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejoin:
    """Queries that were set apart are told, with the positions of the steps in which it changed, what changed
    since; later changes are told by the steps that cause them. Ids of others are passed over.
    """

    query_ids: tuple[str, ...]


Body = (
    CreateSource
    | CreateDerived
    | DropSource
    | CreateSummary
    | AlterSummary
    | DropSummary
    | Records
    | Backfill
    | Heartbeat
    | Register
    | Alter
    | Allocate
    | Unregister
    | Claim
    | Written
    | SetApart
    | Rejoin
)


@dataclass(frozen=True, slots=True)
class Step:
    """A body with its position and the worker's clock (ms since 1970) when it was made."""

    position: Position
    clock_ms: int
    body: Body


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that did not enter: ``row`` is its place in the step's batch."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Violations:
    """Rows of one source that broke a promise of it; ``reasons``: why, one a row.

    withheld: they did not enter. Others are in the stream; again: their values were there, and over, longer
    ago than RETAIN; else they lack the row that they refer to.
    """

    source: SourceName
    rows: Batch
    reasons: tuple[str, ...]
    withheld: bool = True
    again: bool = False


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step caused.

    now_ms: NOW of the step's source after it, None while it has none (or the step names no source).
    idle: the partitions that had records once and were idle after it; always empty in arrival time, and of
    history.
    entered: how many rows became visible.
    late: places in the step's batch of rows at or before NOW; they go to the late-records topic.
    rejected: rows whose timestamp lies too far ahead; they go to the dead letters.
    violations: rows that broke a promise, which may have come in earlier steps; they go to the late records.
    spent: units of the step's grant that queries with a preference used.
    failed: query id -> why a registration was refused; the others of the step went in.
    changes: of the answers of queries that are followed; several of one query in the order in which they are
    to be read. broken: query id -> why its changes could not be told; it is followed no more.
    continued: queries with another text or allotment that are followed on: ``changes`` has the difference of
    their two answers.
    gone: queries that were removed, or have another text and are not followed on.
    """

    position: Position
    now_ms: int | None = None
    idle: frozenset[int] = frozenset()
    entered: int = 0
    late: tuple[int, ...] = ()
    rejected: tuple[Refusal, ...] = ()
    failed: Mapping[str, Exception] = field(default_factory=dict)
    changes: tuple[Changes, ...] = ()
    broken: Mapping[str, Exception] = field(default_factory=dict)
    continued: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    violations: tuple[Violations, ...] = ()
    spent: int = 0
