"""Random SQL over a schema: typed from the start, so that the binder should accept every text.

Literals come from the same pools as the data of :mod:`tests.strategies`, so that predicates meet rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from engine.model.source import Schema, Stream
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Type, decimal
from tests.strategies import DECIMALS, favourite, values

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
NUMERIC = (INTEGER, BIGINT, DOUBLE, decimal(5, 2))
PATTERNS = ("", "%", "_", "a%", "%b", "%a%", "_b", "A_", "ä", "%\u0301", "a!%b", "!_%", "日%", "__", "%%")
EPOCH = datetime.datetime(1970, 1, 1)


def literal(type_: Type, value: Any) -> str:
    """A value as SQL text of this very type."""
    kind = type_.kind
    if value is None:
        return "NULL"
    if kind is Kind.BOOLEAN:
        return str(value).upper()
    if kind in (Kind.INTEGER, Kind.BIGINT):
        return f"({value})" if value < 0 else str(value)
    if kind is Kind.DOUBLE:
        if value != value or value in (float("inf"), float("-inf")):
            return f"CAST('{value}' AS DOUBLE)"
        text = repr(value)
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if text.startswith("-") else text
    if kind is Kind.DECIMAL:
        return f"CAST('{value:f}' AS {type_})" if type_.scale else f"({value}.0)"
    if kind is Kind.STRING:
        return "'" + value.replace("'", "''") + "'"
    if kind is Kind.DATE:
        return f"DATE '{(EPOCH + datetime.timedelta(days=value)).date().isoformat()}'"
    at = EPOCH + datetime.timedelta(milliseconds=value)
    return f"TIMESTAMP '{at.isoformat(sep=' ', timespec='milliseconds')}'"


class Writer:
    """Writes expressions of a wanted type. ``functions``: FUNCTION texts by kind, from the catalogue."""

    def __init__(
        self, draw: st.DrawFn, schema: Schema, instant: int | None = None, errors: bool = True
    ) -> None:
        self.draw = draw
        self.schema = schema
        self.instant = instant
        self.errors = errors

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def column(self, type_: Type) -> str | None:
        """A column of exactly this type."""
        names = [f'"{f.name}"' for f in self.schema if f.type == type_]
        return self.pick(*names) if names else None

    def constant(self, type_: Type) -> str:
        if type_.kind is Kind.TIMESTAMP and self.instant is not None:
            return literal(type_, self.instant + self.draw(st.integers(-60, 60)))
        value = self.draw(favourite(type_) | values(type_))
        if type_.kind is Kind.BIGINT and value == -(2**63):
            value += 1  # the literal is a minus sign before a number that does not fit
        if type_.kind is Kind.INTEGER and value == -(2**31):
            value += 1
        return literal(type_, value)

    def some_type(self) -> Type:
        """Mostly the type of a column."""
        return self.pick(
            *[f.type for f in self.schema], *[f.type for f in self.schema], INTEGER, STRING, DOUBLE
        )

    # --- predicates ---------------------------------------------------------------------------------

    def predicate(self, depth: int = 2) -> str:
        form = self.pick("leaf", "leaf", "and", "or", "not", "case") if depth > 0 else "leaf"
        if form == "and" or form == "or":
            operands = [self.predicate(depth - 1) for _ in range(self.draw(st.integers(2, 3)))]
            return "(" + f" {form.upper()} ".join(operands) + ")"
        if form == "not":
            return f"NOT ({self.predicate(depth - 1)})"
        if form == "case":
            return (
                f"CASE WHEN {self.predicate(depth - 1)} THEN {self.predicate(depth - 1)} "
                f"ELSE {self.predicate(depth - 1)} END"
            )
        return self.leaf(depth)

    def leaf(self, depth: int) -> str:
        forms = ["column", "column", "column", "between", "in", "null", "pair", "expression", "truth", "like"]
        forms += ["erring"] * (2 if self.errors else 0)
        forms += ["distinct", "is", "either", "starts", *(["regex"] if self.errors else [])]
        form = self.pick(*forms)
        field = self.pick(*self.schema)
        name = f'"{field.name}"'
        if form == "column":
            return f"{name} {self.pick(*COMPARISONS)} {self.constant(field.type)}"
        if form == "between":
            negated = self.pick("", "", "NOT ")
            return f"{name} {negated}BETWEEN {self.constant(field.type)} AND {self.constant(field.type)}"
        if form == "in":
            choices = [self.constant(field.type) for _ in range(self.draw(st.integers(1, 4)))]
            if self.draw(st.booleans()):
                choices.append("NULL")
            return f"{name} {self.pick('', '', 'NOT ')}IN ({', '.join(choices)})"
        if form == "null":
            return f"{name} IS {self.pick('', 'NOT ')}NULL"
        if form == "pair":
            other = [f for f in self.schema if comparable(f.type, field.type)]
            return f'{name} {self.pick(*COMPARISONS)} "{self.pick(*other).name}"'
        if form == "erring":
            return self.erring()
        if form == "distinct":
            other_value = self.pick(self.constant(field.type), "NULL")
            return f"{name} IS {self.pick('', 'NOT ')}DISTINCT FROM {other_value}"
        if form == "is":
            return f"({self.predicate(0)}) IS {self.pick('', 'NOT ')}{self.pick('TRUE', 'FALSE', 'NULL')}"
        if form == "either":
            constants = [self.constant(field.type) for _ in range(3)]
            return "(" + " OR ".join(f"{constant} = {name}" for constant in constants) + ")"
        if form == "regex":
            return self.regex(depth)
        if form == "starts":
            return f"STARTS_WITH({self.expression(STRING, depth)}, {self.expression(STRING, 0)})"
        if form == "truth":
            column = self.column(BOOLEAN)
            return column if column is not None else self.pick("TRUE", "FALSE", "CAST(NULL AS BOOLEAN)")
        if form == "like":
            word = self.pick("LIKE", "LIKE", "NOT LIKE", "ILIKE")
            pattern = self.pick(*PATTERNS)
            return f"{self.expression(STRING, depth)} {word} '{pattern}'{self.pick('', '''  ESCAPE '!' ''')}"
        type_ = self.some_type()
        other_type = self.pick(*NUMERIC) if type_.is_numeric else type_
        return (
            f"{self.expression(type_, depth)} {self.pick(*COMPARISONS)} {self.expression(other_type, depth)}"
        )

    def regex(self, depth: int) -> str:
        if self.draw(st.booleans()):
            function = self.pick("CONTAINS", "ENDS_WITH", "STARTS_WITH")
            return f"{function}({self.expression(STRING, depth)}, {self.expression(STRING, 0)})"
        return f"REGEXP_LIKE({self.expression(STRING, depth)}, '{self.pick(*REGEXES)}')"

    def erring(self) -> str:
        """A comparison that is an error for some rows."""
        numbers = [f'"{f.name}"' for f in self.schema if f.type.is_numeric]
        texts = [f'"{f.name}"' for f in self.schema if f.type.kind is Kind.STRING]
        forms = [f"({self.pick(2147483647, 7)} / {n})" for n in numbers] + [f"(7 % {n})" for n in numbers]
        forms += [f"({n} * {self.pick(2147483647, 9000000000000000000)})" for n in numbers if "d" not in n]
        forms += [f"CAST({text} AS {self.pick(INTEGER, DOUBLE)})" for text in texts]
        forms += [f"SUBSTRING({text}, 1, LENGTH({text}) - 2)" for text in texts]
        expression = self.pick(*forms) if forms else "(1 / 0)"
        constant = "'a'" if expression.startswith("SUBSTRING") else self.pick("0", "1", "2.5e0")
        return f"{expression} {self.pick(*COMPARISONS)} {constant}"

    # --- values -------------------------------------------------------------------------------------

    def expression(self, type_: Type, depth: int = 2) -> str:
        """An expression whose value is of this type, or of one that compares with it if it is numeric."""
        simple = self.column(type_) if self.draw(st.booleans()) else None
        if depth <= 0 or self.draw(st.integers(0, 2)) == 0:
            return simple or self.column(type_) or self.constant(type_)
        form = self.pick("case", "choice", "cast", "own", "own", "own")
        if form == "case":
            return (
                f"CASE WHEN {self.predicate(depth - 1)} THEN {self.expression(type_, depth - 1)} "
                f"{self.pick('', f'ELSE {self.expression(type_, depth - 1)} ')}END"
            )
        if form == "choice":
            function = self.pick("COALESCE", "COALESCE", "NULLIF", "GREATEST", "LEAST")
            return f"{function}({self.expression(type_, depth - 1)}, {self.expression(type_, depth - 1)})"
        if form == "cast" and self.errors:
            return self.cast(type_, depth)
        if type_.is_numeric:
            return self.number(type_, depth)
        if type_.kind is Kind.STRING:
            return self.string(depth)
        if type_.kind is Kind.BOOLEAN:
            return f"({self.predicate(depth - 1)})"
        if type_.kind is Kind.TIMESTAMP:
            return self.instant_of(depth)
        return simple or self.constant(type_)

    def cast(self, type_: Type, depth: int) -> str:
        source = self.pick(*castable(type_))
        return f"{self.pick('CAST', 'TRY_CAST')}(({self.expression(source, depth - 1)}) AS {type_})"

    def number(self, type_: Type, depth: int) -> str:
        if self.draw(st.booleans()):
            function = self.pick(*NUMBER_FUNCTIONS)
            return function(self, type_, depth - 1)
        if self.draw(st.integers(0, 5)) == 0:
            return f"(- {self.expression(type_, depth - 1)})"
        left, right = self.expression(type_, depth - 1), self.expression(self.pick(*NUMERIC), depth - 1)
        operators = "+-/%" if type_.scale > 9 else "+-*/%"  # a product with more than 18 places is refused
        return f"({left} {self.pick(*operators)} {right})"

    def whole(self, depth: int) -> str:
        """An INTEGER or BIGINT in the strict sense."""
        return f"CAST({self.expression(INTEGER, depth)} AS {self.pick(INTEGER, BIGINT)})"

    def instant_of(self, depth: int) -> str:
        form = self.pick("epoch", "months", "interval", "truncated", "zone", "bin")
        if form == "zone":
            function, zone = self.pick("FROM", "TO"), self.pick("Europe/Berlin", "America/New_York", "+05:30")
            return f"{function}_UTC_TIMESTAMP({self.expression(TIMESTAMP, depth - 1)}, '{zone}')"
        if form == "bin":
            return f"DATE_BIN(INTERVAL '{self.pick(1, 7)}' HOUR, {self.expression(TIMESTAMP, depth - 1)})"
        if form == "epoch":
            return f"TO_TIMESTAMP({self.whole(depth - 1)})"
        if form == "months":
            instant = self.expression(self.pick(TIMESTAMP, DATE), depth - 1)
            return f"ADD_MONTHS({instant}, {self.whole(depth - 1)})"
        if form == "interval":
            return self.moved(depth)
        return f"DATE_TRUNC('{self.pick(*TRUNCATED)}', {self.expression(TIMESTAMP, depth - 1)})"

    def moved(self, depth: int) -> str:
        """An instant by an interval."""
        unit = self.pick("MONTH", "QUARTER", "YEAR", "DAY", "HOUR")
        number = self.draw(st.sampled_from([0, 1, 2, 11, 25]))
        instant = self.expression(self.pick(TIMESTAMP, DATE), depth - 1)
        return f"({instant} {self.pick('+', '-')} INTERVAL '{number}' {unit})"

    def string(self, depth: int) -> str:
        return self.pick(*STRING_FUNCTIONS)(self, depth - 1)


def comparable(a: Type, b: Type) -> bool:
    times = (Kind.DATE, Kind.TIMESTAMP)
    return (a.is_numeric and b.is_numeric) or a.kind is b.kind or (a.kind in times and b.kind in times)


def castable(type_: Type) -> tuple[Type, ...]:
    """From which types a cast to this one is served."""
    kind = type_.kind
    if kind is Kind.STRING:
        return (INTEGER, BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, *DECIMALS)
    if type_.is_numeric:
        return (STRING, *NUMERIC, BOOLEAN)
    if kind is Kind.DATE:
        return (STRING, TIMESTAMP)
    if kind is Kind.TIMESTAMP:
        return (STRING, DATE)
    return (STRING, INTEGER, DOUBLE)


PARTS = (
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "DOW",
    "ISODOW",
    "DOY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "EPOCH",
)
TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
REGEXES = ("(a)|(b)", "^(.)b", "([a-z]+)$", "([0-9])[-.:]?", "(x?)", "([^a])", r"\.(\d+)")
REPLACEMENTS = ("", "<\\0>", r"x\\\\y", r"\\0\\0")
ANGLES = (
    *("SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN", "SIND", "COSD", "TAND", "ASIND", "ACOSD", "ATAND"),
    *("SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH", "DEGREES", "RADIANS"),
)
JAVA_FORMATS = ("yyyy-MM-dd HH:mm:ss.SSS", "d.M.yy", "h:m:s a", "hh", "''T''H", "MM/dd")
POSTGRES_FORMATS = ("YYYY-MM-DD HH24:MI:SS.MS", "ddd", "HH12 am", 'HH"h"MI', "YY", "mmss")
PARTS_OF_SPLITS = (-2, -1, 0, 1, 2, 5)
PLACES = (-19, -3, -1, 0, 1, 2, 3)
NUMBER_FUNCTIONS: tuple[Callable[[Writer, Type, int], str], ...] = (
    lambda w, t, d: f"{w.pick('ABS', 'SIGN', 'FLOOR', 'CEIL', 'ROUND')}({w.expression(t, d)})",
    lambda w, t, d: f"ROUND({w.expression(t, d)}, {w.pick(*PLACES)})",
    lambda w, t, d: f"MOD({w.expression(t, d)}, {w.expression(t, d)})",
    lambda w, t, d: f"SQRT({w.expression(t, d)})",
    lambda w, t, d: f"TRUNC({w.expression(t, d)}{w.pick('', *(f', {n}' for n in PLACES))})",
    lambda w, t, d: f"{w.pick(*ANGLES)}({w.expression(t, d)})",
    lambda w, t, d: f"{w.pick('ATAN2', 'ATAN2D')}({w.expression(t, d)}, {w.expression(t, d)})",
    lambda w, t, d: f"({w.whole(d)} {w.pick('&', '|', '#')} {w.whole(d)})",
    lambda w, t, d: f"({w.whole(d)} {w.pick('<<', '>>')} {w.pick(-1, 0, 1, 31, 63, 64)})",
    lambda w, t, d: f"(~ {w.whole(d)})",
    lambda w, t, d: f"{w.pick('GCD', 'LCM', 'DIV')}({w.whole(d)}, {w.whole(d)})",
    lambda w, t, d: f"FACTORIAL({w.whole(d)})",
    lambda w, t, d: f"{w.pick('GAMMA', 'LGAMMA')}({w.expression(t, d)})",
    lambda w, t, d: f"{w.pick('LENGTH', 'OCTET_LENGTH', 'ASCII')}({w.expression(STRING, d)})",
    lambda w, t, d: f"STRPOS({w.expression(STRING, d)}, {w.expression(STRING, 0)})",
    lambda w, t, d: f"REGEXP_COUNT({w.expression(STRING, d)}, '{w.pick(*REGEXES)}')",
    lambda w, t, d: f"IF({w.predicate(d)}, {w.expression(t, d)}, {w.expression(t, d)})",
    lambda w, t, d: f"NVL2({w.expression(STRING, d)}, {w.expression(t, d)}, {w.expression(t, d)})",
    lambda w, t, d: f"COUNT_CHAR({w.expression(STRING, d)}, {w.expression(STRING, 0)})",
    lambda w, t, d: f"POSITION({w.expression(STRING, d)}, {w.expression(STRING, d)})",
    lambda w, t, d: (
        f"EXTRACT({w.pick(*PARTS, 'MILLISECOND')} FROM {w.expression(w.pick(TIMESTAMP, DATE), d)})"
    ),
    lambda w, t, d: (
        f"{w.pick(*PARTS[:3], 'DAY', 'HOUR', 'EPOCH_MS')}({w.expression(w.pick(TIMESTAMP, DATE), d)})"
    ),
    lambda w, t, d: (
        f"{w.pick('GREATEST', 'LEAST')}({w.expression(t, d)}, {w.expression(w.pick(*NUMERIC), d)})"
    ),
)
STRING_FUNCTIONS: tuple[Callable[[Writer, int], str], ...] = (
    lambda w, d: f"{w.pick('UPPER', 'LOWER', 'TRIM', 'LTRIM', 'RTRIM')}({w.expression(STRING, d)})",
    lambda w, d: f"{w.pick('TRIM', 'LTRIM', 'RTRIM')}({w.expression(STRING, d)}, {w.expression(STRING, 0)})",
    lambda w, d: f"({w.expression(STRING, d)} || {w.expression(w.some_type(), d)})",
    lambda w, d: f"CONCAT({w.expression(STRING, d)}, {w.expression(w.some_type(), d)}, 'x')",
    lambda w, d: f"SUBSTRING({w.expression(STRING, d)}, {w.pick(-1, 0, 1, 2, 9)})",
    lambda w, d: f"SUBSTRING({w.expression(STRING, d)}, {w.pick(-1, 0, 1, 2)}, {w.pick(-1, 0, 1, 3)})",
    lambda w, d: f"SUBSTRING({w.expression(STRING, d)} FROM {w.whole(d)} FOR {w.whole(d)})",
    lambda w, d: f"REPLACE({w.expression(STRING, d)}, {w.expression(STRING, 0)}, {w.expression(STRING, 0)})",
    lambda w, d: (
        f"{w.pick('SPLIT_PART', 'SPLIT_INDEX')}({w.expression(STRING, d)}, {w.expression(STRING, 0)},"
        f" {w.pick(*PARTS_OF_SPLITS)})"
    ),
    lambda w, d: f"{w.pick('LEFT', 'RIGHT', 'REPEAT')}({w.expression(STRING, d)}, {w.pick(-2, 0, 1, 3)})",
    lambda w, d: (
        f"{w.pick('LPAD', 'RPAD')}({w.expression(STRING, d)}, {w.pick(-1, 0, 2, 7, 5000)}"
        f"{w.pick('', ', ' + w.expression(STRING, 0))})"
    ),
    lambda w, d: f"{w.pick('REVERSE', 'INITCAP', 'MD5', 'SHA1', 'SHA256')}({w.expression(STRING, d)})",
    lambda w, d: (
        f"TRANSLATE({w.expression(STRING, d)}, {w.expression(STRING, 0)}, {w.expression(STRING, 0)})"
    ),
    lambda w, d: (
        f"CONCAT_WS({w.expression(STRING, 0)}, {w.expression(STRING, d)}, {w.expression(w.some_type(), d)})"
    ),
    lambda w, d: f"CHR({w.whole(d)})",
    lambda w, d: (
        f"REGEXP_REPLACE({w.expression(STRING, d)}, '{w.pick(*REGEXES)}', '{w.pick(*REPLACEMENTS)}'"
        f"{w.pick('', ', ' + chr(39) + 'g' + chr(39), ', ' + chr(39) + 'gi' + chr(39))})"
    ),
    lambda w, d: f"REGEXP_EXTRACT({w.expression(STRING, d)}, '{w.pick(*REGEXES)}'{w.pick('', ', 0', ', 1')})",
    lambda w, d: f"DATE_FORMAT({w.expression(TIMESTAMP, d)}, '{w.pick(*JAVA_FORMATS)}')",
    lambda w, d: f"TO_CHAR({w.expression(TIMESTAMP, d)}, '{w.pick(*POSTGRES_FORMATS)}')",
)


@st.composite
def predicates(draw: st.DrawFn, schema: Schema, depth: int = 2, errors: bool = True) -> str:
    return Writer(draw, schema, errors=errors).predicate(depth)


@st.composite
def expressions(draw: st.DrawFn, schema: Schema, depth: int = 2, errors: bool = True) -> str:
    writer = Writer(draw, schema, errors=errors)
    return writer.expression(writer.some_type(), depth)


# --- statements ---------------------------------------------------------------------------------------


def window(draw: st.DrawFn, instant: int) -> tuple[str, str]:
    """A window clause behind the stream, or a BEGIN END clause at the end; instants around ``instant``."""
    span = draw(st.sampled_from([0, 1, 5, 20, 60, 500]))
    back = draw(st.sampled_from([0, 1, 10, 40]))
    constant = instant + draw(st.integers(-80, 250))
    in_brackets = [
        "",
        "[UNBOUNDED]",
        "[NOW]",
        f"[RANGE {span} MILLISECONDS]",
        f"[RANGE INTERVAL '{span}' MILLISECOND]",
        f"[ROWS {draw(st.sampled_from([1, 2, 5, 40]))}]",
    ]
    at_end = [
        f"BEGIN {constant} END {constant + span}",
        f"BEGIN {constant} END NOW",
        f"BEGIN NOW - {span} MILLISECONDS END NOW",
        f"BEGIN(NOW - {span + back}) END(NOW - {back})",
        f"BEGIN NOW - INTERVAL '{span} milliseconds' END {constant}",
        f"BEGIN {literal(TIMESTAMP, constant)} END NOW - {back} MILLISECONDS",
        f"BEGIN {constant} END NOW - {back} MILLISECONDS",
    ]
    clause = draw(st.sampled_from(in_brackets + at_end))
    return (clause, "") if clause.startswith("[") or not clause else ("", clause)


def statement(draw: st.DrawFn, stream: Stream, instant: int = 1_000, depth: int = 1) -> str:
    """A SELECT over a stream."""
    behind, at_end = window(draw, instant)
    writer = Writer(draw, stream.schema, instant)
    depth += draw(st.sampled_from([0, 0, 1]))
    form = draw(st.sampled_from(["star", "columns", "columns", "count"]))
    if form == "star":
        outputs = "*"
    elif form == "count":
        outputs = "COUNT(*)"
    else:
        kinds = [writer.some_type() for _ in range(draw(st.integers(1, 2)))]
        outputs = ", ".join(f"{writer.expression(kind, depth)} AS o{n}" for n, kind in enumerate(kinds))
    where = f" WHERE {writer.predicate(depth)}" if draw(st.integers(0, 4)) else ""
    return f'SELECT {outputs} FROM "{stream.name}" {behind}{where} {at_end}'.strip()
