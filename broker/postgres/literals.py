"""Literals of a SELECT that DuckDB evaluates, as what they are compared with or cast to has them.

| literal                         | beside                            | becomes                              |
|---------------------------------|-----------------------------------|--------------------------------------|
| '2013-01-31T09:15:00Z'          | anything that it is compared with | the instant in UTC, without its zone |
| '\\x00ff'                       | a column of BYTES, a cast to bytea | bytes                               |
| '{1,2}' in ANY and ALL          |                                   | a list                               |
| '{1,2}'                         | a cast to an array                | a list                               |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from sqlglot import exp

from broker.postgres.parameters import BadValue
from engine.model.nested.array_literals import elements_of_text

IsBytes = Callable[[exp.Column], bool]
"""Whether a column is one of BYTES."""
COMPARISONS = (exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.In)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*(Z|[+-]\d\d(?::?\d\d)?)", re.IGNORECASE
)


def instant(value: exp.Expr) -> exp.Expr:
    """A literal instant with a zone, in UTC without it: columns hold such."""
    if not (isinstance(value, exp.Literal) and value.is_string):
        return value
    found = _ISO.fullmatch(value.name.strip())
    if found is None:
        return value
    try:
        at = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[3].upper()}").astimezone(UTC)
    except ValueError:
        return value
    return exp.Literal.string(at.strftime("%Y-%m-%d %H:%M:%S.%f"))


def of_bytes(value: exp.Expr) -> exp.Expr:
    """A literal as bytes: hexadecimal digits behind ``\\x``, else its text in UTF-8. Raises BadValue."""
    if not (isinstance(value, exp.Literal) and value.is_string):
        return value
    text = value.name
    try:
        data = bytes.fromhex(text[2:] if text.startswith("\\x") else text.encode().hex())
    except ValueError:
        raise BadValue("invalid hexadecimal data", hint="bytea is '\\x' and pairs of digits") from None
    return exp.cast(exp.Literal.string("".join(f"\\x{one:02X}" for one in data)), "varbinary")


def compared(node: exp.Expr, is_bytes: IsBytes) -> exp.Expr:
    """A comparison, with its literals as the other side has them. Raises BadValue."""
    elements = _elements(node)
    if elements is not None:
        is_any = isinstance(node, exp.EQ)
        if not elements:
            return exp.Boolean(this=not is_any)
        test = compared(exp.In(this=node.this.copy(), expressions=elements), is_bytes)
        return test if is_any else exp.not_(test)
    sides = [one for one in (node.args.get(key) for key in _SIDES) if isinstance(one, exp.Expr)]
    sides += node.args.get("expressions") or ()
    bytes_wanted = any(isinstance(one, exp.Column) and is_bytes(one) for one in sides)
    for one in sides:
        if isinstance(one, exp.Literal):
            changed = of_bytes(one) if bytes_wanted else instant(one)
            if changed is not one:
                one.replace(changed)
    return node


def _elements(node: exp.Expr) -> list[exp.Expr] | None:
    """The elements of ``x = ANY('{1,2}')`` and ``x <> ALL('{1,2}')``; None of anything else."""
    call = node.args.get("expression")
    if isinstance(node, exp.EQ) and isinstance(call, exp.Any):
        given = call.this
    elif isinstance(node, exp.NEQ) and isinstance(call, exp.Anonymous) and call.name.upper() == "ALL":
        given = call.expressions[0]
    else:
        return None
    found = listed(given)
    return None if found is given else list(found.expressions)


_SIDES = ("this", "expression", "low", "high")


def listed(value: exp.Expr) -> exp.Expr:
    """A literal array as a list of literals. Raises BadValue."""
    literal = value.unnest()
    if not (isinstance(literal, exp.Literal) and literal.is_string):
        return value
    try:
        elements = elements_of_text(literal.name)
    except ValueError:
        raise BadValue(
            f"malformed array literal: {literal.name[:80]!r}", hint="'{1,2}', of one dimension"
        ) from None
    return exp.Array(expressions=[exp.null() if one is None else exp.Literal.string(one) for one in elements])
