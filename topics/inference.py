"""What a topic holds, guessed from some of its records: columns, the event timestamp, the key of a table.

Only what records say is looked at; nothing is created. The result is as sure as the sample is: what may be
wrong is a warning. Cost: O(bytes of the sample * types).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.model.paths import Path, path_text
from engine.model.record_format import METADATA
from engine.model.source import DAY_MS, Field
from engine.model.types import TIMESTAMP, Type
from engine.model.units import unit_of
from topics.careful import BadRecord, Pairs, at_path, bounded_pairs_of, converted
from topics.codec import DEPTH_MAX
from topics.inferred_columns import (
    EXAMPLES,
    InferredColumn,
    LeftOut,
    Observed,
    Sampled,
    column_name,
    few_of,
    infer,
    is_written,
    leaves,
    named_alike,
    observe,
    path_name,
    speaks_of_time,
)
from topics.inferred_keys import keys_of
from topics.members import folded
from tureen.errors import TypeMismatch, UnknownColumn

LOG_TIME = "_timestamp"
"""The column that is the log's timestamp of a record."""
NAMES_TOLD = 20
FAR_AHEAD_MS = DAY_MS
"""A timestamp further ahead of Kafka's own than this is not taken for the event timestamp."""
LATENESS_MS = (
    1_000,
    5_000,
    10_000,
    30_000,
    60_000,
    300_000,
    600_000,
    1_800_000,
    3_600_000,
    21_600_000,
    DAY_MS,
)
_FIRST_NAMES = ("event_time", "eventtime", "timestamp", "ts", "time", "event_ts", "at")


@dataclass(frozen=True, slots=True)
class EventTime:
    """The column of event time. from_ms, to_ms: the least and the greatest instant in the sample.
    disorder_ms: how much earlier a row is at most than one before it in its partition. lateness_ms: allows
    for that.
    """

    column: str
    from_ms: int
    to_ms: int
    disorder_ms: int
    lateness_ms: int


@dataclass(frozen=True, slots=True)
class Inferred:
    """columns: those of the key first. key: columns of the message key, of a table; none: a stream."""

    columns: tuple[InferredColumn, ...]
    left_out: tuple[LeftOut, ...]
    event_time: EventTime | None
    key: tuple[str, ...] = ()

    def fields(self) -> tuple[Field, ...]:
        """As they are declared: what has to be there is NOT NULL."""
        required = {*self.key, *([self.event_time.column] if self.event_time else [])}
        return tuple(Field(one.name, one.type, one.name not in required, one.path) for one in self.columns)


@dataclass(frozen=True, slots=True)
class Rules:
    """What columns may be. admits: whether SQL takes a name for one. columns_max: of a source. declared:
    types that a schema tells, by path. timestamp: the column of event time, where it is known. is_old: that
    may lie as far back as its source says.
    """

    admits: Callable[[str], bool]
    columns_max: int
    declared: Mapping[Path, Type] = field(default_factory=dict)
    timestamp: str | None = None
    is_old: bool = False


def infer_stream(records: Sequence[Sampled], rules: Rules, *, event_time: bool = True) -> Inferred:
    """A stream over these records. event_time: look for a timestamp column. Raises UnknownColumn,
    TypeMismatch where the one that is known is none.
    """
    columns, left_out = _columns(records, rules)
    found = _timestamp(columns, records, rules, event_time=event_time)
    return Inferred(tuple(columns), tuple(left_out), found)


def infer_table(records: Sequence[Sampled], rules: Rules, *, event_time: bool = True) -> Inferred | None:
    """A table over these records; None: their keys are none of a table. As :func:`infer_stream`."""
    columns, left_out = _columns(records, rules)
    keyed = keys_of(records, columns, rules.admits)
    if not keyed:
        return None
    names = {one.name for one in keyed}
    others = [one for one in columns if one.name not in names]
    there = [one for one in records if one.value is not None]
    found = _timestamp(others, there, rules, event_time=event_time)
    return Inferred((*keyed, *others), tuple(left_out), found, tuple(one.name for one in keyed))


def infer_raw(
    records: Sequence[Sampled], column: InferredColumn, rules: Rules, *, as_table: bool
) -> Inferred | None:
    """A stream or a table over records that are one column each; None: their keys are none of a table. Raises
    UnknownColumn where a column of event time is known.
    """
    if rules.timestamp not in (None, LOG_TIME):
        raise UnknownColumn(str(rules.timestamp), hint=f"there are {column.name} and {LOG_TIME}")
    keyed = keys_of(records, (), rules.admits) if as_table else []
    if as_table and not keyed:
        return None
    return Inferred((*keyed, column), (), None, tuple(one.name for one in keyed))


def with_log_time(inferred: Inferred, records: Sequence[Sampled], columns_max: int) -> Inferred:
    """With the log's timestamp as the column of event time, in the place of the last one where there are as
    many as a source has.
    """
    if len(inferred.columns) >= columns_max:
        *kept, last = inferred.columns
        why = f"a source has at most {columns_max:,} columns"
        left_out = (*inferred.left_out, LeftOut(last.member, why, last.values, last.examples))
        inferred = replace(inferred, columns=tuple(kept), left_out=left_out)
    told = "no column is an instant that every record has; Kafka's timestamp of each record is the event time"
    examples = tuple(str(one.at_ms) for one in records[:EXAMPLES])
    column = InferredColumn(LOG_TIME, LOG_TIME, TIMESTAMP, len(records), examples, told)
    known = [(record, record.at_ms) for record in sorted(records, key=_read_order)]
    return replace(inferred, columns=(*inferred.columns, column), event_time=_with_lateness(LOG_TIME, known))


def _timestamp(
    columns: list[InferredColumn], records: Sequence[Sampled], rules: Rules, *, event_time: bool
) -> EventTime | None:
    """The column of event time; one that is known becomes a TIMESTAMP among the columns."""
    name = rules.timestamp
    if name is None or name == LOG_TIME or not columns:
        return _event_time(columns, records) if event_time and name is None else None
    place = next((at for at, one in enumerate(columns) if one.name in (name, name.lower())), None)
    if place is None:
        raise UnknownColumn(name, hint="there are " + ", ".join(one.name for one in columns[:NAMES_TOLD]))
    column = replace(columns[place], type=TIMESTAMP, guessed=None)
    told = [(record, _members(record)) for record in sorted(records, key=_read_order)]
    rows = [(record, members) for record, members in told if members is not None]
    instants = [(record, _instant(column, members)) for record, members in rows]
    known = [(record, ms) for record, ms in instants if ms is not None]
    if len(known) < len(rows) - few_of(len(rows)):
        raise TypeMismatch(
            f"{column.name} is no instant in {len(rows) - len(known):,} of {len(rows):,} sampled records",
            hint="event time is a TIMESTAMP that every record has, from ms since 1970 or from text",
        )
    units = Counter(unit_of(ms, record.at_ms) for record, ms in known)
    unit = None if rules.is_old else next((one for one, _ in units.most_common(1)), None)
    if unit is not None:
        raise TypeMismatch(
            f"{column.name} looks like {unit} since 1970 in {units[unit]:,} of {len(rows):,} sampled records",
            hint="event time is read from ms since 1970 or from text: have the producer write these, or let "
            f"WITH (timestamp = '{LOG_TIME}') take Kafka's timestamps; {_in_queries(column.name, unit)}",
        )
    columns[place] = column
    return _with_lateness(column.name, known) if known else EventTime(column.name, 0, 0, 0, 0)


def _in_queries(name: str, unit: str) -> str:
    """How a query makes an instant of a BIGINT in another unit."""
    instant = {
        "seconds": f"TIMESTAMP_SECONDS({name})",
        "microseconds": f"TO_TIMESTAMP({name} / 1000)",
    }.get(unit, f"TO_TIMESTAMP({name} / 1000000)")
    return f"the column is a BIGINT then, and {instant} its instant in queries"


def _columns(records: Sequence[Sampled], rules: Rules) -> tuple[list[InferredColumn], list[LeftOut]]:
    told: list[tuple[Pairs, int]] = []
    for record in records:
        if record.value is not None:
            try:
                told.append((bounded_pairs_of(record.value, DEPTH_MAX), record.at_ms))
            except BadRecord:
                continue
    seen = observe(told)
    alike = named_alike({*seen, *(str(path[0]) for path in rules.declared if len(path) == 1)})
    columns: list[InferredColumn] = []
    left_out: list[LeftOut] = []
    for path, one in _in_schema_order(seen, rules.declared):
        type_ = rules.declared.get(path)
        if len(path) == 1 and path[0] not in METADATA:
            made = _column(str(path[0]), one, alike, type_, rules)
        else:
            taken = {*map(str.lower, seen), *(known.name for known in columns), *METADATA}
            made = _inner_column(path, one, taken, type_, rules)
        member = made.member
        if isinstance(made, InferredColumn) and len(columns) >= rules.columns_max:
            made = LeftOut(
                member, f"a source has at most {rules.columns_max:,} columns", made.values, made.examples
            )
        (columns if isinstance(made, InferredColumn) else left_out).append(made)  # type: ignore[arg-type]
    # Without a column of its own name a member would be read by the column that differs in letter case alone.
    without = {folded(one.member) for one in left_out}
    why = "its name differs in letter case alone from one that is left out"
    for unsure in [one for one in columns if folded(one.member) in without]:
        columns.remove(unsure)
        left_out.append(LeftOut(unsure.member, why, unsure.values, unsure.examples))
    return columns, left_out


def _in_schema_order(
    seen: Mapping[str, Observed], declared: Mapping[Path, Type]
) -> list[tuple[Path, Observed]]:
    """The leaves in the order of the schema; what it leaves open, behind what stands before it in records."""
    order = {path: place for place, path in enumerate(declared)}
    before, placed = -1, []
    for path, one in leaves(seen, declared=declared):
        place = order.get(path)
        if place is not None and path[0] in seen:
            before = place
        placed.append(((before, True) if place is None else (place, False), (path, one)))
    return [one for _, one in sorted(placed, key=lambda each: each[0])]


def _column(
    member: str, one: Observed, alike: Counter[tuple[str, bool]], declared: Type | None, rules: Rules
) -> InferredColumn | LeftOut:
    name = column_name(member, alike[folded(member)])
    made = infer(member, name, one, declared)
    if isinstance(made, InferredColumn) and not rules.admits(name):
        return LeftOut(member, "SQL takes no such name for a column", made.values, made.examples)
    return made


def _inner_column(
    path: Path, one: Observed, taken: Container[str], declared: Type | None, rules: Rules
) -> InferredColumn | LeftOut:
    """A column with a PATH. taken: names of other columns."""
    text = path_text(path)
    made = infer(str(path[-1]), path_name(path, taken), one, declared)
    if isinstance(made, LeftOut):
        return replace(made, member=text)
    if not is_written(text):
        return LeftOut(text, "SQL takes no such name", made.values, made.examples)
    if not rules.admits(made.name):
        made = replace(made, name=path_name(("member",), taken))
        if not rules.admits(made.name):
            return LeftOut(text, "SQL takes no such name for a column", made.values, made.examples)
    return replace(made, member=text, path=path)


def _event_time(columns: Sequence[InferredColumn], records: Sequence[Sampled]) -> EventTime | None:
    """The column whose instants every record has but for a few of many, none far ahead: by its name, else the
    nearest to Kafka's timestamps.
    """
    best: tuple[tuple[int, float], EventTime] | None = None
    told = [(record, _members(record)) for record in sorted(records, key=_read_order)]
    rows = [(record, members) for record, members in told if members is not None]
    for column in columns:
        if column.type != TIMESTAMP or not rows:
            continue
        instants = [(record, _instant(column, members)) for record, members in rows]
        known = [
            (record, ms) for record, ms in instants if ms is not None and ms - record.at_ms <= FAR_AHEAD_MS
        ]
        if len(known) < len(rows) - few_of(len(rows)):
            continue
        rank = _FIRST_NAMES.index(column.name) if column.name in _FIRST_NAMES else len(_FIRST_NAMES)
        rank += 0 if speaks_of_time(column.member) else 1
        distances = sorted(abs(ms - record.at_ms) for record, ms in known)
        found = _with_lateness(column.name, known)
        if best is None or (rank, distances[len(distances) // 2]) < best[0]:
            best = (rank, distances[len(distances) // 2]), found
    return None if best is None else best[1]


def _with_lateness(name: str, known: Sequence[tuple[Sampled, int]]) -> EventTime:
    """known: in the order in which each partition is read."""
    latest: dict[int, int] = {}
    disorder_ms = 0
    for record, ms in known:
        before = latest.get(record.partition, ms)
        disorder_ms = max(disorder_ms, before - ms)
        latest[record.partition] = max(before, ms)
    lateness_ms = (
        next((one for one in LATENESS_MS if one >= disorder_ms), LATENESS_MS[-1]) if disorder_ms else 0
    )
    instants = [ms for _, ms in known]
    return EventTime(name, min(instants), max(instants), disorder_ms, lateness_ms)


def _read_order(record: Sampled) -> tuple[int, int]:
    return record.partition, record.offset


def _members(record: Sampled) -> Pairs | None:
    if record.value is None:
        return None
    try:
        return bounded_pairs_of(record.value, DEPTH_MAX)
    except BadRecord:
        return None


def _instant(column: InferredColumn, members: Pairs) -> int | None:
    """In ms since 1970; None: it has none."""
    value: Any
    try:
        if column.path is not None:
            value = at_path(column.name, column.path, members)
        else:
            value = next((one for name, one in members if folded(name) == folded(column.member)), None)
        if value is None:
            return None
        found = converted(Field(column.name, TIMESTAMP), value)
    except BadRecord:
        return None
    return int(found)
