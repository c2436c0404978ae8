"""The catalogue of scalar functions, and those that users add. Its rows stand in
:mod:`engine.language.scalar_functions`.

Unless its text says otherwise a function is strict: NULL where an argument is NULL, else an error where one
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.language import signatures
from engine.language.aggregates import aggregate_named
from engine.language.evaluation import samples
from engine.language.grammar.words import CLOCKS, RESERVED
from engine.language.scalar_functions.choices import CHOICES
from engine.language.scalar_functions.dates import DATES
from engine.language.scalar_functions.function import ARGUMENTS_MAX, Kernel, ScalarFunction
from engine.language.scalar_functions.nested import NESTED
from engine.language.scalar_functions.numbers import NUMBERS
from engine.language.scalar_functions.strings import STRINGS
from engine.language.scalar_functions.times import TIMES
from engine.language.signatures import Types
from engine.model.expressions import Expression, Function, UserFunction
from engine.model.types import Kind, Type

_ALL = (*NUMBERS, *CHOICES, *STRINGS, *TIMES, *DATES, *NESTED)
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
    **dict.fromkeys(("STRPTIME", "PARSE_TIMESTAMP", "TIMESTAMP_MILLIS"), "TO_TIMESTAMP"),
    "PARSE_DATE": "TO_DATE",
    **dict.fromkeys(("FORMAT_TIMESTAMP", "FORMAT_DATE"), "DATE_FORMAT"),
    "DAYOFMONTH": "DAY",
    "WEEKOFYEAR": "WEEK",
    "UNIX_MILLIS": "EPOCH_MS",
    "UNIX_SECONDS": "UNIX_TIMESTAMP",
    "TIMESTAMPADD": "DATEADD",
    "REGEXP_MATCHES": "REGEXP_LIKE",
    "REGEXP_CONTAINS": "REGEXP_LIKE",
    "TRUNCATE": "TRUNC",
    "IIF": "IF",
    "NVL": "COALESCE",
    "LEN": "LENGTH",
    "INSTR": "STRPOS",
    "UNICODE": "ASCII",
    "CHAR": "CHR",
    "SUFFIX": "ENDS_WITH",
    "PREFIX": "STARTS_WITH",
    "JSON_QUERY": "JSON_EXTRACT",
    "JSON_EXTRACT_SCALAR": "JSON_VALUE",
    "JSON_TYPEOF": "JSON_TYPE",
    "JSON_BUILD_OBJECT": "JSON_OBJECT",
    "JSON_BUILD_ARRAY": "JSON_ARRAY",
    "JSON_OBJECT_KEYS": "JSON_KEYS",
    "TO_JSONB": "TO_JSON",
    "ARRAY_LENGTH": "CARDINALITY",
    "LIST_CONTAINS": "ARRAY_CONTAINS",
    "ARRAY_HAS": "ARRAY_CONTAINS",
    "ARRAY_CAT": "ARRAY_CONCAT",
    "LIST_CONCAT": "ARRAY_CONCAT",
    "LIST_POSITION": "ARRAY_POSITION",
    "LIST_APPEND": "ARRAY_APPEND",
    "LIST_PREPEND": "ARRAY_PREPEND",
    "LIST_DISTINCT": "ARRAY_DISTINCT",
    "ARRAY_JOIN": "ARRAY_TO_STRING",
    "SPLIT": "STRING_TO_ARRAY",
    "STRING_SPLIT": "STRING_TO_ARRAY",
}


def function_named(name: str) -> ScalarFunction | None:
    """The function of an upper-case name or alias, or that of an operator; None if there is none."""
    return FUNCTIONS.get(ALIASES.get(name, name))


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
        if any(t.kind is Kind.NULL or t.logical is not None for t in (*function.arguments, function.result)):
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
