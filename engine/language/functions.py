"""The catalogue of scalar functions: name, arity, types, what it does, and the kernel that does it.

Unless its text says otherwise a function is strict: NULL where an argument is NULL, else an error where one
is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from engine.language import signatures
from engine.language.aggregates import aggregate_named
from engine.language.evaluation import choices, formats, numeric, regexes, samples, splits, temporal, text
from engine.language.evaluation.vector import Vector
from engine.language.grammar.words import CLOCKS, RESERVED
from engine.language.signatures import Signature, Types, Unfit
from engine.model.expressions import Arithmetic, Expression, Function, Literal, UserFunction
from engine.model.types import BOOLEAN, STRING, Kind, Type

Kernel = Callable[[Sequence[Vector], Type, int], Vector]
ARGUMENTS_MAX = 64


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """One function. ``usage`` shows a call, ``doc`` says what it gives."""

    name: str
    arity_min: int
    arity_max: int
    signature: Signature
    kernel: Kernel
    usage: str
    doc: str

    def types(self, arguments: Sequence[Expression]) -> Types:
        """The types that the arguments become, and the result's. Raises Unfit."""
        if self.name in ("EXTRACT", "DATE_TRUNC"):
            _check_part(self.name, arguments[0])
        return self.signature(arguments)

    def build(self, arguments: tuple[Expression, ...], type_: Type) -> Expression:
        """The bound call."""
        if self.name == "MOD":
            return Arithmetic("%", arguments[0], arguments[1], type_)
        if self.name in ("EXTRACT", "DATE_TRUNC"):
            part = arguments[0]
            assert isinstance(part, Literal)
            known = temporal.PARTS[str(part.value).lower()]
            return Function(self.name, (Literal(known, STRING), *arguments[1:]), type_)
        return Function(self.name, arguments, type_)


def _check_part(name: str, part: Expression) -> None:
    known = temporal.EXTRACTED if name == "EXTRACT" else temporal.TRUNCATED
    value = part.value if isinstance(part, Literal) else None
    if not isinstance(value, str) or temporal.PARTS.get(value.lower()) not in known:
        raise Unfit(0, "needs a part of a timestamp", "there are " + ", ".join(known))


def _fraction(kind: str) -> Kernel:
    return lambda arguments, type_, n: temporal.extract(kind, arguments[0], type_)


_ALL = (
    ScalarFunction(
        "ABS",
        1,
        1,
        signatures.same_number,
        numeric.absolute,
        "ABS(x)",
        "x without its sign; an error for the least INTEGER or BIGINT",
    ),
    ScalarFunction("SIGN", 1, 1, signatures.sign, numeric.sign, "SIGN(x)", "-1, 0 or 1; NaN for NaN"),
    ScalarFunction(
        "ROUND",
        1,
        2,
        signatures.rounded,
        numeric.rounded,
        "ROUND(x [, places])",
        "x rounded, halves away from zero; places may be negative",
    ),
    ScalarFunction(
        "FLOOR",
        1,
        1,
        signatures.whole,
        numeric.floor,
        "FLOOR(x)",
        "the greatest whole number that is not above x",
    ),
    ScalarFunction(
        "CEIL", 1, 1, signatures.whole, numeric.ceil, "CEIL(x)", "the least whole number that is not below x"
    ),
    ScalarFunction(
        "MOD",
        2,
        2,
        signatures.modulo,
        numeric.unreachable,
        "MOD(x, y)",
        "x % y: the remainder, with the sign of x; an error where y is 0",
    ),
    ScalarFunction(
        "SQRT",
        1,
        1,
        signatures.doubles,
        numeric.sqrt,
        "SQRT(x)",
        "the square root, a DOUBLE; an error below 0",
    ),
    ScalarFunction(
        "LN",
        1,
        1,
        signatures.doubles,
        numeric.ln,
        "LN(x)",
        "the natural logarithm, a DOUBLE; an error at 0 and below",
    ),
    ScalarFunction(
        "EXP",
        1,
        1,
        signatures.doubles,
        numeric.exp,
        "EXP(x)",
        "e to the power of x, a DOUBLE; infinity where it is too large",
    ),
    ScalarFunction(
        "POWER",
        2,
        2,
        signatures.doubles,
        numeric.power,
        "POWER(x, y)",
        "x to the power of y, a DOUBLE; "
        "an error for 0 to a negative power and for a fractional power of a negative number",
    ),
    ScalarFunction(
        "GREATEST",
        1,
        ARGUMENTS_MAX,
        signatures.common_type,
        choices.greatest,
        "GREATEST(x, ...)",
        "the greatest argument; NULLs are passed over",
    ),
    ScalarFunction(
        "LEAST",
        1,
        ARGUMENTS_MAX,
        signatures.common_type,
        choices.least,
        "LEAST(x, ...)",
        "the least argument; NULLs are passed over",
    ),
    ScalarFunction(
        "COALESCE",
        1,
        ARGUMENTS_MAX,
        signatures.common_type,
        choices.coalesce,
        "COALESCE(x, ...)",
        "the first argument that is not NULL; errors in arguments after it do not count",
    ),
    ScalarFunction(
        "NULLIF", 2, 2, signatures.nullif, choices.nullif, "NULLIF(x, y)", "NULL where x = y, else x"
    ),
    ScalarFunction("LOWER", 1, 1, signatures.strings, text.lower, "LOWER(s)", "s in lower case"),
    ScalarFunction("UPPER", 1, 1, signatures.strings, text.upper, "UPPER(s)", "s in upper case"),
    ScalarFunction("LENGTH", 1, 1, signatures.length, text.length, "LENGTH(s)", "the number of characters"),
    ScalarFunction(
        "TRIM",
        1,
        2,
        signatures.strings,
        text.trim,
        "TRIM(s [, characters])",
        "s without blanks (or these characters) at both ends; also TRIM(BOTH 'x' FROM s)",
    ),
    ScalarFunction(
        "LTRIM",
        1,
        2,
        signatures.strings,
        text.ltrim,
        "LTRIM(s [, characters])",
        "the same at the beginning; also TRIM(LEADING 'x' FROM s)",
    ),
    ScalarFunction(
        "RTRIM",
        1,
        2,
        signatures.strings,
        text.rtrim,
        "RTRIM(s [, characters])",
        "the same at the end; also TRIM(TRAILING 'x' FROM s)",
    ),
    ScalarFunction(
        "SUBSTRING",
        2,
        3,
        signatures.substring,
        text.substring,
        "SUBSTRING(s, start [, length])",
        "the part from character start (the first is 1); "
        "also SUBSTRING(s FROM 2 FOR 3); an error for a negative length",
    ),
    ScalarFunction(
        "REPLACE",
        3,
        3,
        signatures.strings,
        text.replace,
        "REPLACE(s, old, new)",
        "s with every old replaced by new; an empty old changes nothing",
    ),
    ScalarFunction(
        "CONCAT",
        1,
        ARGUMENTS_MAX,
        signatures.anything_to_string,
        text.concat,
        "CONCAT(x, ...)",
        "the arguments as one string; NULLs are passed over",
    ),
    ScalarFunction(
        "||",
        2,
        2,
        signatures.anything_to_string,
        text.join,
        "x || y",
        "both as one string; NULL where one is NULL",
    ),
    ScalarFunction(
        "STARTS_WITH",
        2,
        2,
        signatures.starts_with,
        text.starts_with,
        "STARTS_WITH(s, prefix)",
        "whether s begins with the prefix",
    ),
    ScalarFunction(
        "POSITION",
        2,
        2,
        signatures.position,
        text.position,
        "POSITION(part, s)",
        "the place of the first occurrence of part in s, counted from 1; 0 if there is none",
    ),
    ScalarFunction(
        "COUNT_CHAR",
        2,
        2,
        signatures.position,
        splits.count_char,
        "COUNT_CHAR(s, part)",
        "the number of occurrences of part in s, without overlaps",
    ),
    ScalarFunction(
        "SPLIT_PART",
        3,
        3,
        signatures.split,
        splits.split_part,
        "SPLIT_PART(s, delimiter, n)",
        "the n-th part of s between delimiters, from 1, or from -1 at the end; "
        "an empty string where there is none; an error for 0",
    ),
    ScalarFunction(
        "SPLIT_INDEX",
        3,
        3,
        signatures.split,
        splits.split_index,
        "SPLIT_INDEX(s, delimiter, n)",
        "the n-th part of s between delimiters, from 0; NULL where there is none",
    ),
    ScalarFunction(
        "REGEXP_LIKE",
        2,
        2,
        signatures.patterned(BOOLEAN),
        regexes.regexp_like,
        "REGEXP_LIKE(s, pattern)",
        "whether a regular expression (RE2, a string literal) matches anywhere in s",
    ),
    ScalarFunction(
        "REGEXP_EXTRACT",
        2,
        3,
        signatures.patterned(STRING),
        regexes.regexp_extract,
        "REGEXP_EXTRACT(s, pattern [, group])",
        "the first match, or a group of it by its number; NULL where nothing matches, "
        "an empty string for a group that takes no part",
    ),
    ScalarFunction(
        "DATE_FORMAT",
        2,
        2,
        signatures.formatted(formats.java_parts, formats.DATE_FORMAT),
        formats.date_format,
        "DATE_FORMAT(t, 'yyyy-MM-dd')",
        "t as text, in Java's pattern letters: " + ", ".join(formats.DATE_FORMAT),
    ),
    ScalarFunction(
        "TO_CHAR",
        2,
        2,
        signatures.formatted(formats.postgres_parts, formats.TO_CHAR),
        formats.to_char,
        "TO_CHAR(t, 'YYYY-MM-DD')",
        "t as text, in PostgreSQL's pattern letters: " + ", ".join(formats.TO_CHAR),
    ),
    ScalarFunction(
        "EXTRACT",
        2,
        2,
        signatures.part_of,
        temporal.extract_part,
        "EXTRACT(part FROM t)",
        "a part of a timestamp as BIGINT: " + ", ".join(temporal.EXTRACTED),
    ),
    *(
        ScalarFunction(
            part, 1, 1, signatures.calendar, _fraction(part), f"{part}(t)", f"EXTRACT({part} FROM t)"
        )
        for part in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
    ),
    ScalarFunction(
        "DATE_TRUNC",
        2,
        2,
        signatures.truncated,
        temporal.truncate,
        "DATE_TRUNC('hour', t)",
        "the beginning of the part that t lies in: " + ", ".join(temporal.TRUNCATED),
    ),
    ScalarFunction(
        "ADD_MONTHS",
        2,
        2,
        signatures.moved_by,
        temporal.add_months,
        "ADD_MONTHS(t, n)",
        "t so many months later: the same day, or the last of a month that is shorter; "
        "also t + INTERVAL '3' MONTH; an error outside the years 1 to 9999",
    ),
    ScalarFunction(
        "TO_TIMESTAMP",
        1,
        1,
        signatures.from_epoch,
        temporal.from_epoch,
        "TO_TIMESTAMP(ms)",
        "the TIMESTAMP so many milliseconds after 1970; an error outside the years 1 to 9999",
    ),
    ScalarFunction(
        "EPOCH_MS", 1, 1, signatures.calendar, temporal.to_epoch, "EPOCH_MS(t)", "milliseconds since 1970"
    ),
)

FUNCTIONS: dict[str, ScalarFunction] = {function.name: function for function in _ALL}
SEEDED = "seeded sample key"
"""The function of a sample key and a constant seed that SAMPLE(p, seed) compares; no text can call it."""
KERNELS: dict[str, Kernel] = {function.name: function.kernel for function in _ALL} | {SEEDED: samples.seeded}
ALIASES = {
    "CEILING": "CEIL",
    "POW": "POWER",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "SUBSTR": "SUBSTRING",
    "LCASE": "LOWER",
    "UCASE": "UPPER",
    "IFNULL": "COALESCE",
    "DATE_PART": "EXTRACT",
    "REGEXP_MATCHES": "REGEXP_LIKE",
    "REGEXP_CONTAINS": "REGEXP_LIKE",
}


def function_named(name: str) -> ScalarFunction | None:
    """The function of an upper-case name or alias, None if there is none. ``||`` is no name."""
    return FUNCTIONS.get(ALIASES.get(name, name)) if name != "||" else None


@dataclass(frozen=True, slots=True)
class Called:
    """A user's function as a text calls it."""

    function: UserFunction

    @property
    def usage(self) -> str:
        return f"{self.function.name}({', '.join(str(type_) for type_ in self.function.arguments)})"

    @property
    def arity_min(self) -> int:
        return len(self.function.arguments)

    arity_max = arity_min

    def types(self, arguments: Sequence[Expression]) -> Types:
        """The declared types. Raises Unfit."""
        declared = self.function.arguments
        return [signatures.fits(arguments, place, type_) for place, type_ in enumerate(declared)], (
            self.function.result
        )

    def build(self, arguments: tuple[Expression, ...], type_: Type) -> Expression:
        """The bound call."""
        return Function(self.function.name, arguments, type_, self.function)


class FunctionCatalogue:
    """The functions that a text may call: those of this module, and a user's."""

    def __init__(self, functions: Iterable[UserFunction] = ()) -> None:
        """Raises ValueError for a name that is taken or is no name, and for types that are not supported."""
        self._users: dict[str, Called] = {}
        for function in functions:
            problem = self._problem(function)
            if problem is not None:
                raise ValueError(f"function {function.name!r}: {problem}")
            self._users[function.name] = Called(function)

    def _problem(self, function: UserFunction) -> str | None:
        name = function.name
        if not (name.isascii() and name.isidentifier() and name == name.upper() and len(name) <= 100):
            return "its name must be a word of letters, digits and underscores"
        if name in RESERVED or name in CLOCKS or self.named(name) is not None or aggregate_named(name):
            return "this name is taken"
        if not 1 <= len(function.arguments) <= ARGUMENTS_MAX:
            return f"a function takes 1 to {ARGUMENTS_MAX} arguments"
        if any(t.kind in (Kind.NULL, Kind.ARRAY) for t in (*function.arguments, function.result)):
            return "its types must be types of columns"
        return None

    def named(self, name: str) -> ScalarFunction | Called | None:
        """The function of an upper-case name or alias, None if there is none."""
        return self._users.get(name) or function_named(name)

    @property
    def names(self) -> list[str]:
        """All names and aliases."""
        return [*FUNCTIONS, *ALIASES, *self._users]

    @property
    def users(self) -> list[UserFunction]:
        """The users' functions, by name."""
        return [self._users[name].function for name in sorted(self._users)]


BUILT_IN = FunctionCatalogue()
