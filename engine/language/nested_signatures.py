"""Type rules of functions over JSON, ARRAY, STRUCT, MAP and BYTES."""

from __future__ import annotations

from collections.abc import Sequence

from engine.language.evaluation.binary import FORMATS
from engine.language.grammar.words import NOT_NESTED
from engine.language.promotion import common
from engine.language.signatures import Signature, Types, Unfit, common_type, fits, literal_text
from engine.model.expressions import Expression
from engine.model.paths import NoPath, parse_names, parse_path
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    INTEGER,
    JSON,
    STRING,
    Kind,
    Logical,
    Type,
    array,
    map_of,
    struct,
)

_PATH = "write a path such as '$.meta.fw' or '$.tags[0]'"


_INSIDE = {Kind.NULL: STRING, Kind.INTERVAL: BIGINT, Kind.TIME: STRING}
"""Types that are others inside of nested values."""


def as_json(arguments: Sequence[Expression], place: int = 0) -> Type:
    """An argument that is JSON, a nested value, or a STRING that is read as JSON."""
    type_ = arguments[place].type
    if type_.kind not in (Kind.NULL, Kind.STRING) or type_.logical in (Logical.UUID, Logical.BYTES):
        raise Unfit(place, f"needs JSON, this is {type_}")
    return JSON


def path(arguments: Sequence[Expression], place: int = 1) -> Type:
    """A path, which has to be a literal."""
    try:
        parse_path(literal_text(arguments, place))
    except NoPath as error:
        raise Unfit(place, f"this is no path: {error}", _PATH) from None
    except Unfit as unfit:
        raise Unfit(place, "needs a path as a string literal", _PATH) from unfit
    return STRING


def at_path(result: Type) -> Signature:
    """(JSON [, a path]) to ``result``."""

    def types(arguments: Sequence[Expression]) -> Types:
        return [as_json(arguments), *(path(arguments) for _ in arguments[1:])], result

    return types


def at_member(result: Type) -> Signature:
    """(JSON, a member's name or an element's place) to ``result``."""

    def types(arguments: Sequence[Expression]) -> Types:
        key = arguments[1].type
        if not (key.is_integer or key == STRING):
            raise Unfit(1, f"needs a name or a place, this is {key}", "write j -> 'name' or j -> 0")
        return [as_json(arguments), BIGINT if key.is_integer else STRING], result

    return types


def at_names(result: Type) -> Signature:
    """(JSON, a path as PostgreSQL writes it, which has to be a literal) to ``result``."""

    def types(arguments: Sequence[Expression]) -> Types:
        hint = "write j #> '{a,0}', or JSON_EXTRACT(j, '$.a[0]')"
        try:
            parse_names(literal_text(arguments, 1))
        except NoPath as error:
            raise Unfit(1, f"this is no path: {error}", hint) from None
        except Unfit as unfit:
            raise Unfit(1, "needs a path as a string literal", hint) from unfit
        return [as_json(arguments), STRING], result

    return types


def inside(arguments: Sequence[Expression], place: int) -> Type:
    """The type in which an argument stands inside of others: an INTERVAL and a TIME as in answers."""
    type_ = arguments[place].type
    return _INSIDE.get(type_.kind, type_)


def pairs(arguments: Sequence[Expression]) -> list[Type]:
    """Names and values in turn."""
    if len(arguments) % 2:
        raise Unfit(
            len(arguments) - 1, "needs a value behind each name", "write JSON_OBJECT('name', value, ...)"
        )
    return [
        inside(arguments, place) if place % 2 else fits(arguments, place, STRING)
        for place in range(len(arguments))
    ]


def json_object(arguments: Sequence[Expression]) -> Types:
    """Names and values in turn, to JSON."""
    return pairs(arguments), JSON


def json_array(arguments: Sequence[Expression]) -> Types:
    """Anything, to JSON."""
    return [inside(arguments, place) for place in range(len(arguments))], JSON


def map_made(arguments: Sequence[Expression]) -> Types:
    """Keys and values in turn, the values of one type, to a MAP of it."""
    keys = pairs(arguments)
    (shared, *_), _ = _common(arguments[1::2], 2, 1)
    return [shared if place % 2 else key for place, key in enumerate(keys)], map_of(shared)


def _common(arguments: Sequence[Expression], stride: int, first: int) -> Types:
    """The type that arguments share, INTEGER where all are NULL. stride, first: where they stand."""
    try:
        types, shared = common_type(arguments)
    except Unfit as unfit:
        raise Unfit(unfit.place * stride + first, unfit.message, unfit.hint) from None
    shared = INTEGER if shared.kind is Kind.NULL else _INSIDE.get(shared.kind, shared)
    return [shared] * len(types), shared


def array_made(arguments: Sequence[Expression]) -> Types:
    """Arguments of one type, to an ARRAY of it; none: of STRING."""
    if not arguments:
        return [], array(STRING)
    types, shared = _common(arguments, 1, 0)
    return types, array(shared)


def struct_made(arguments: Sequence[Expression]) -> Types:
    """Names, which are literals, and values in turn, to a STRUCT."""
    names = [literal_text(arguments, place) for place in range(0, len(arguments), 2)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Unfit(0, f"the member {twice!r} is given twice", "write STRUCT(a AS x, b AS y)")
    types = [inside(arguments, place) for place in range(1, len(arguments), 2)]
    given = [type_ for one in types for type_ in (STRING, one)]
    return given, struct(zip(names, types, strict=True))


def an_array(arguments: Sequence[Expression], place: int = 0) -> Type:
    """An argument that is an ARRAY."""
    type_ = arguments[place].type
    if type_.kind is Kind.NULL:
        return array(STRING)
    if type_.logical is not Logical.ARRAY:
        raise Unfit(place, f"needs an ARRAY, this is {type_}", _instead(type_))
    return type_


def _instead(type_: Type) -> str | None:
    if type_ == JSON:
        return "cast it: CAST(j AS ARRAY<STRING>)"
    return "write STRING_TO_ARRAY(s, ',')" if type_ == STRING else None


def a_map(arguments: Sequence[Expression], place: int = 0) -> Type:
    """An argument that is a MAP."""
    type_ = arguments[place].type
    if type_.logical is not Logical.MAP:
        hint = "cast it: CAST(j AS MAP<STRING, STRING>)" if type_ == JSON else None
        raise Unfit(place, f"needs a MAP, this is {type_}", hint)
    return type_


def subscript(arguments: Sequence[Expression]) -> Types:
    """(ARRAY, a place) or (MAP, a key) to the type of the elements."""
    type_ = arguments[0].type
    if type_.element is None:
        hint = "write j -> 0 or j -> 'name'" if type_ == JSON else None
        if type_ == STRING:
            hint = "write SUBSTRING(s, 1, 1) for a character, SPLIT_PART(s, ',', 1) for a part"
        raise Unfit(0, f"a subscript needs an ARRAY or a MAP, this is {type_}", hint)
    return [type_, fits(arguments, 1, STRING if type_.logical is Logical.MAP else BIGINT)], type_.element


def cut(arguments: Sequence[Expression]) -> Types:
    """(ARRAY, first, last) to the ARRAY's type."""
    type_ = an_array(arguments)
    return [type_, *(fits(arguments, place, BIGINT) for place in (1, 2))], type_


def member(arguments: Sequence[Expression]) -> Types:
    """(STRUCT, the name of a member) to the member's type."""
    type_, name = arguments[0].type, literal_text(arguments, 1)
    if type_.logical is not Logical.STRUCT:
        hint = f"write j ->> '{name}'" if type_ == JSON else None
        hint = f"write m['{name}']" if type_.logical is Logical.MAP else hint or NOT_NESTED
        raise Unfit(0, f"{type_} has no members", hint)
    found = dict(type_.members).get(name)
    if found is None:
        known = ", ".join(one for one, _ in type_.members)
        raise Unfit(1, f"there is no member {name!r}", f"there are {known}")
    return [type_, STRING], found


def counted(arguments: Sequence[Expression]) -> Types:
    """An ARRAY or a MAP, to BIGINT."""
    type_ = arguments[0].type
    return [type_ if type_.logical is Logical.MAP else an_array(arguments)], BIGINT


def looked_for(result: Type) -> Signature:
    """(ARRAY, an element) to ``result``."""

    def types(arguments: Sequence[Expression]) -> Types:
        listed, shared = _with_element(arguments, 0, 1)
        return [listed, shared], result

    return types


def _with_element(arguments: Sequence[Expression], place: int, at: int) -> tuple[Type, Type]:
    """An ARRAY and a value in types that go together."""
    listed = an_array(arguments, place)
    assert listed.element is not None
    value = arguments[at].type
    shared = listed.element if value.kind is Kind.NULL else common([listed.element, value])
    if shared is None:
        raise Unfit(at, f"{value} is no element of {listed}", "cast it")
    return array(shared), shared


def appended(arguments: Sequence[Expression]) -> Types:
    """(ARRAY, an element) to an ARRAY."""
    listed, shared = _with_element(arguments, 0, 1)
    return [listed, shared], listed


def prepended(arguments: Sequence[Expression]) -> Types:
    """(an element, ARRAY) to an ARRAY."""
    listed, shared = _with_element(arguments, 1, 0)
    return [shared, listed], listed


def concatenated(arguments: Sequence[Expression]) -> Types:
    """ARRAYs to one of them all."""
    for place in range(len(arguments)):
        an_array(arguments, place)
    return _common(arguments, 1, 0)


def same_array(arguments: Sequence[Expression]) -> Types:
    """An ARRAY, to one of its type."""
    type_ = an_array(arguments)
    return [type_], type_


def array_text(arguments: Sequence[Expression]) -> Types:
    """(ARRAY, a delimiter [, what stands for NULL]) to STRING."""
    return [an_array(arguments), *(fits(arguments, at, STRING) for at in range(1, len(arguments)))], STRING


def split_array(arguments: Sequence[Expression]) -> Types:
    """(STRING, a delimiter) to an ARRAY of STRING."""
    return [fits(arguments, place, STRING) for place in range(2)], array(STRING)


def map_keys(arguments: Sequence[Expression]) -> Types:
    """A MAP, to an ARRAY of STRING."""
    return [a_map(arguments)], array(STRING)


def map_values(arguments: Sequence[Expression]) -> Types:
    """A MAP, to an ARRAY of its values."""
    type_ = a_map(arguments)
    assert type_.element is not None
    return [type_], array(type_.element)


def map_entries(arguments: Sequence[Expression]) -> Types:
    """An ARRAY of STRUCTs of a STRING and a value, to a MAP."""
    type_ = an_array(arguments)
    members = () if type_.element is None else type_.element.members
    if len(members) != 2 or members[0][1] != STRING:
        raise Unfit(
            0,
            f"needs an ARRAY of STRUCTs of a key, a STRING, and a value, this is {type_}",
            "write MAP_FROM_ENTRIES(ARRAY_AGG(STRUCT(k AS key, x AS value)))",
        )
    return [type_], map_of(members[1][1])


def has_key(arguments: Sequence[Expression]) -> Types:
    """(MAP, a key) to BOOLEAN."""
    return [a_map(arguments), fits(arguments, 1, STRING)], BOOLEAN


def _form(arguments: Sequence[Expression]) -> Type:
    if len(arguments) > 1 and literal_text(arguments, 1).lower() not in FORMATS:
        raise Unfit(1, "there is no such form of bytes", "there are 'base64', 'hex', 'utf-8'")
    return STRING


def encoded(arguments: Sequence[Expression]) -> Types:
    """(BYTES, a form) to STRING."""
    return [fits(arguments, 0, BYTES), _form(arguments)], STRING


def decoded(arguments: Sequence[Expression]) -> Types:
    """(STRING, a form) to BYTES."""
    return [fits(arguments, 0, STRING), _form(arguments)], BYTES


def of_bytes(result: Type) -> Signature:
    """BYTES to ``result``."""
    return lambda arguments: ([fits(arguments, 0, BYTES)], result)


def is_text(arguments: Sequence[Expression]) -> Types:
    """STRING to BOOLEAN; of JSON it is known."""
    type_ = arguments[0].type
    return [type_ if type_.is_nested else fits(arguments, 0, STRING)], BOOLEAN
