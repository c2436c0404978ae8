"""Records that are no objects: whether they are lines of CSV, and what raw ones are.

Lines are CSV where most have as many fields, two at least, by one delimiter. A line is taken for one of names
where each of its fields is a name and, of a column at least, the other lines have numbers alone. Both are
guesses, and told as such. What is nothing else is raw: text where all of it is UTF-8, else bytes.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from engine.model.record_format import METADATA
from engine.model.source import Field
from engine.model.types import BYTES, STRING
from topics.formats.csv import Csv
from topics.inferred_columns import InferredColumn, Sampled, few_of

DELIMITERS = (",", ";", "\t", "|")
LINES_MIN = 2
COLUMNS_MAX = 1_000
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_NAME = re.compile(r"[^\W\d][\w .-]{0,60}")
_QUOTED = re.compile(rb'"[^"]*"')

Line = list[str | None]


@dataclass(frozen=True, slots=True)
class CsvLines:
    """delimiter: between fields. records: as JSON, by names of columns; what gives no row, and lines of
    names, is b"". names: how many are lines of names.
    """

    delimiter: str
    records: list[Sampled]
    names: int


def are_objects(values: Sequence[bytes | None]) -> bool:
    """Whether more than a few of these are meant to be JSON objects, or there is none."""
    there = [one for one in values if one is not None]
    opened = sum(one.lstrip()[:1] == b"{" for one in there)
    return not there or opened > few_of(len(there))


def csv_lines(records: Sequence[Sampled], delimiter: str | None = None) -> CsvLines | None:
    """The records as lines; None: they are none. delimiter: which it is; None: the one that fits most."""
    values = [one.value for one in records]
    there = [one for one in values if one is not None]
    bare = [_QUOTED.sub(b"", value) for value in there]
    best: tuple[int, str, list[Line | None]] | None = None
    for one in (delimiter,) if delimiter is not None else DELIMITERS:
        counts = Counter(value.count(one.encode()) for value in bare)
        for count, _ in counts.most_common(3):
            if count + 1 > COLUMNS_MAX or (delimiter is None and not count):
                continue
            lines = _split(values, one, count + 1)
            good = sum(line is not None for line in lines)
            if best is None or good > best[0]:
                best = good, one, lines
    if (
        best is None
        or best[0] < len(there) - few_of(len(there))
        or (delimiter is None and best[0] < LINES_MIN)
    ):
        return None
    return _named(records, best[1], best[2])


def raw_column(records: Sequence[Sampled]) -> InferredColumn:
    """The one column of records that are read as they are."""
    values = [one.value for one in records if one.value is not None]
    try:
        texts = [value.decode() for value in values]
    except UnicodeDecodeError:
        told = "the values are nothing that is known, and not UTF-8; BYTES is a guess"
        return InferredColumn("data", "the value", BYTES, len(values), (), told)
    examples = tuple(json.dumps(text[:80], ensure_ascii=False) for text in texts[:3])
    told = "the values are neither objects nor lines of fields; the whole text as a STRING is a guess"
    return InferredColumn("line", "the value", STRING, len(values), examples, told)


def _split(values: Sequence[bytes | None], delimiter: str, count: int) -> list[Line | None]:
    """The fields of each value, None of one that has not so many."""
    fields = tuple(Field(str(place), STRING) for place in range(count))
    told = Csv(fields, delimiter).texts([value or b"\n\n" for value in values])
    lines: list[Line | None] = []
    for place, text in enumerate(told.values):
        line = None
        if place not in told.bad and values[place] is not None:
            with contextlib.suppress(ValueError):  # it is not UTF-8
                line = list(orjson.loads(text or b"{}").values())
        lines.append(line)
    return lines


def _named(records: Sequence[Sampled], delimiter: str, lines: Sequence[Line | None]) -> CsvLines:
    there = [line for line in lines if line is not None]
    columns = list(zip(*there, strict=True))
    header = _header(there, columns)
    names = _names(header or [None] * len(columns))
    body = [line for line in there if line != header]
    numeric = [_is_numeric([line[place] for line in body]) for place in range(len(columns))]
    found = []
    for record, line in zip(records, lines, strict=True):
        text = b"" if line is None or line == header else _object(names, line, numeric)
        found.append(replace(record, value=None if record.value is None else text))
    return CsvLines(delimiter, found, sum(line is not None and line == header for line in lines))


def _header(lines: Sequence[Line], columns: Sequence[Sequence[str | None]]) -> Line | None:
    """The line of names; None: there is none."""
    for line in lines:
        names = [one for one in line if one is not None and _NAME.fullmatch(one)]
        if len(names) < len(line) or len(set(map(str.lower, names))) < len(line):
            continue
        others = [[one for one in column if one != name] for name, column in zip(line, columns, strict=True)]
        if any(any(one is not None for one in rest) and _is_numeric(rest) for rest in others):
            return line
    return None


def _is_numeric(values: Sequence[str | None]) -> bool:
    """Whether all but a few are numbers as JSON has them, or booleans."""
    there = [one for one in values if one is not None]
    fit = sum(one in ("true", "false") or _NUMBER.fullmatch(one) is not None for one in there)
    return fit >= len(there) - few_of(len(there))


def _names(header: Sequence[str | None]) -> list[str]:
    found: list[str] = []
    for place, given in enumerate(header, 1):
        name = re.sub(r"\W+", "_", given or f"column_{place}").lower()
        taken = {*found, *METADATA}
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name}_{number}", number + 1
        found.append(unique)
    return found


def _object(names: Sequence[str], line: Line, numeric: Sequence[bool]) -> bytes:
    members: list[bytes] = []
    for name, value, is_number in zip(names, line, numeric, strict=True):
        told: Any = orjson.dumps(value)
        if value is not None and is_number and (value in ("true", "false") or _NUMBER.fullmatch(value)):
            told = value.encode()
        members.append(orjson.dumps(name) + b":" + told)
    return b"{" + b",".join(members) + b"}"
