"""Type names to types."""

from __future__ import annotations

from sqlglot import exp

from engine.language.grammar.words import NOT_NESTED
from engine.language.places import Text, did_you_mean, shown
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    Type,
    decimal,
)
from tureen.errors import NotSupported, TypeMismatch

TYPE_NAMES: dict[str, Type] = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "INTEGER": INTEGER,
    "INT": INTEGER,
    "INT4": INTEGER,
    "SMALLINT": INTEGER,
    "BIGINT": BIGINT,
    "INT8": BIGINT,
    "LONG": BIGINT,
    "DOUBLE": DOUBLE,
    "FLOAT8": DOUBLE,
    "FLOAT": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "TEXT": STRING,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "DATETIME": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP,
}
_INSTEAD = {
    "TINYINT": "write INTEGER",
    "REAL": "write DOUBLE",
    "FLOAT4": "write DOUBLE",
    "CHAR": "write STRING",
    "UUID": "write STRING",
    "BINARY": "write STRING",
    "BYTES": "write STRING",
    "BLOB": "write STRING",
    "JSON": NOT_NESTED,
    "JSONB": NOT_NESTED,
    "STRUCT": NOT_NESTED,
    "MAP": NOT_NESTED,
    "ARRAY": "declare a column for each element you need",
    "TIME": "write TIMESTAMP, or INTEGER for seconds of the day",
    "SERIAL": "write BIGINT",
    "BIGSERIAL": "write BIGINT",
    "NUMBER": "write DECIMAL(18, 2), BIGINT or DOUBLE",
    "INET": "write STRING",
    "ENUM": "write STRING",
    "BYTEA": "write STRING",
    "VARBINARY": "write STRING",
    "VARIANT": NOT_NESTED,
    "OBJECT": NOT_NESTED,
    "ROW": NOT_NESTED,
    "MULTISET": "declare a column for each element you need",
    "LIST": "declare a column for each element you need",
    "INTERVAL": "write BIGINT for milliseconds",
    "UNSIGNED": "write BIGINT",
    "HUGEINT": "write DECIMAL(18, 0)",
    "UBIGINT": "write DECIMAL(18, 0)",
}
_INSIDE = {"INTERVAL": INTERVAL, "TIME": TIME}
"""Types of expressions that no column is declared with."""
_SHOWN = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "DATE", "TIMESTAMP")


def bind_type(node: exp.Expr, text: Text, *, declared: bool = False) -> Type:
    """The type of a name. ``declared``: of a column, where VARCHAR(20) is STRING: no length is checked, while
    a cast to it would cut the string. Raises TypeMismatch, NotSupported.
    """
    name = str(node.args["name"])
    numbers: list[int] = node.args.get("numbers") or []
    place = text.of_node(node)
    if name in ("DECIMAL", "NUMERIC", "DEC"):
        precision = numbers[0] if numbers else DECIMAL_DIGITS_MAX
        scale = numbers[1] if len(numbers) > 1 else (0 if numbers else 3)
        if len(numbers) > 2 or not (1 <= precision <= DECIMAL_DIGITS_MAX and scale <= precision):
            raise place.refuse(
                TypeMismatch,
                f"a DECIMAL has at most {DECIMAL_DIGITS_MAX} digits, and no more places than digits",
                hint="write DECIMAL(18, 2), or DOUBLE",
            )
        return decimal(precision, scale)
    known = TYPE_NAMES.get(name)
    if known is not None:
        if numbers and known == TIMESTAMP and numbers != [3]:
            raise place.refuse(
                NotSupported,
                f"{name}({numbers[0]}) is not supported",
                hint="write TIMESTAMP, which has milliseconds",
            )
        if numbers and known == STRING and not (declared and name == "VARCHAR" and len(numbers) == 1):
            hint = f"write SUBSTRING(x, 1, {numbers[0]}), or CAST(x AS STRING)"
            raise place.refuse(
                NotSupported,
                f"{name}({numbers[0]}) is not supported here",
                hint="write STRING" if declared else hint,
            )
        if numbers and known not in (STRING, TIMESTAMP):
            raise place.refuse(NotSupported, f"{name} takes no numbers", hint=f"write {known}")
        return known
    if name in _INSIDE and not declared and not numbers:
        return _INSIDE[name]
    if name in _INSTEAD:
        raise place.refuse(NotSupported, f"the type {name} is not supported", hint=_INSTEAD[name])
    close = did_you_mean(name.lower(), [t.lower() for t in _SHOWN])
    suggested = [t for t in _SHOWN if close and close.startswith("did") and t.lower() in close]
    hint = f"did you mean {' or '.join(suggested)}?" if suggested else "there are " + ", ".join(_SHOWN)
    raise place.refuse(TypeMismatch, f"there is no type named {shown(name)}", hint=hint)
