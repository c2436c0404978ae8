"""Type rules of functions: from the arguments to the types they are converted to, and the type of the
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.language.evaluation import formats, regexes
from engine.language.promotion import arithmetic, common
from engine.model.expressions import Expression, Literal
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)

Types = tuple[list[Type], Type]
Signature = Callable[[Sequence[Expression]], Types]


class Unfit(Exception):
    """An argument of the wrong type: its place, and why."""

    def __init__(self, place: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint


def number(arguments: Sequence[Expression], place: int) -> Type:
    """The type of an argument that must be a number; INTEGER for a bare NULL."""
    type_ = arguments[place].type
    if type_.kind is Kind.NULL:
        return INTEGER
    if not type_.is_numeric:
        raise Unfit(place, f"needs a number, this is {type_}")
    return type_


def fits(arguments: Sequence[Expression], place: int, target: Type) -> Type:
    """Require that the argument becomes ``target`` without loss of meaning."""
    type_ = arguments[place].type
    if type_.kind is Kind.NULL or (type_.kind is target.kind and type_.logical is target.logical):
        return target
    if target == DOUBLE and type_.is_numeric:
        return target
    if target == BIGINT and type_ == INTEGER:
        return target
    if target == TIMESTAMP and type_ == DATE:
        return target
    if target == TIMESTAMP and type_ == STRING and isinstance(arguments[place], Literal):
        return target
    hint = "cast it: CAST(x AS STRING)" if target == STRING else None
    raise Unfit(place, f"needs {_article(target)}, this is {type_}", hint)


def _article(type_: Type) -> str:
    return f"an {type_}" if str(type_)[0] in "AEIOU" else f"a {type_}"


def typed(result: Type, *targets: Type) -> Signature:
    """Arguments of these types, of which the last may be left out or stand several times."""

    def types(arguments: Sequence[Expression]) -> Types:
        wanted = [targets[min(place, len(targets) - 1)] for place in range(len(arguments))]
        return [fits(arguments, place, target) for place, target in enumerate(wanted)], result

    return types


doubles = typed(DOUBLE, DOUBLE)
strings = typed(STRING, STRING)
measured = typed(BIGINT, STRING)
starts_with = typed(BOOLEAN, STRING)
position = typed(BIGINT, STRING)
calendar = typed(BIGINT, TIMESTAMP)
split = typed(STRING, STRING, STRING, BIGINT)
cut = typed(STRING, STRING, BIGINT)
padded = typed(STRING, STRING, BIGINT, STRING)
character = typed(STRING, BIGINT)
whole_numbers = typed(BIGINT, BIGINT)
moved_by = typed(TIMESTAMP, TIMESTAMP, BIGINT)


def length(arguments: Sequence[Expression]) -> Types:
    """STRING or BYTES to BIGINT."""
    return ([BYTES], BIGINT) if arguments[0].type == BYTES else measured(arguments)


def same_number(arguments: Sequence[Expression]) -> Types:
    """A number of the argument's type."""
    type_ = number(arguments, 0)
    return [type_], type_


def sign(arguments: Sequence[Expression]) -> Types:
    """INTEGER; for a DOUBLE a DOUBLE."""
    type_ = number(arguments, 0)
    return [type_], DOUBLE if type_ == DOUBLE else INTEGER


def whole(arguments: Sequence[Expression]) -> Types:
    """A number without places."""
    type_ = number(arguments, 0)
    return [type_], decimal(type_.precision, 0) if type_.kind is Kind.DECIMAL else type_


def rounded(arguments: Sequence[Expression]) -> Types:
    """ROUND(x) and ROUND(x, places); places of a DECIMAL must be a literal, since they are part of the
    type.
    """
    type_ = number(arguments, 0)
    if len(arguments) == 1:
        return [type_], decimal(type_.precision, 0) if type_.kind is Kind.DECIMAL else type_
    if arguments[1].type.kind not in (Kind.INTEGER, Kind.NULL):
        raise Unfit(1, f"needs an INTEGER, this is {arguments[1].type}")
    if type_.kind is not Kind.DECIMAL:
        return [type_, INTEGER], type_
    places = arguments[1]
    value = places.value if isinstance(places, Literal) else None
    if not isinstance(value, int):
        raise Unfit(1, "the places of a DECIMAL must be written as a number", "cast the value to DOUBLE")
    return [type_, INTEGER], decimal(type_.precision, min(max(value, 0), type_.scale))


def substring(arguments: Sequence[Expression]) -> Types:
    """A STRING, then BIGINTs."""
    numbers = [fits(arguments, place, BIGINT) for place in range(1, len(arguments))]
    return [fits(arguments, 0, STRING), *numbers], STRING


def anything_to_string(arguments: Sequence[Expression]) -> Types:
    """Any types, each as STRING."""
    return [STRING] * len(arguments), STRING


def common_type(arguments: Sequence[Expression]) -> Types:
    """One type that all arguments fit."""
    type_ = arguments[0].type
    for place, argument in enumerate(arguments):
        joined = common([type_, argument.type])
        if joined is None and argument.type == STRING and isinstance(argument, Literal):
            joined = type_ if type_.kind in (Kind.DATE, Kind.TIMESTAMP) else None
        if joined is None:
            raise Unfit(
                place,
                f"arguments must have one type: {type_} before, {argument.type} here",
                "cast one of them",
            )
        type_ = joined
    return [type_] * len(arguments), type_


def ordered_type(arguments: Sequence[Expression]) -> Types:
    """One type that all arguments fit, whose values have an order."""
    types, shared = common_type(arguments)
    if shared.is_nested:
        raise Unfit(0, f"{shared} has no order", "take a part of it")
    return types, shared


def counted_value(arguments: Sequence[Expression]) -> Types:
    """(anything, BIGINT) to the first argument's type."""
    type_ = INTEGER if arguments[0].type.kind is Kind.NULL else arguments[0].type
    return [type_, fits(arguments, 1, BIGINT)], type_


def nullif(arguments: Sequence[Expression]) -> Types:
    """The first argument's type; the two are compared in the type they share."""
    (shared, _), _ = common_type(arguments)
    return [shared, shared], shared


def modulo(arguments: Sequence[Expression]) -> Types:
    """As the operator %."""
    left, right = number(arguments, 0), number(arguments, 1)
    result = arithmetic("%", left, right)
    assert result is not None  # % never adds places
    return [left, right], result


def patterned(result: Type) -> Signature:
    """(STRING, a regular expression, perhaps the number of a group) to ``result``."""

    def types(arguments: Sequence[Expression]) -> Types:
        targets = [fits(arguments, 0, STRING), STRING]
        pattern, group = literal_text(arguments, 1), 0
        if len(arguments) == 3:
            number = arguments[2].value if isinstance(arguments[2], Literal) else None
            if not isinstance(number, int) or isinstance(number, bool):
                raise Unfit(2, "needs the number of a group, as a literal", "write REGEXP_EXTRACT(s, p, 1)")
            targets.append(BIGINT)
            group = number
        problem = regexes.problem(pattern, group)
        if problem is not None:
            raise Unfit(1, problem, "patterns are RE2's, without look-ahead and back references")
        return targets, result

    return types


def similar(arguments: Sequence[Expression]) -> Types:
    """(STRING, a pattern of SIMILAR TO) to BOOLEAN."""
    problem = regexes.problem(regexes.similar(literal_text(arguments, 1)))
    if problem is not None:
        raise Unfit(1, problem, "write %, _, |, *, +, ?, {2,3}, ( ), [a-z], and a backslash before them")
    return [fits(arguments, 0, STRING), STRING], BOOLEAN


def formatted(parts: Callable[[str], object], letters: Iterable[str]) -> Signature:
    """(TIMESTAMP, a pattern of ``letters``) to STRING."""

    def types(arguments: Sequence[Expression]) -> Types:
        target = fits(arguments, 0, TIMESTAMP)
        check_pattern(arguments, 1, parts, "there are " + ", ".join(letters))
        return [target, STRING], STRING

    return types


def check_pattern(
    arguments: Sequence[Expression], place: int, parts: Callable[[str], object], hint: str
) -> None:
    """Raise Unfit unless an argument is a pattern of times that ``parts`` takes apart."""
    pattern = literal_text(arguments, place)
    if len(pattern) > formats.PATTERN_CHARACTERS_MAX:
        raise Unfit(place, f"a pattern has at most {formats.PATTERN_CHARACTERS_MAX} characters", hint)
    try:
        parts(pattern)
    except formats.UnknownPart as unknown:
        raise Unfit(place, unknown.reason, unknown.hint or hint) from None


def literal_text(arguments: Sequence[Expression], place: int) -> str:
    """An argument that must be a string as it stands."""
    argument = arguments[place]
    value = argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, str):
        raise Unfit(place, "needs a string literal")
    return value


def chosen(arguments: Sequence[Expression]) -> Types:
    """(BOOLEAN, x, y) to the type that x and y share."""
    shared, result = _shared_behind(arguments)
    return [fits(arguments, 0, BOOLEAN), *shared], result


def chosen_where_there(arguments: Sequence[Expression]) -> Types:
    """(anything, x, y) to the type that x and y share."""
    shared, result = _shared_behind(arguments)
    return [arguments[0].type, *shared], result


def _shared_behind(arguments: Sequence[Expression]) -> Types:
    """The types of all arguments but the first."""
    try:
        return common_type(arguments[1:])
    except Unfit as unfit:
        raise Unfit(unfit.place + 1, unfit.message, unfit.hint) from None


def replaced(arguments: Sequence[Expression]) -> Types:
    """(STRING, a regular expression, what replaces it [, flags]) to STRING; all but the first literals."""
    pattern, new = literal_text(arguments, 1), literal_text(arguments, 2)
    flags = literal_text(arguments, 3) if len(arguments) == 4 else ""
    unknown = set(flags) - set(regexes.FLAGS)
    if unknown:
        raise Unfit(
            3, f"there is no flag {min(unknown)!r}", "there are 'g' for all matches, 'i' for any case"
        )
    problem = regexes.problem(pattern)
    if problem is not None:
        raise Unfit(1, problem, "patterns are RE2's, without look-ahead and back references")
    problem = regexes.replacement_problem(pattern, new)
    if problem is not None:
        raise Unfit(2, problem, r"write \1 for the first group, \0 for all of the match, \\ for a backslash")
    return [fits(arguments, 0, STRING)] + [STRING] * (len(arguments) - 1), STRING
