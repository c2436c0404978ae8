"""Records as people look at them: keys and values as text, cut where they are long; letters with reasons.

Nothing here decodes a record as a row: that is :mod:`topics.keyed`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tureen.protocol import HEADER_CUT, HEADER_OFFSET, HEADER_PARTITION, HEADER_REASON, HEADER_TOPIC

if TYPE_CHECKING:
    from confluent_kafka import Message

    from topics.letters import Headers


@dataclass(frozen=True, slots=True)
class Text:
    """A key or a value. text: its first characters; of what is no UTF-8, hexadecimal digits. bytes: its whole
    size. cut: whether text is not all of it.
    """

    text: str
    bytes: int
    cut: bool
    is_hex: bool

    def as_dict(self) -> dict[str, Any]:
        return {"text": self.text, "bytes": self.bytes, "cut": self.cut, "hex": self.is_hex}


def text_of(data: bytes | None, bytes_max: int) -> Text | None:
    """What of a key or a value is shown, at most ``bytes_max`` bytes of it; None: it is null.

    >>> text_of(b"abcdef", 4)
    Text(text='abcd', bytes=6, cut=True, is_hex=False)
    >>> text_of(bytes([0, 255]), 4).text
    '00ff'
    """
    if data is None:
        return None
    part = data[:bytes_max]
    cut = len(part) < len(data)
    try:
        return Text(part.decode("utf-8"), len(data), cut, False)
    except UnicodeDecodeError as error:
        if cut and error.start >= len(part) - 3 and error.reason == "unexpected end of data":
            return Text(part[: error.start].decode("utf-8"), len(data), True, False)
        half = data[: bytes_max // 2]
        return Text(half.hex(), len(data), len(half) < len(data), True)


def headers_of(message: Message) -> dict[str, str]:
    """By name; of several of one name the last, which is the broker's."""
    headers = cast("Headers", message.headers() or [])
    return {name: (value or b"").decode("utf-8", "replace") for name, value in headers}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Where a letter's record came from, and why it is a letter. cut_bytes: its size where it was cut when it
    was passed on; None: it is whole.
    """

    topic: str | None
    partition: int | None
    offset: int | None
    reason: str | None
    cut_bytes: int | None


def refusal_of(headers: dict[str, str]) -> Refusal:
    """headers: of a record of the topics for late rows and dead letters, by :func:`headers_of`."""

    def number(name: str) -> int | None:
        text = headers.get(name, "")
        return int(text) if text.isdecimal() else None

    return Refusal(
        headers.get(HEADER_TOPIC),
        number(HEADER_PARTITION),
        number(HEADER_OFFSET),
        headers.get(HEADER_REASON),
        number(HEADER_CUT),
    )


def json_of(data: bytes | None) -> Any:
    """JSON as it is, other text as a string, what is neither as ``{"hex": ...}``."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    try:
        return json.loads(text, parse_constant=lambda name: name)
    except (ValueError, RecursionError):
        return text
