"""Users' functions from their declarations, whose types are named as in SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.language.bind.typenames import bind_type
from engine.language.dialect import tokenize
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.typenames import parse_type_name
from engine.language.places import Text
from engine.model.expressions import UserFunction
from engine.model.limits import Limits
from engine.model.types import Type
from engine.model.user_calls import FunctionMeter


def user_function(
    name: str,
    arguments: Sequence[str],
    returns: str,
    call: Callable[..., Any],
    *,
    vectorised: bool = False,
    deterministic: bool = False,
    arrow: bool = False,
    meter: FunctionMeter | None = None,
) -> UserFunction:
    """Names fold to upper case. Raises QueryError for a type that there is not. meter: None: one that no
    timer measures with.
    """
    return UserFunction(
        name.upper(),
        tuple(type_named(argument) for argument in arguments),
        type_named(returns),
        call,
        vectorised,
        deterministic,
        arrow,
        meter=meter or FunctionMeter(),
    )


def type_named(name: str) -> Type:
    """The type of a name such as ``DECIMAL(10, 2)``. Raises SyntaxRefused, TypeMismatch, NotSupported."""
    text = Text(name)
    cursor = Cursor(text, tokenize(text), Limits())
    written = parse_type_name(cursor)
    if not cursor.at_end:
        raise cursor.expected("the end of the type")
    return bind_type(written, text)
