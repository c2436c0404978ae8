"""ksqlDB's CREATE STREAM and CREATE TABLE over a topic: its options by their names here, and FROM TOPIC where
it takes the columns from a schema registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import TokenType

from engine.language.translation.edits import Edit, Tokens

_FORMATS: Mapping[str, str] = {
    "JSON": "json",
    "AVRO": "avro",
    "JSON_SR": "json-schema",
    "PROTOBUF": "protobuf",
    "DELIMITED": "csv",
}
_DELIMITERS: Mapping[str, str] = {"SPACE": " ", "TAB": "\t"}
_PLAIN_KEYS = ("JSON", "NONE")
"""Formats of keys that need not be said."""
_LEFT_OUT: Mapping[str, str | None] = {
    "REPLICAS": "REPLICAS has no counterpart: make the topic with as many as it is to have",
    "TIMESTAMP_FORMAT": "TIMESTAMP_FORMAT has no counterpart: a TIMESTAMP is text as ISO 8601 has it, or ms",
    "WRAP_SINGLE_VALUE": "WRAP_SINGLE_VALUE has no counterpart: a value is an object, or has the format raw",
    "VALUE_SCHEMA_ID": None,
    "KEY_SCHEMA_ID": None,
    "VALUE_SCHEMA_FULL_NAME": None,
    "KEY_SCHEMA_FULL_NAME": None,
    "VALUE_AVRO_SCHEMA_FULL_NAME": None,
    "RETENTION_MS": "RETENTION_MS is the topic's; RETAIN says how long rows stay here",
    "CLEANUP_POLICY": None,
}
"""Options that give way, and what to see to."""
_TIME = (
    "ksqlDB takes Kafka's timestamp of a record for its time: declare _timestamp TIMESTAMP NOT NULL, and "
    "timestamp = '_timestamp', where the topic does not stamp records itself"
)
_KAFKA_KEYS = (
    "keys in the format KAFKA are read where they are text; numbers in binary are no keys here: declare the "
    "column as _key BYTES"
)


def sources(tokens: Tokens) -> Iterator[Edit]:
    """``CREATE [SOURCE] STREAM | TABLE name [(columns)] WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'AVRO')``."""
    if tokens.word(0) != "CREATE" or any(True for _ in tokens.find("AS", "SELECT")):
        return
    begin = next(tokens.find("WITH"), None)
    if begin is None or tokens.kind(begin + 1) is not TokenType.L_PAREN:
        return
    if tokens.word(1) == "SOURCE":
        yield Edit(tokens.begin(1), tokens.begin(2), "", "who may write to a topic is Kafka's to say")
    given = _given(tokens, begin + 2)
    if given is None or "KAFKA_TOPIC" not in given.values:
        return
    inferred = tokens.kind(begin - 1) is not TokenType.R_PAREN
    written = _written(given.values, inferred, is_table="TABLE" in (tokens.word(1), tokens.word(2)))
    topic = given.values["KAFKA_TOPIC"]
    options = ", ".join(f"{name} = {value}" for name, value in written.options.items())
    text = f"FROM TOPIC {topic}" if inferred else "WITH"
    text += (" WITH" if inferred and options else "") + (f" ({options})" if options else "")
    remarks = list(written.remarks)
    yield Edit(tokens.begin(begin), given.end, text, remarks.pop(0) if remarks else None)
    for remark in remarks:
        yield Edit(given.end, given.end, "", remark)


@dataclass(frozen=True, slots=True)
class _Given:
    """values: by name in upper case, as they are written. end: of the bracket."""

    values: dict[str, str]
    end: int


@dataclass(slots=True)
class _Written:
    options: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def _given(tokens: Tokens, place: int) -> _Given | None:
    """The options from a place on; None: they are of another form."""
    found: dict[str, str] = {}
    while tokens.is_name(place) and tokens.kind(place + 1) is TokenType.EQ:
        value = place + 2
        found[tokens.text(place).upper()] = tokens.sql[tokens.begin(value) : tokens.end(value)]
        if tokens.kind(value + 1) is TokenType.R_PAREN:
            return _Given(found, tokens.end(value + 1))
        if tokens.kind(value + 1) is not TokenType.COMMA:
            return None
        place = value + 2
    return None


def _written(given: Mapping[str, str], inferred: bool, *, is_table: bool) -> _Written:
    found = _Written()
    if not inferred:
        found.options["topic"] = given["KAFKA_TOPIC"]
    both = given.get("FORMAT")
    for name, value in {"VALUE_FORMAT": both, "KEY_FORMAT": both, **given}.items():
        if value is None or name in ("FORMAT", "KAFKA_TOPIC"):
            continue
        word = value.strip("'").upper()
        if name == "VALUE_FORMAT":
            if word != "JSON":
                found.options["format"] = f"'{_FORMATS[word]}'" if word in _FORMATS else value
        elif name == "KEY_FORMAT":
            if word in ("KAFKA", "DELIMITED"):
                found.remarks.append(_KAFKA_KEYS)
            elif word not in _PLAIN_KEYS:
                found.options["key_format"] = f"'{_FORMATS[word]}'" if word in _FORMATS else value
        elif name == "VALUE_DELIMITER":
            found.options["delimiter"] = f"'{_DELIMITERS[word]}'" if word in _DELIMITERS else value
        elif name in _LEFT_OUT:
            remark = _LEFT_OUT[name]
            found.remarks += [] if remark is None else [remark]
        elif name == "PARTITIONS":
            found.options |= {} if inferred else {"partitions": value}
        else:
            found.options[name.lower()] = value
    if "timestamp" not in found.options and not is_table:
        if inferred:
            found.options["timestamp"] = "'_timestamp'"
        else:
            found.remarks.append(_TIME)
    return found
