"""Columns for the members of sampled JSON records: which type reads every value that was seen.

The types are tried as records are read (:func:`topics.careful.converted`), so what is inferred reads the
sample. Of a member with numbers:

    all of them whole, within 64 bits               BIGINT
    these, if they are instants in ms               TIMESTAMP
    others                                          DOUBLE
    and strings of numbers among them               DECIMAL, where 18 digits suffice

Of a member with strings: DATE, TIMESTAMP, UUID, or STRING. Instants in ms are taken for such where they lie
within 20 years of Kafka's timestamp of the record and the name speaks of time, or within a week of it under
any name; ids of 13 digits seldom do. Arrays are ARRAYs of such a type, or of a STRUCT where they hold objects
with the same members, else JSON, and so are objects whose members are no columns. What no type reads
(numbers beside text) is left out, since a column that does not fit makes the whole record a dead letter; but
a few records of many that do not fit are told beside the column, and so are a few that are no instants under
a name that speaks of time. A column of which nothing but NULL was seen is STRING. Where a schema declares a
type that reads the values, it is that one; but instants in a number or a text are TIMESTAMP all the same.
Cost: O(values * types).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.model.paths import Path
from engine.model.source import Field
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    UUID,
    Kind,
    Type,
    array,
    struct,
)
from engine.model.units import REACH_MS, unit_of
from topics.careful import BadRecord, Number, Pairs, as_json, converted
from topics.members import folded

EXAMPLES = 3
MEMBERS_MAX = 50
"""Members of a STRUCT that is proposed."""
PATH_STEPS_MAX = 4
"""Members inside of each other that columns are proposed for."""
EXAMPLE_CHARACTERS = 80
NEAR_MS = 7 * 86_400_000
"""A number under any name so near to Kafka's timestamp is an instant."""
FEW_OF_MANY = 20
"""One of so many may be wrong."""
EXACT_MAX = 2**53
"""Up to here every whole number is a DOUBLE."""

_TIME = """
time timestamp ts at date datetime when instant created updated modified received sent observed measured
departed arrived ms millis epoch
"""
_TIME_WORDS = frozenset(_TIME.split())
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]{0,99}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMERIC = re.compile(r"[+-]?[0-9]{1,18}(?:\.([0-9]{1,18}))?")


_NONE: Mapping[Path, Type] = {}


@dataclass(frozen=True, slots=True)
class Sampled:
    """One record: key, value, partition, offset, Kafka's timestamp in ms."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    at_ms: int


@dataclass(slots=True)
class Observed:
    """What was seen of one member. values: those that are not null, with Kafka's timestamp of their records,
    in ms. twice: how often a record had it again.
    """

    values: list[tuple[Any, int]] = field(default_factory=list)
    twice: int = 0


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column that reads a member. values: in how many records it has one. guessed: what is not certain, in
    a sentence; None: nothing. misfits: how many records it makes dead letters. path: where it stands inside
    other members; None: the member is one of the record itself.
    """

    name: str
    member: str
    type: Type
    values: int
    examples: tuple[str, ...]
    guessed: str | None = None
    misfits: int = 0
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A member that no column reads, and why."""

    member: str
    reason: str
    values: int
    examples: tuple[str, ...]


def leaves(
    seen: Mapping[str, Observed], inside: Path = (), declared: Mapping[Path, Type] = _NONE
) -> Iterator[tuple[Path, Observed]]:
    """What was seen at each path that does not lead to objects; an object that is so deep that a path to its
    members would have more than PATH_STEPS_MAX steps is a leaf, and so are objects without members.

    seen: of the members at ``inside``. declared: the columns of a schema, which are leaves, and are there
    where nothing was seen of them.
    """
    missing = {path[len(inside)]: None for path in declared if path[: len(inside)] == inside}
    for member in [one for one in missing if folded(str(one)) not in set(map(folded, seen))]:
        yield from ((path, Observed()) for path in declared if path[: len(inside) + 1] == (*inside, member))
    for member, one in seen.items():
        path = (*inside, member)
        if path in declared:
            yield path, one
            continue
        below = [known for known in declared if known[: len(path)] == path]
        if below and not one.values:
            yield from ((known, Observed()) for known in below)
            continue
        objects = [(value, at_ms) for value, at_ms in one.values if isinstance(value, Pairs)]
        inner = observe(objects, exact=True) if len(path) < PATH_STEPS_MAX else {}
        if inner and not one.twice and len(one.values) - len(objects) <= few_of(len(one.values)):
            yield from leaves(inner, path, declared)
        else:
            yield path, one


def observe(records: Sequence[tuple[Pairs, int]], *, exact: bool = False) -> dict[str, Observed]:
    """By member, in the order in which they were first seen. Spellings of a member that differ in letter case
    and never stand in one record are one member, by the spelling that came first, unless ``exact``. records:
    members, and Kafka's timestamp in ms.
    """
    apart: set[tuple[str, bool]] = set()
    for members, _ in records:
        near: dict[tuple[str, bool], str] = {}
        for name, _value in members:
            if exact or near.setdefault(folded(name), name) != name:
                apart.add(folded(name))
    found: dict[str, Observed] = {}
    first: dict[tuple[str, bool], str] = {}
    for members, at_ms in records:
        given: set[str] = set()
        for name, value in members:
            fold = folded(name)
            key = name if fold in apart else first.setdefault(fold, name)
            one = found.setdefault(key, Observed())
            one.twice += key in given
            given.add(key)
            if value is not None:
                one.values.append((value, at_ms))
    return found


def column_name(member: str, alike: int) -> str:
    """The column that reads a member: in lower case where that is unambiguous, else exactly as it is spelled.
    alike: how many members differ from it in letter case at most, itself among them.

    >>> column_name("deviceId", 1), column_name("A", 2)
    ('deviceid', 'A')
    """
    return member.lower() if member.isascii() and alike <= 1 else member


def named_alike(members: Iterable[str]) -> Counter[tuple[str, bool]]:
    """How many members have each name, letter case aside; by :func:`topics.members.folded`."""
    return Counter(map(folded, members))


def path_name(path: Path, taken: Container[str]) -> str:
    """A name for the column at a path of members, none of those that are taken.

    >>> path_name(("meta", "fwVersion"), ["id"]), path_name(("a", "b c"), ["a_b_c"])
    ('meta_fwversion', 'a_b_c_2')
    """
    words = "_".join(re.sub(r"\W+", "_", str(step)) for step in path).lower()
    name, number = words, 1
    while name in taken:
        number += 1
        name = f"{words}_{number}"
    return name


def is_written(text: str) -> bool:
    """Whether SQL takes a text: it holds no U+0000 and no half of a surrogate pair."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def infer(member: str, name: str, seen: Observed, declared: Type | None = None) -> InferredColumn | LeftOut:
    """A column for what was seen of a member, or why there is none. declared: its type by a schema."""
    found = _inferred(member, name, seen)
    if declared is None or seen.twice > few_of(len(seen.values)):
        return found
    is_instant = seen.values and isinstance(found, InferredColumn) and found.type == TIMESTAMP
    if is_instant and declared in (INTEGER, BIGINT, DOUBLE, STRING):
        return found
    values = [value for value, _ in seen.values]
    misfits = _misfits(declared, values) + seen.twice
    if misfits > few_of(len(values)):
        if declared == BIGINT and not seen.twice and all(_whole(value) is not None for value in values):
            told = f"{misfits:,} of {len(values):,} records do not fit BIGINT; JSON keeps each digit"
            return InferredColumn(name, member, JSON, len(values), _examples(seen), told)
        return found
    guessed = (
        f"{misfits:,} of {len(values):,} records do not fit {declared} and give no row" if misfits else None
    )
    if guessed is None and declared.kind is Kind.DECIMAL and declared.precision == DECIMAL_DIGITS_MAX:
        guessed = (
            f"the schema may allow more than {DECIMAL_DIGITS_MAX} digits; a value that has them gives no row"
        )
    return InferredColumn(name, member, declared, len(values), _examples(seen), guessed, misfits)


def _inferred(member: str, name: str, seen: Observed) -> InferredColumn | LeftOut:
    examples = _examples(seen)
    values = [value for value, _ in seen.values]
    spare = few_of(len(values))
    if seen.twice > spare:
        return LeftOut(member, f"given twice in {seen.twice:,} records", len(values), examples)
    if not values:
        told = "only null in the sample; STRING is a guess"
        return InferredColumn(name, member, STRING, 0, examples, told)
    found: tuple[int, Type] | None = None
    for type_ in _types(member, seen, spare):
        misfits = _misfits(type_, values)
        if found is None or misfits < found[0]:
            found = misfits, type_
        if not misfits or (misfits <= spare and type_ == TIMESTAMP and speaks_of_time(member)):
            found = misfits, type_
            break
    if found is not None and found[0] + seen.twice <= spare:
        misfits, type_ = found[0] + seen.twice, found[1]
        guessed = _guessed(member, type_, seen)
        if misfits:
            told = f"{misfits:,} of {len(values):,} records do not fit {type_} and give no row"
            guessed = told if guessed is None else f"{told}; {guessed}"
        return InferredColumn(name, member, type_, len(values), examples, guessed, misfits)
    if any(isinstance(value, list) for value in values):
        return _nested(member, name, seen, values)
    kinds = sorted({_kind(value) for value in values})
    told = f"{' and '.join(kinds)} are mixed" if len(kinds) > 1 else f"no type reads all of these {kinds[0]}"
    return LeftOut(member, told, len(values), examples)


def _nested(member: str, name: str, seen: Observed, values: Sequence[Any]) -> InferredColumn | LeftOut:
    """An ARRAY of the narrowest type that reads the elements of all arrays, else JSON."""
    spare = few_of(len(values)) - seen.twice
    examples = _examples(seen)
    elements = [
        (one, at_ms)
        for value, at_ms in seen.values
        if isinstance(value, list) and not isinstance(value, Pairs)
        for one in value
        if one is not None
    ]
    types = [array(STRING)] if not elements else [*map(array, _types(member, Observed(elements), 0))]
    object_type = _struct(elements)
    if object_type is not None:
        types.append(array(object_type))
    for type_ in (*types, JSON):
        misfits = _misfits(type_, values)
        if misfits <= spare and (type_ == JSON or not misfits):
            guessed = "only empty arrays in the sample; STRING is a guess" if not elements else None
            if type_ == JSON:
                guessed = "objects or arrays of several types; PATH reads a part of it"
                if misfits:
                    guessed = f"{misfits:,} of {len(values):,} records do not fit JSON and give no row"
            return InferredColumn(name, member, type_, len(values), examples, guessed, misfits + seen.twice)
    return LeftOut(member, "no type reads all of these objects or arrays", len(values), examples)


def _struct(objects: Sequence[tuple[Any, int]]) -> Type | None:
    """The STRUCT of objects that all have the same members, whose values are of one type each; None: these
    are no such objects.
    """
    if not objects or not all(isinstance(value, Pairs) for value, _ in objects):
        return None
    names = [name for name, _ in objects[0][0]]
    alike = {folded(name) for name in names}
    if not 0 < len(names) == len(alike) <= MEMBERS_MAX or not all(map(_PLAIN_NAME.fullmatch, names)):
        return None
    if any(sorted(name for name, _ in value) != sorted(names) for value, _ in objects):
        return None
    members: list[tuple[str, Type]] = []
    for name, seen in observe(objects, exact=True).items():
        values = [value for value, _ in seen.values]
        types = _types(name, seen, 0) if values else [STRING]
        found = next((type_ for type_ in types if not _misfits(type_, values)), _struct(seen.values))
        if found is None:
            return None
        members.append((name, found))
    return struct(members)


def few_of(many: int) -> int:
    """How many records of so many may not fit what the others are.

    >>> few_of(19), few_of(20), few_of(1_000)
    (0, 1, 50)
    """
    return many // FEW_OF_MANY


def _types(member: str, seen: Observed, spare: int) -> list[Type]:
    """The types to try, the narrowest first."""
    values = [value for value, _ in seen.values]
    types = [BOOLEAN]
    if any(isinstance(value, str) and not isinstance(value, Number) for value in values):
        types.append(DATE)
    if _instants(member, seen, spare):
        types.append(TIMESTAMP)
    types += [BIGINT, DOUBLE]
    decimal = _decimal(values)
    if decimal is not None:
        types.append(decimal)
    if all(isinstance(value, str) and _UUID.fullmatch(value) for value in values):
        types.append(UUID)
    return [*types, STRING]


def _instants(member: str, seen: Observed, spare: int) -> bool:
    """Whether the numbers among the values are instants in ms, but for so many; also where there is none."""
    reach_ms = REACH_MS if speaks_of_time(member) else NEAR_MS
    for value, at_ms in seen.values:
        if isinstance(value, Number):
            whole = _whole(value)
            if whole is None or abs(whole - at_ms) > reach_ms:
                spare -= 1
    return spare >= 0


def speaks_of_time(member: str) -> bool:
    """Whether a name is that of an instant.

    >>> speaks_of_time("createdAt"), speaks_of_time("event_time"), speaks_of_time("format")
    (True, True, False)
    """
    return not _TIME_WORDS.isdisjoint(word.lower() for word in _WORDS.findall(member))


def _decimal(values: Sequence[Any]) -> Type | None:
    """DECIMAL for numbers among which strings of numbers are; None: these are no such."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values) or not any(isinstance(value, Number) for value in texts):
        return None
    whole = scale = 0
    for text in texts:
        match = _NUMERIC.fullmatch(text)
        if match is None:
            return None
        scale = max(scale, len(match[1] or ""))
        whole = max(whole, len(text.lstrip("+-").split(".")[0]))
    if whole + scale > DECIMAL_DIGITS_MAX:
        return None
    return Type(Kind.DECIMAL, DECIMAL_DIGITS_MAX, scale)


def _misfits(type_: Type, values: Sequence[Any]) -> int:
    """How many of these a type does not read."""
    column, found = Field("value", type_), 0
    for value in values:
        try:
            converted(column, value)
        except BadRecord:
            found += 1
    return found


def _guessed(member: str, type_: Type, seen: Observed) -> str | None:
    if type_ == TIMESTAMP and any(isinstance(value, Number) for value, _ in seen.values):
        return "whole numbers that are near Kafka's timestamps, taken for ms since 1970"
    if type_.kind is Kind.DECIMAL:
        return f"numbers and strings of numbers; {type_} is exact and reads both"
    if type_ == DOUBLE:
        wholes = [whole for value, _ in seen.values if (whole := _whole(value)) is not None]
        if any(abs(one) > EXACT_MAX for one in wholes):
            return "whole numbers beyond 2^53 are rounded by DOUBLE; write them as strings to keep each digit"
    if type_ == BIGINT and speaks_of_time(member):
        units = {
            unit_of(whole, at_ms) for value, at_ms in seen.values if (whole := _whole(value)) is not None
        }
        if len(units) == 1 and (unit := units.pop()) is not None:
            return f"looks like an instant in {unit}; TIMESTAMP is read from ms since 1970 or from text"
    return None


def _whole(value: Any) -> int | None:
    if not isinstance(value, Number) or len(value) > 40 or not re.fullmatch(r"-?[0-9]+", value):
        return None
    return int(value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    return "numbers" if isinstance(value, Number) else "strings"


def _examples(seen: Observed) -> tuple[str, ...]:
    """Values that differ, as JSON."""
    found: dict[str, None] = {}
    for value, _ in seen.values[:1_000]:
        text = as_json(value)
        found[text if len(text) <= EXAMPLE_CHARACTERS else text[:EXAMPLE_CHARACTERS] + "…"] = None
        if len(found) == EXAMPLES:
            break
    return tuple(found)
