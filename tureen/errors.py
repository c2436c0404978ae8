"""Every error that Tureen raises on purpose.

One root, :class:`TureenError`. A subclass carries a stable ``code`` and its facts as attributes; the
message is made from them, so that nobody ever has to parse a text. ``as_dict`` is the shape that HTTP,
the status topic and reply topics share: ``{code, message, line, column, hint}``.

A leaf: everything else may import it. It is one list, a class an error, so that a code is found at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

MIB = 1024 * 1024


class TureenError(Exception):
    """The root. ``hint`` says what to do or write instead; ``line`` and ``column`` count from 1."""

    code: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, hint: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return f"{self.message}{where}" + (f"\nhint: {self.hint}" if self.hint else "")

    def as_dict(self) -> dict[str, Any]:
        """The shape of an error on every interface."""
        return {name: getattr(self, name) for name in ("code", "message", "line", "column", "hint")}


# --- language -------------------------------------------------------------------------------------


class QueryError(TureenError):
    """A statement that is refused; the root of all refusals of a text."""

    code = "query_refused"


class SyntaxRefused(QueryError):
    """The text is not a statement of the language."""

    code = "syntax"


class ParametersRefused(QueryError):
    """The parameters of a statement are not those that its placeholders ask for."""

    code = "parameters_refused"


class UnknownSource(QueryError):
    """A statement names a stream that was not created. ``name`` is the missing one. kind: what it is taken
    for.
    """

    code = "unknown_source"

    def __init__(self, name: str, *, kind: str = "stream", **facts: Any) -> None:
        self.name = name
        super().__init__(f"there is no {kind} named {name!r}", **facts)


class UnknownSummary(UnknownSource):
    """A statement needs a summary that was not created. ``name``: the missing one, or the stream that has
    none for what is asked.
    """

    code = "unknown_summary"

    def __init__(self, name: str, message: str, **facts: Any) -> None:
        self.name = name
        QueryError.__init__(self, message, **facts)


class UnknownColumn(QueryError):
    """A statement names a column that the stream does not declare."""

    code = "unknown_column"

    def __init__(self, name: str, **facts: Any) -> None:
        self.name = name
        super().__init__(f"there is no column named {name!r}", **facts)


class TypeMismatch(QueryError):
    """Operands, arguments or a literal that do not fit the types around them."""

    code = "type_mismatch"


class NotSupported(QueryError):
    """Understood, but not supported; the hint says what to write instead."""

    code = "not_supported"


class PlanRefused(QueryError):
    """A plan that is none, or whose expressions are refused. ``path`` leads to what is wrong; line and column
    are those within an expression.
    """

    code = "plan_refused"

    def __init__(self, path: str, reason: str, **facts: Any) -> None:
        self.path = path
        super().__init__(f"{path}: {reason}", **facts)


class PlanIsAnother(TureenError):
    """A plan that would make a running query another one, instead of having it run in another way."""

    code = "plan_is_another"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: with this plan it would be another query",
            hint="change its text by PATCH or ALTER QUERY, or register the plan as a query of its own",
        )


class LimitExceeded(TureenError):
    """A limit was reached. ``limit`` is the setting's name, ``allowed`` its value, ``got`` what was asked."""

    code = "limit_exceeded"

    def __init__(self, limit: str, allowed: int, got: int | None = None, **facts: Any) -> None:
        self.limit = limit
        self.allowed = allowed
        self.got = got
        asked = f", asked for {got:,}" if got is not None else ""
        super().__init__(f"{limit} is {allowed:,}{asked}", **facts)


# --- queries and sources --------------------------------------------------------------------------


class UnknownQuery(TureenError):
    """No such query, or not yours: the two look the same on purpose."""

    code = "unknown_query"

    def __init__(self, **facts: Any) -> None:
        super().__init__("there is no query with this handle", **facts)


class HandleNeeded(UnknownQuery):
    """The public id of a query, or its name, was given where its handle is needed."""

    code = "handle_needed"

    def __init__(self, query_id: str, what: str = "public id", **facts: Any) -> None:
        self.query_id = query_id
        facts.setdefault(
            "hint",
            "the handle is the secret that its registration gave; the operator can end the query by its id: "
            f"tureen unregister {query_id}",
        )
        TureenError.__init__(self, f"this is a query's {what}; its handle is needed here", **facts)


class QueryPaused(TureenError):
    """The query was paused: it costs nothing and has no answer until it is resumed."""

    code = "query_paused"

    def __init__(self, **facts: Any) -> None:
        facts.setdefault(
            "hint",
            "resume it: its answer is then as if it had never been paused, unless its rows were released",
        )
        super().__init__("this query is paused", **facts)


class OptionRefused(TureenError):
    """A registration's option that is unknown or has a value it cannot have."""

    code = "option_refused"


class ValueRefused(TureenError):
    """A value that cannot be sent, such as NaN, or a period that ends before it begins."""

    code = "value_refused"


class HandleInUse(TureenError):
    """A handle is registered already with another statement."""

    code = "handle_in_use"

    def __init__(self, query_id: str, **facts: Any) -> None:
        self.query_id = query_id
        super().__init__(f"query {query_id} is registered with another statement", **facts)


class NameInUse(TureenError):
    """Another query has this name."""

    code = "name_in_use"


class SourceConflict(TureenError):
    """A source of this name exists with another definition."""

    code = "source_conflict"


class SummaryConflict(TureenError):
    """A summary of this name exists with another definition, or something needs it as it is."""

    code = "summary_conflict"


class InstantOutOfRange(TureenError):
    """An earlier instant was asked for that is after NOW, or before the first that can be answered.

    In ms since 1970. ``earliest_ms`` is None where no instant bounds it; ``latest_ms`` is NOW.
    """

    code = "instant_out_of_range"

    def __init__(self, at_ms: int, earliest_ms: int | None, latest_ms: int, **facts: Any) -> None:
        self.at_ms = at_ms
        self.earliest_ms = earliest_ms
        self.latest_ms = latest_ms
        if at_ms > latest_ms:
            message = f"the instant {_iso(at_ms)} is after NOW, which is {_iso(latest_ms)}"
        elif earliest_ms is not None and at_ms < earliest_ms:
            message = f"the instant {_iso(at_ms)} is before {_iso(earliest_ms)}, the first with an answer"
        else:
            message = f"there is no answer for the instant {_iso(at_ms)}"
        super().__init__(message, **facts)

    def as_dict(self) -> dict[str, Any]:
        """With the instants that can be answered as ``facts``."""
        known = {"at_ms": self.at_ms, "earliest_ms": self.earliest_ms, "latest_ms": self.latest_ms}
        return {**super().as_dict(), "facts": known}


class InstantRefused(TureenError):
    """What was given as an instant is none."""

    code = "instant_refused"

    def __init__(self, given: object, **facts: Any) -> None:
        self.given = given
        facts.setdefault("hint", "give ms since 1970, a date, a datetime, or text like 2013-07-01T12:00:00Z")
        super().__init__(f"{str(given)[:40]!r} is not an instant", **facts)


class HistoryUnavailable(TureenError):
    """An answer needs rows that only the archive has, and it cannot be asked now: try again later.

    It cannot be read, has yet to receive what is gone from memory, or has too much to do.
    """

    code = "history_unavailable"


class NotArchived(TureenError):
    """An answer needs rows of a stream that are no longer in memory, and it is not archived."""

    code = "not_archived"

    def __init__(self, source: str, **facts: Any) -> None:
        self.source = source
        facts.setdefault("hint", "archive it with: tureen spark run archive")
        super().__init__(f"stream {source} is not archived", **facts)


def _iso(ms: int) -> str:
    """ISO 8601 in UTC with the ms; the number where no calendar has such a day."""
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class MustRefetch(TureenError):
    """What came after a change position is no longer known: fetch the answer anew and go on from there."""

    code = "must_refetch"

    def __init__(self, **facts: Any) -> None:
        facts.setdefault("hint", "ask again without a position: the current answer comes first")
        super().__init__("the changes after this position are no longer kept", **facts)


class PositionRefused(TureenError):
    """A change position that is malformed, or another query's."""

    code = "position_refused"


class TooManyFeeds(TureenError):
    """As many change feeds, or streams of events, are open as the broker allows."""

    code = "too_many_feeds"

    def __init__(self, allowed: int, what: str = "change feeds", **facts: Any) -> None:
        self.allowed = allowed
        facts.setdefault("hint", "try again later, or poll; the setting is feeds_max")
        super().__init__(f"{allowed:,} {what} are open, and no more are allowed", **facts)


class StepOutOfOrder(TureenError):
    """A step does not follow the last one: a defect of the caller, never of data."""

    code = "step_out_of_order"


class HeartbeatRefused(TureenError):
    """A heartbeat with an instant that a stream does not take."""

    code = "heartbeat_refused"


class BackfillRefused(TureenError):
    """Rows from before what a stream retains that do not go before it.

    ``boundary_ms``: in ms since 1970, they have to end just before it; None where the source takes none.
    """

    code = "backfill_refused"

    def __init__(self, source: str, reason: str, boundary_ms: int | None, **facts: Any) -> None:
        self.source = source
        self.boundary_ms = boundary_ms
        super().__init__(f"{source} refuses this history: {reason}", **facts)


# --- Kafka ----------------------------------------------------------------------------------------


UNCONFIRMED = "Kafka did not confirm the write; it may or may not have taken effect; repeating is safe"


class KafkaUnavailable(TureenError):
    """No Kafka answers at the configured address. ``handle``: of a registration that was not confirmed: made
    again with this one, it is one query.
    """

    code = "kafka_unavailable"
    handle: str | None = None


class TopicPolicyMismatch(TureenError):
    """A topic exists with settings under which the broker would lose data."""

    code = "topic_policy_mismatch"

    def __init__(
        self,
        topic: str,
        setting: str,
        expected: str,
        found: str,
        *others: tuple[str, str, str],
        **facts: Any,
    ) -> None:
        """others: what else is wrong: setting, expected, found."""
        self.topic = topic
        self.setting = setting
        self.expected = expected
        self.found = found
        self.others = others
        wrong = [
            f"{name}={is_}, it must be {must}" for name, must, is_ in ((setting, expected, found), *others)
        ]
        super().__init__(f"topic {topic} has {'; and '.join(wrong)}", **facts)


class TopicMissing(TureenError):
    """A topic that must exist does not, or was deleted while in use."""

    code = "topic_missing"

    def __init__(self, topic: str, **facts: Any) -> None:
        self.topic = topic
        super().__init__(f"topic {topic} does not exist", **facts)


class TopicRecreated(TureenError):
    """The topic under a stream is not the one whose records were read."""

    code = "topic_recreated"

    def __init__(self, topic: str, **facts: Any) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic} was deleted and created again: its offsets now refer to other records", **facts
        )


class Fenced(TureenError):
    """Another owner took this shard over; whoever sees this must stop writing."""

    code = "fenced"


class OutputConflict(TureenError):
    """Queries that share a result topic must agree; this one differs in ``what`` from those that stand."""

    code = "output_conflict"

    def __init__(self, topic: str, what: str, wanted: str, found: str, **facts: Any) -> None:
        self.topic = topic
        self.what = what
        self.wanted = wanted
        self.found = found
        super().__init__(f"the queries that write to {topic} have {what} {found}, this one {wanted}", **facts)


class OutputRefused(TureenError):
    """A result topic is there, and takes none of what is to be written to it."""

    code = "output_refused"

    def __init__(self, topic: str, reason: str, **facts: Any) -> None:
        self.topic = topic
        super().__init__(f"topic {topic} refuses records: {reason}", **facts)


class ChangesBroken(TureenError):
    """The changes of a query's answer could not be told whole, so that none are told any more.

    cure: what is to be done first.
    """

    code = "changes_broken"

    def __init__(self, reason: str, cure: str | None = None, **facts: Any) -> None:
        hint = "what was written remains; register it under another handle, and its answer is written again"
        facts.setdefault("hint", f"{cure}; {hint}" if cure else hint)
        super().__init__(f"the changes of this query could not be written completely: {reason}", **facts)


class InternalError(TureenError):
    """A defect of the broker in the work of one query, which ended that query alone.

    incident: under which the broker's log has it; the same each time the same place fails in the same way.
    trace: type and place of the defect, for the log; no values of rows.
    """

    code = "internal_error"

    def __init__(self, incident: str, trace: str = "", **facts: Any) -> None:
        facts.setdefault(
            "hint",
            f"look for {incident} in the log of the broker, and report what it says; the query does not come "
            "back by itself: once the defect is mended, register it again",
        )
        super().__init__(f"a defect of the broker ended this query: incident {incident}", **facts)
        self.incident = incident
        self.trace = trace


class RegistryUnavailable(TureenError):
    """No schema registry answers at the configured address."""

    code = "registry_unavailable"


class SchemaRefused(TureenError):
    """The schema registry does not take a schema for a subject."""

    code = "schema_refused"

    def __init__(self, subject: str, reason: str, **facts: Any) -> None:
        self.subject = subject
        super().__init__(f"the schema registry refused the schema of {subject}: {reason}", **facts)


class EmbeddedKafkaError(TureenError):
    """The embedded Kafka could not be started, found or stopped."""

    code = "embedded_kafka"


# --- storage --------------------------------------------------------------------------------------


class StoreError(TureenError):
    """The root of what can go wrong with the local store."""

    code = "store"


class StoreInUse(StoreError):
    """Another process owns this directory."""

    code = "store_in_use"


class StoreMismatch(StoreError):
    """A directory has the state of another service, or of topics that Kafka does not have."""

    code = "store_mismatch"


class DirectoryNotPrivate(StoreError):
    """Other users of the machine can read or replace a directory that holds state."""

    code = "directory_not_private"


class StoreFull(StoreError):
    """The store cannot be written: no space, or no right to write. Nothing is lost, the shard waits."""

    code = "store_full"


class StoreVersionUnknown(StoreError):
    """The store was written by a version this one does not read."""

    code = "store_version"


class StoreCorrupt(StoreError):
    """A stored value does not decode."""

    code = "store_corrupt"


# --- precision ------------------------------------------------------------------------------------


class AllotmentRefused(TureenError):
    """A query is not given less of something: it does not tolerate that, or its answer could not go on."""

    code = "allotment_refused"


class MoveRefused(TureenError):
    """Memory cannot be moved from one synopsis to another: one has nothing to give, or has no room."""

    code = "move_refused"


class PrecisionUnreachable(TureenError):
    """What a query tolerates cannot be kept with the memory and the time there are; it is answered as well as
    they allow. ``fp``, ``fn``, ``error`` are what is expected of its answer; None: nothing is.
    """

    code = "precision_unreachable"

    def __init__(self, fp: float | None, fn: float | None, error: float | None, **facts: Any) -> None:
        self.fp = fp
        self.fn = fn
        self.error = error
        shares = {"wrong rows": fp, "missing rows": fn, "error": error}
        told = ", ".join(f"{name} {100 * one:.3g} %" for name, one in shares.items() if one is not None)
        super().__init__(
            f"max_fp, max_fn or max_error cannot be kept; expected are {told}",
            hint="raise the query's weight, or what it tolerates, or give the broker more memory",
            **facts,
        )


# --- service --------------------------------------------------------------------------------------


class PackageMissing(TureenError):
    """A Python package that a call needs and Tureen does not bring. ``package`` is its name."""

    code = "package_missing"

    def __init__(self, package: str, **facts: Any) -> None:
        self.package = package
        super().__init__(f"{package} is not installed", **facts)


class BrokerUnavailable(TureenError):
    """The broker does not answer, or is not ready yet."""

    code = "broker_unavailable"


class MemoryBudgetExceeded(TureenError):
    """The broker has too little memory left for something. ``used_bytes`` of ``budget_bytes`` are in use."""

    code = "memory_budget"

    def __init__(self, what: str, used_bytes: int, budget_bytes: int, **facts: Any) -> None:
        self.used_bytes = used_bytes
        self.budget_bytes = budget_bytes
        super().__init__(
            f"{what}: {used_bytes / MIB:,.0f} MiB are in use of a memory budget of "
            f"{budget_bytes / MIB:,.0f} MiB",
            **facts,
        )


class MemoryPaused(TureenError):
    """The broker has paused a query to free memory. ``because``: what it kept of what budget."""

    code = "memory_paused"

    def __init__(self, because: str, **facts: Any) -> None:
        self.because = because
        facts.setdefault(
            "hint", "resume it with room, or with TUREEN_STATE_BYTES_MAX above that: it is as if never paused"
        )
        super().__init__(f"paused by the broker: {because}", **facts)


class BeingPrepared(TureenError):
    """What a query needs of the rows that are there is being made; it stands when that is done. ``progress``:
    the share that is made, 0 to 1.
    """

    code = "being_prepared"

    def __init__(self, progress: float, **facts: Any) -> None:
        self.progress = round(progress, 3)
        facts.setdefault("hint", "it stands as soon as that is done; unregister it to give it up")
        super().__init__(
            "what it needs of the rows that are there is being made, a slice at a time: "
            f"{100 * progress:.0f}% is done",
            **facts,
        )

    def as_dict(self) -> dict[str, Any]:
        """With the progress among ``facts``."""
        return {**super().as_dict(), "facts": {"progress": self.progress}}


class BeingRegistered(TureenError):
    """A registration is on its way. ``shard``: the one that has it; None: it waits behind others."""

    code = "being_registered"

    def __init__(self, shard: int | None = None, **facts: Any) -> None:
        self.shard = shard
        facts.setdefault("hint", "it stands as soon as it was carried out; unregister it to give it up")
        where = "waits behind others" if shard is None else f"is with shard {shard}, which is at work"
        super().__init__(f"its registration {where}", **facts)

    def as_dict(self) -> dict[str, Any]:
        """With the shard among ``facts``."""
        return {**super().as_dict(), "facts": {"shard": self.shard}}


class BeingRemoved(TureenError):
    """A query is about to go: its answer, which is taken back, is being made."""

    code = "being_removed"

    def __init__(self, **facts: Any) -> None:
        facts.setdefault("hint", "it goes as soon as that is done; nothing else is to be done for that")
        super().__init__("it is being removed: its answer is made, which its followers take back", **facts)


class PreparationTooLong(TureenError):
    """What a query needs of the rows that are there took longer to be made than ``allowed_ms``."""

    code = "preparation_too_long"

    def __init__(self, allowed_ms: int) -> None:
        self.allowed_ms = allowed_ms
        super().__init__(
            f"what it needs of the rows that are there took longer to be made than {allowed_ms:,} ms",
            hint="see whether a function of yours ends, narrow the window or the condition, or let "
            "preparation_ms_max allow more",
        )


class RegistrationEndsWorker(TureenError):
    """Workers died while they carried out a registration; it is not tried again."""

    code = "registration_ends_worker"

    def __init__(self, query_id: str, lives: int) -> None:
        self.query_id = query_id
        self.lives = lives
        super().__init__(
            f"{lives} workers died while they carried out this registration, the last one alone with it",
            hint="see the stacks in the broker's log; a function or a condition that does not end is to be "
            "mended, then unregister the query and register it again",
        )


class ShardHeld(TureenError):
    """A shard does not come back by itself, for the reason of ``cause``: its code is among the facts."""

    code = "shard_held"

    def __init__(self, shard: int, cause: str, why: str, **facts: Any) -> None:
        self.shard = shard
        self.cause = cause
        facts.setdefault(
            "hint",
            "unregister queries or drop streams that it does not need to have, or raise "
            "TUREEN_MEMORY_BUDGET_BYTES and start again; `tureen resume --held` has it try as it is",
        )
        super().__init__(f"shard {shard} is held: {why}", **facts)


class UnknownEntity(TureenError):
    """There is no entity with this id, or it is gone."""

    code = "unknown_entity"

    def __init__(
        self, entity: str, *, hint: str = "GET /entities, or `tureen entity list`, has them all"
    ) -> None:
        self.entity = entity
        super().__init__(f"there is no entity {entity!r}", hint=hint)


class EditConflict(TureenError):
    """An entity was changed since it was read: ``version`` is that of now."""

    code = "edit_conflict"

    def __init__(self, entity: str, version: int) -> None:
        self.entity = entity
        self.version = version
        super().__init__(
            f"{entity} was changed meanwhile; its version is {version}",
            hint="read it again, and send that version as if_version",
        )


class NotAllowed(TureenError):
    """Only the operator may do this: who has the broker's token, or calls from its own machine."""

    code = "not_allowed"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"only the operator may {what}",
            hint="give the broker's token, or call from its own machine; name a query of yours by its handle",
        )


class SettingsError(TureenError):
    """A setting is out of range, or two settings contradict each other."""

    code = "settings"


class AttributeRefused(SettingsError):
    """An attribute that cannot have a value: it is not there, can only be read, or has bounds."""

    code = "attribute_refused"

    def __init__(
        self, entity: str, name: str, value: Any, settable: Sequence[str], accepts: str | None = None
    ) -> None:
        """settable: what can be set. accepts: what the attribute does; None: there is none of this name."""
        self.entity = entity
        self.attribute = name
        told = f"{entity} has no attribute {name!r}"
        if accepts is not None:
            told = f"{name} of {entity} cannot be set to {value!r}: {accepts}"
        can = f"can be set: {', '.join(settable)}" if settable else "nothing of it can be set"
        super().__init__(told, hint=can)
