"""A query waits for a source that is missing: whether a topic has its name, which somebody may have meant."""

from __future__ import annotations

import asyncio

from broker.base.internal import Outcome
from broker.node.node import Node
from tureen.errors import TureenError, UnknownSource
from tureen.literals import name as name_sql
from tureen.protocol import TopicNames


async def with_topic(node: Node, names: TopicNames, missing: str | None, outcome: Outcome) -> Outcome:
    """The outcome of a registration, with a hint at the topic of the name of the source that is missing,
    where there is one. names: whose own topics are not told of. Kafka is asked where a source is missing.
    """
    error = outcome.get("error")
    if missing is None or error is None or error["code"] != UnknownSource.code or names.is_own(missing):
        return outcome
    try:
        found = await asyncio.to_thread(node.setup.admin.describe, [missing])
    except TureenError:  # Kafka is away, or no topic can have the name
        return outcome
    if found[missing] is None:
        return outcome
    statement = f"CREATE STREAM {name_sql(missing)} FROM TOPIC '{missing}'"
    hint = f"there is a topic {missing}: {statement} infers its columns"
    return {**outcome, "error": {**error, "hint": hint}}
