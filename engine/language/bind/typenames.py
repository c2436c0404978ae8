"""Type names to types."""

from __future__ import annotations

from sqlglot import exp

from engine.language.places import Text, did_you_mean, shown
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

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
    "JSON": JSON,
    "JSONB": JSON,
    "UUID": UUID,
    **dict.fromkeys(("BYTES", "BYTEA", "BLOB", "BINARY", "VARBINARY"), BYTES),
}
_INSTEAD = {
    "TINYINT": "write INTEGER",
    "REAL": "write DOUBLE",
    "FLOAT4": "write DOUBLE",
    "CHAR": "write STRING",
    "TIME": "write TIMESTAMP, or INTEGER for seconds of the day",
    "SERIAL": "write BIGINT",
    "BIGSERIAL": "write BIGINT",
    "NUMBER": "write DECIMAL(18, 2), BIGINT or DOUBLE",
    "INET": "write STRING",
    "ENUM": "write STRING",
    "VARIANT": "write JSON",
    "OBJECT": "write JSON",
    "MULTISET": "write ARRAY<type>",
    "INTERVAL": "write BIGINT for milliseconds",
    "UNSIGNED": "write BIGINT",
    "HUGEINT": "write DECIMAL(18, 0)",
    "UBIGINT": "write DECIMAL(18, 0)",
}
_INSIDE = {"INTERVAL": INTERVAL, "TIME": TIME}
"""Types of expressions that no column is declared with."""
_SHOWN = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "DATE", "TIMESTAMP")
_COMPOSED = {
    "ARRAY": "write ARRAY<BIGINT>",
    "LIST": "write ARRAY<BIGINT>",
    "MAP": "write MAP<STRING, BIGINT>",
    "STRUCT": "write STRUCT<name STRING, size BIGINT>, or JSON",
    "ROW": "write STRUCT<name STRING, size BIGINT>, or JSON",
}


def bind_type(node: exp.Expr, text: Text, *, declared: bool = False) -> Type:
    """The type of a name. ``declared``: of a column, where VARCHAR(20) is STRING: no length is checked, while
    a cast to it would cut the string. Raises TypeMismatch, NotSupported.
    """
    name = str(node.args["name"])
    if node.args.get("types"):
        return _composed(node, text)
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
    if name in _COMPOSED:
        raise text.of_node(node).refuse(TypeMismatch, f"{name} is made of other types", hint=_COMPOSED[name])
    if name in _INSTEAD:
        raise place.refuse(NotSupported, f"the type {name} is not supported", hint=_INSTEAD[name])
    close = did_you_mean(name.lower(), [t.lower() for t in _SHOWN])
    suggested = [t for t in _SHOWN if close and close.startswith("did") and t.lower() in close]
    hint = f"did you mean {' or '.join(suggested)}?" if suggested else "there are " + ", ".join(_SHOWN)
    raise place.refuse(TypeMismatch, f"there is no type named {shown(name)}", hint=hint)


def _composed(node: exp.Expr, text: Text) -> Type:
    """A type that is made of others. Raises TypeMismatch, NotSupported, SyntaxRefused."""
    types = [bind_type(one, text, declared=True) for one in node.args["types"]]
    match node.args["name"]:
        case "ARRAY":
            return array(types[0])
        case "MAP":
            if types[0] != STRING:
                raise text.of_node(node.args["types"][0]).refuse(
                    NotSupported,
                    f"the keys of a MAP are STRINGs, this is {types[0]}",
                    hint="write MAP<STRING, BIGINT>; names of JSON's members are strings",
                )
            return map_of(types[1])
    names = [str(one.this) for one in node.args["names"]]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise text.of_node(node.args["names"][place]).refuse(
                SyntaxRefused, f"the member {shown(name)!r} is declared twice", hint="rename one of them"
            )
    return struct(zip(names, types, strict=True))
