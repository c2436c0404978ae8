"""The statements that declare Nexmark's three streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.language.query import CreateStream
from spark_jobs.nexmark.events import AUCTION, BID, KINDS, PERSON
from spark_jobs.nexmark.settings import NexmarkSettings
from spark_jobs.sources.declaring import declared_stream

COLUMNS: Final[Mapping[str, str]] = {
    PERSON: """
    id BIGINT NOT NULL, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING,
    date_time TIMESTAMP NOT NULL, extra STRING""",
    AUCTION: """
    id BIGINT NOT NULL, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,
    date_time TIMESTAMP NOT NULL, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING""",
    BID: """
    auction BIGINT NOT NULL, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    date_time TIMESTAMP NOT NULL, extra STRING""",
}
KEYS: Final[Mapping[str, str]] = {PERSON: "id", AUCTION: "id", BID: "auction"}
"""Columns that become the records' keys: a bid lies where its auction does."""


def statements(
    settings: NexmarkSettings, *, prefix: str = "", partitions: int = 1, retain: str | None = None
) -> dict[str, CreateStream]:
    """The statement of each kind of event; topics are named as the streams.

    prefix: before the streams' names. retain: as SQL has it, such as ``30 DAYS``. The lateness is what the
    disorder needs. Raises QueryError.
    """
    return {kind: declared_stream(_sql(kind, settings, prefix, partitions, retain)) for kind in KINDS}


def _sql(kind: str, settings: NexmarkSettings, prefix: str, partitions: int, retain: str | None) -> str:
    options = {"topic": f"{prefix}{kind}", "timestamp": "date_time"}
    listed = [f"{name} = '{value}'" for name, value in options.items()]
    if settings.lateness_ms:
        listed.append(f"lateness = '{settings.lateness_ms} milliseconds'")
    if partitions > 1:
        listed.append(f"partitions = {partitions}")
    kept = f" RETAIN {retain}" if retain else ""
    return f"CREATE STREAM {prefix}{kind} ({COLUMNS[kind]}\n) WITH ({', '.join(listed)}){kept}"
