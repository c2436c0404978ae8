"""What becomes of records that a step took up, besides changes: they are counted, and those that are no rows
of their stream go into the transaction as letters.

Of a replica, which another shard has as well, only its home does either.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Message

from broker.base.counts import Counts
from broker.base.placement import shard_of
from broker.shard.context import ShardContext
from broker.shard.outbox import Letter, Outgoing
from broker.shard.taken import TakenRows
from engine.model.step import StepResult
from topics.event_times import SECONDS, years_as_seconds
from topics.letters import forwarded


def is_home(context: ShardContext, name: str) -> bool:
    """Whether a stream that is read in a shard is no replica."""
    return shard_of([name], context.settings.shards) == context.number


def account(
    context: ShardContext,
    taken: TakenRows,
    refused: Sequence[tuple[int, str]],
    result: StepResult,
    entered: int,
    outgoing: Outgoing,
) -> None:
    """A step of records was made, by which so many rows entered. refused: places of heartbeats among the
    records that the stream does not take, and why.
    """
    if is_home(context, taken.body.source):
        _forward(context, taken, refused, result, outgoing)
        _count(context.counts, taken, refused, result, entered)


def _forward(
    context: ShardContext,
    taken: TakenRows,
    refused: Sequence[tuple[int, str]],
    result: StepResult,
    outgoing: Outgoing,
) -> None:
    """Letters of what was read and is no row of its stream."""
    names, bytes_max = context.settings.names, context.settings.record_bytes_max

    def send(topic: str, message: Message, reason: str) -> None:
        value, key, headers = forwarded(message, reason, bytes_max)
        outgoing.letters.append(Letter(topic, value, key, headers=headers))

    for place, reason in (*taken.bad, *refused):
        send(names.dead_letters, taken.messages[place], reason)
    for refusal in result.rejected:
        send(names.dead_letters, taken.messages[taken.rows[refusal.row]], refusal.reason)
    if not result.late:
        return
    like_seconds = years_as_seconds(taken.body.batch.timestamp[list(result.late)])
    for row, looks_so in zip(result.late, like_seconds.tolist(), strict=True):
        reason = f"late; the timestamp {SECONDS}" if looks_so else "late"
        send(names.late, taken.messages[taken.rows[row]], reason)


def _count(
    counts: Counts,
    taken: TakenRows,
    refused: Sequence[tuple[int, str]],
    result: StepResult,
    entered: int,
) -> None:
    name, shed = taken.body.source, taken.body.shed
    counts.records[name] += taken.count
    if shed is not None:
        counts.shed[name] += taken.count
        counts.unread[name] += shed.unread
    counts.bytes[name] += taken.size
    counts.read(name, taken.body.batch)
    counts.entered[name] += entered
    counts.late[name] += len(result.late)
    counts.dead_letters[name] += len(taken.bad) + len(refused) + len(result.rejected)
    counts.heartbeats[name] += len(taken.promises) - len(refused)
