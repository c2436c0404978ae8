"""Change events of Debezium: what a row of a database was and is, as records of a table or of a stream.

An event is an object with ``before``, ``after`` and ``op``, alone or as ``payload`` beside a ``schema``; in
JSON, or framed by the id of an Avro or JSON schema, which the first byte tells. Of a table the record is
``after``, and an event with op d, a ``payload`` that is null and a null value delete. Of a stream of changes
it is ``after``, or ``before`` where there is none, and besides, where columns of these names are declared::

    _op           c, u, d; r: read by a snapshot; t: the table was truncated
    _ts           when Debezium had the event, ms since 1970      _source_ts    when it happened
    _snapshot     whether a snapshot told it, as its source says  _before, _after    the rows

Days and instants that Debezium writes as numbers become dates, and ms since 1970: as the schema says, else
by the column's type, an instant being in the unit in which it is before the year 5138. DECIMALs in bytes are
read where there is a schema, which has their scale.

Cost: some 6 ns a byte of plain events (:mod:`topics.formats.plain_events`), 10 us of any other.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import orjson

from engine.model.source import Field
from engine.model.types import Kind
from topics.codec import DEPTH_MAX
from topics.formats.plain_events import LEAST, plain_events
from topics.formats.texts import Format, Texts
from topics.json_object import is_too_deep
from topics.scan import REASONS, TOO_DEEP, ends_of
from topics.spans import extraction

METADATA = ("_op", "_ts", "_source_ts", "_snapshot", "_before", "_after")
_PATHS = (("before",), ("after",), ("payload", "before"), ("payload", "after"))
_WHOLE = (("payload",),)
_MS_MAX = 10**14
_DECIMAL_BYTES_MAX = 64
_EPOCH = date(1970, 1, 1)
_EXACT = Context(prec=200)

Convert = Callable[[Any], Any]
"""A member's value as JSON has it."""


class NoEvent(ValueError):
    """The text says why a record is none."""


def _instant(value: Any, per_ms: int = 0) -> Any:
    """per_ms: how many units a ms has; 0: as large as it is."""
    if type(value) is not int:
        return value
    while not per_ms and abs(value) >= _MS_MAX:
        value //= 1_000
    return value // per_ms if per_ms else value


def _day(value: Any) -> Any:
    if type(value) is not int:
        return value
    try:
        return str(_EPOCH + timedelta(days=value))
    except OverflowError:
        raise NoEvent("a date is not in the years 1 to 9999") from None


def _decimal(value: Any, scale: int) -> Any:
    if not isinstance(value, str) or len(value) > _DECIMAL_BYTES_MAX:
        return value
    try:
        unscaled = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
    except ValueError:
        raise NoEvent("a decimal is not base64") from None
    return f"{Decimal(unscaled).scaleb(-scale, _EXACT):f}"


_BY_NAME: Mapping[str, Convert] = {
    "io.debezium.time.Date": _day,
    "org.apache.kafka.connect.data.Date": _day,
    "io.debezium.time.MicroTimestamp": lambda value: _instant(value, 1_000),
    "io.debezium.time.NanoTimestamp": lambda value: _instant(value, 1_000_000),
}
_BY_KIND: Mapping[Kind, Convert] = {Kind.DATE: _day, Kind.TIMESTAMP: _instant}


def _of_schema(schema: Any) -> dict[str, Convert]:
    """What turns members of a row into JSON, by the schema of an event or of a key."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list):
        return {}
    rows = [one for one in fields if isinstance(one, dict) and one.get("field") in ("after", "before")]
    found: dict[str, Convert] = {}
    for one in rows[0].get("fields", ()) if rows else fields:
        if not isinstance(one, dict):
            continue
        name, type_ = one.get("field"), one.get("name")
        if type_ == "org.apache.kafka.connect.data.Decimal":
            scale = str((one.get("parameters") or {}).get("scale", "0"))
            if scale.isdecimal() and len(scale) < 3:
                found[str(name)] = partial(_decimal, scale=int(scale))
        elif isinstance(type_, str) and type_ in _BY_NAME:
            found[str(name)] = _BY_NAME[type_]
    return found


@dataclass(slots=True)
class Debezium:
    """What reads events.

    wire: reads framed records. fields: the columns of values. changelog: of a stream of changes. is_key: of
    keys, which are rows and no events.
    """

    wire: Format
    fields: tuple[Field, ...]
    changelog: bool
    is_key: bool = False
    _by_type: dict[str, Convert] = field(default_factory=dict)
    _schemas: dict[bytes, dict[str, Convert]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_type = {
            one.name: _BY_KIND[one.type.kind]
            for one in self.fields
            if one.type.kind in _BY_KIND and one.path is None and one.name not in METADATA
        }

    @property
    def _is_plain(self) -> bool:
        """Whether events may be read many at once."""
        return not self.is_key and all(one.name not in METADATA for one in self.fields)

    def texts(self, values: Sequence[bytes]) -> Texts:
        framed = [place for place, one in enumerate(values) if one[:1] == b"\0"]
        if not framed:
            return self._events(values, {})
        given = self.wire.texts([values[place] for place in framed])
        whole: list[bytes] = list(values)
        for place, text in zip(framed, given.values, strict=True):
            whole[place] = text or b"null"
        bad = {framed[place]: reason for place, reason in given.bad.items()}
        told = self._events(whole, bad)
        return Texts(told.values, told.bad, given.unknown)

    def _events(self, values: Sequence[bytes], bad: dict[int, str]) -> Texts:
        """The rows of events in JSON. bad: those that are none, and why."""
        if not self._is_plain or len(values) < LEAST:
            return self._one_by_one(values, bad)
        found: list[bytes | None] = [None] * len(values)
        left: list[int] = []
        convertible = [(one.name, one.type.kind) for one in self.fields if one.name in self._by_type]
        for part, texts, plain in plain_events(values, convertible, self.changelog):
            found[part] = texts
            left += (np.flatnonzero(~plain) + part.start).tolist()
        if left:
            again = {at: bad[place] for at, place in enumerate(left) if place in bad}
            told = self._one_by_one([values[place] for place in left], again)
            for place, text in zip(left, told.values, strict=True):
                found[place] = text
            bad |= {left[at]: reason for at, reason in told.bad.items()}
        return Texts(found, bad)

    def _one_by_one(self, values: Sequence[bytes], bad: dict[int, str]) -> Texts:
        """The rows of events in JSON. bad: those that are none, and why."""
        loaded: list[Any] = []
        kept = list(values)
        for place, value in enumerate(values):
            event = None
            try:
                event = orjson.loads(value)
                if value.count(b"{") + value.count(b"[") > DEPTH_MAX and is_too_deep({"": event}):
                    raise NoEvent(REASONS[TOO_DEEP])
            except ValueError as error:
                kept[place] = b"{}"  # the pass over the bytes takes JSON alone, and no deeper
                bad.setdefault(place, str(error) if isinstance(error, NoEvent) else f"not JSON: {error}")
            loaded.append(event)
        data = b"\n".join(kept)
        paths = _WHOLE if self.is_key else _PATHS
        spans, odd = extraction(paths).spans(np.frombuffer(data, np.uint8), ends_of(kept))
        cuts = spans.tolist()
        found: list[bytes | None] = []
        for place, event in enumerate(loaded):
            text: bytes | None = None
            if place not in bad:
                try:
                    if odd[place] and type(event) is dict:
                        raise NoEvent("a member of the event is given twice, or has an escape in its name")
                    text = self._row(event, data, cuts[place])
                except NoEvent as refused:
                    bad[place] = str(refused)
            found.append(text)
        return Texts(found, bad)

    def _row(self, event: Any, data: bytes, spans: list[list[int]]) -> bytes | None:
        """The text of an event's row; None: it deletes. Raises NoEvent."""
        if type(event) is not dict:
            if self.is_key:
                return orjson.dumps(event)
            raise NoEvent("not a JSON object")
        convert, wrapped = self._by_type, "payload" in event and "schema" in event
        payload = event["payload"] if wrapped else event
        if wrapped and event["schema"] is not None:
            convert = self._conversions(event["schema"])
        if self.is_key:
            whole = data[slice(*spans[0])] if wrapped else orjson.dumps(event)
            return _converted(payload, whole, convert)
        if payload is None:
            return None
        if type(payload) is not dict or type(payload.get("op")) is not str:
            raise NoEvent("it has no op, so it is no change event of Debezium")
        op = payload["op"]
        before, after = payload.get("before"), payload.get("after")
        for name, one in (("before", before), ("after", after)):
            if type(one) is not dict and one is not None:
                raise NoEvent(f"{name} is no object")
        old, new = ((data[slice(*one)] if one[0] >= 0 else b"null") for one in spans[2 * wrapped :][:2])
        if op in ("c", "r", "u"):
            if after is None:
                raise NoEvent(f"op is {op}, and after is not there")
        elif op not in ("d", "t") or (op == "t" and not self.changelog):
            raise NoEvent(
                f"op is {op[:20]}: " + ("the table was truncated" if op == "t" else "no change of a row")
            )
        if not self.changelog:
            return None if op == "d" else _converted(after, new, convert)
        old, new = _converted(before, old, convert), _converted(after, new, convert)
        row = new if after is not None else old if before is not None else b"{}"
        return self._with_metadata(row, payload, old, new)

    def _conversions(self, schema: Any) -> dict[str, Convert]:
        text = orjson.dumps(schema)
        found = self._schemas.get(text)
        if found is None:
            if len(self._schemas) >= 100:
                self._schemas.clear()
            found = self._schemas[text] = _of_schema(schema)
        return found

    def _with_metadata(self, row: bytes, payload: Mapping[str, Any], old: bytes, new: bytes) -> bytes:
        source = payload.get("source")
        source = source if type(source) is dict else {}
        snapshot = source.get("snapshot")
        told: dict[str, bytes] = {
            "_op": orjson.dumps(payload["op"]),
            "_ts": orjson.dumps(payload.get("ts_ms")),
            "_source_ts": orjson.dumps(source.get("ts_ms")),
            "_snapshot": orjson.dumps(str(snapshot).lower() if snapshot is not None else None),
            "_before": old,
            "_after": new,
        }
        more = [b'"%s":%s' % (one.name.encode(), told[one.name]) for one in self.fields if one.name in told]
        body = row.rstrip()[:-1].rstrip()
        return body + (b"" if body.endswith(b"{") or not more else b",") + b",".join(more) + b"}"


def _converted(row: Any, text: bytes, convert: Mapping[str, Convert]) -> bytes:
    """A row's text with what Debezium has in other forms as JSON has it."""
    if not convert or type(row) is not dict:
        return text
    changed = {
        name: made for name in convert if name in row and (made := convert[name](row[name])) is not row[name]
    }
    return orjson.dumps(row | changed) if changed else text
