"""Message shapes and names that clients and the broker share.

A *handle* is the secret that fetches an answer; it has 160 random bits and is never logged. The *query
id* is derived from it, public, and the key of everything about the query on Kafka. A client can make
both alone, so publishing a query needs no reply.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Literal, NewType

Handle = NewType("Handle", str)
QueryId = NewType("QueryId", str)

QueryState = Literal["PENDING", "RUNNING", "PAUSED", "ERROR"]
SnapshotFormat = Literal["json", "ndjson", "csv", "arrow"]

HANDLE_BYTES = 20
QUERY_ID_CHARACTERS = 26
"""Base32 characters of the SHA-256 that make the query id: 130 bits."""

HEADER_CORRELATION_ID = "tureen-correlation-id"
HEADER_CHUNK = "tureen-chunk"
HEADER_CHUNKS = "tureen-chunks"
HEADER_STATUS = "tureen-status"
"""``ok``: the chunks concatenate to the answer. ``error``: the only chunk is an error as JSON."""
HEADER_FORMAT = "tureen-format"
HEADER_POSITION = "tureen-position"
HEADER_NOW_MS = "tureen-now-ms"
HEADER_CHANGE_POSITION = "tureen-change-position"
"""On a snapshot: where its changes go on, to be given as ``since``."""

HEADER_APPROXIMATION = "tureen-approximation"
"""On a snapshot, and on records of changes of a query that is not exact: its tags, a JSON array. The last may
be ``{"more": n}`` where so many others would be too long for a header. Without it an answer is exact."""
METADATA_APPROXIMATION = "tureen.approximation"
"""All tags of an answer, a JSON array, in the metadata of an Arrow schema; without it an answer is exact."""

HEADER_CATCHING_UP = "tureen-catching-up"
"""On a snapshot: its sources that have not yet what their topics held when their reading began, a JSON array
as of the tags. Without it there is none, or the broker is an older one."""
METADATA_COMPLETE = "tureen.complete"
METADATA_CATCHING_UP = "tureen.catching_up"
METADATA_CONDITION_ERRORS = "tureen.condition_errors"
"""In the metadata of an Arrow schema, where the answer is not complete, or so many rows are not in it since
their condition could not be computed."""

METADATA_WARNINGS = "tureen.warnings"
"""In the metadata of an Arrow schema over Flight SQL: what the answer lacks, in words, a JSON array."""

HEADER_AT_MS = "tureen-at-ms"
HEADER_OCCASION = "tureen-occasion"
"""On records of changes, with the position: their instant; ``snapshot`` or ``end`` where it is no step's."""

HEADER_HEARTBEAT = "tureen-heartbeat"
"""On a record of a stream that is no row: ms since 1970 below which no row of its partition follows."""

HEADER_REASON = "tureen-reason"
HEADER_TOPIC = "tureen-topic"
HEADER_PARTITION = "tureen-partition"
HEADER_OFFSET = "tureen-offset"
"""These four are on every record of the late-records and dead-letters topics."""
HEADER_CUT = "tureen-cut-from-bytes"
"""On one of them that was too large to be passed on whole: how many bytes the record had."""

SUMMARY_KEY = "summary:"
"""What the key of a record about a summary begins with, on the topic of streams; its name follows. Summaries
have names of their own, so that a stream and a summary may share one."""


_TOKEN = re.compile(r"[!-~]([ -~]*[!-~])?")
TOKEN_TEXT = "a token has printable ASCII characters alone, and no space at its ends"


def is_token(text: str) -> bool:
    """Whether a text can be a bearer token: a header carries it as it is."""
    return _TOKEN.fullmatch(text) is not None


def new_handle() -> Handle:
    """A fresh secret of 160 random bits, in lower-case base32."""
    return Handle(base64.b32encode(secrets.token_bytes(HANDLE_BYTES)).decode("ascii").lower())


def query_id(handle: str) -> QueryId:
    """The public id of the query that this handle opens.

    >>> query_id("demo")
    'fklvc3bvjnuijdg33d2uuitkbj'
    """
    digest = hashlib.sha256(handle.encode("utf-8")).digest()
    return QueryId(base64.b32encode(digest).decode("ascii").lower()[:QUERY_ID_CHARACTERS])


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The names of a service's topics, all under its ``service_id``."""

    service_id: str = "tureen"

    @property
    def queries(self) -> str:
        return f"{self.service_id}.queries"

    @property
    def sources(self) -> str:
        return f"{self.service_id}.sources"

    @property
    def status(self) -> str:
        return f"{self.service_id}.status"

    @property
    def plans(self) -> str:
        """The plans of the registered queries, for readers."""
        return f"{self.service_id}.plans"

    @property
    def steps(self) -> str:
        return f"{self.service_id}.steps"

    @property
    def snapshot_requests(self) -> str:
        return f"{self.service_id}.snapshot-requests"

    @property
    def results(self) -> str:
        """Rows of answers by key, shared by all queries that name no topic."""
        return f"{self.service_id}.results"

    @property
    def results_log(self) -> str:
        """As :attr:`results`, for changes that are not rows by key."""
        return f"{self.service_id}.results.log"

    def results_into(self, name: str) -> str:
        """The topic of ``EMIT CHANGES INTO name``."""
        return f"{self.service_id}.results.{name}"

    @property
    def late(self) -> str:
        return f"{self.service_id}.late"

    @property
    def dead_letters(self) -> str:
        return f"{self.service_id}.dead-letters"

    @property
    def control_group(self) -> str:
        """The consumer group that a broker is the only member of."""
        return f"{self.service_id}-control"

    @property
    def reply_prefix(self) -> str:
        """A topic that asks for replies must start with this."""
        return f"{self.service_id}.replies."

    def is_own(self, topic: str) -> bool:
        """Whether a topic is one of the service's, or Kafka's."""
        return topic.startswith((f"{self.service_id}.", f"{self.control_group}-", "__"))
