"""Functions of your own for queries: declare one in Python, name its module to the broker, call it in SQL.

    import numpy as np
    import tureen

    @tureen.function(arguments=["DOUBLE", "DOUBLE"], returns="DOUBLE", vectorised=True, deterministic=True)
    def distance(x, y):
        return np.hypot(x, y)

    SELECT * FROM positions WHERE distance(x, y) < 10

The broker finds a function by an entry point of the group ``tureen.functions`` or by the name of its module
in its settings; nothing of it runs in the client. What is promised:

*   A row where an argument is NULL gives NULL, one where an argument is an error an error; the function is
    not called for it.
*   Per row, it is called with Python values: bool, int, float, decimal.Decimal, str, datetime.date and
    datetime.datetime (without a zone, UTC), and returns one, or None for NULL.
*   ``vectorised``: it is called with one numpy array an argument, all as long and never empty (bool, int32,
    int64, float64, datetime64[D], datetime64[ms]; object arrays of str and Decimal), and returns an array or
    a list as long. It must not write into them, and each result may depend on its own row only.
*   ``vectorised="arrow"``: the same with arrays of pyarrow.
*   A row for which it raises, or returns what does not fit ``returns``, is an error for that row alone. A
    vectorised function is called again with fewer rows to find which.
*   ``isolated``: it is called in a process of its own, for which its module is imported there. A call that
    takes longer than the broker's ``function_call_ms_max``, or ends the process, is an error of its row; that
    row is called twice then, and rows beside it may be. Otherwise it runs in the broker, and a call that
    does not return stops the streams that it is for.
*   It must not depend on anything but its arguments if it says ``deterministic``. One that does not say so
    is called whenever a value is needed, so that what it gives may differ between one look and the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ATTRIBUTE = "__tureen_function__"


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """What a decorator noted. Types are named as in SQL; they are checked by the broker."""

    name: str
    arguments: tuple[str, ...]
    returns: str
    call: Callable[..., Any]
    vectorised: bool | Literal["arrow"]
    deterministic: bool
    isolated: bool


def function(
    *,
    arguments: Sequence[str],
    returns: str,
    vectorised: bool | Literal["arrow"] = False,
    deterministic: bool = False,
    isolated: bool = False,
    name: str | None = None,
) -> Callable[[F], F]:
    """Declare a function of SQL; ``name``: another than the function's own. It stays callable as before."""

    def declare(call: F) -> F:
        known = FunctionDeclaration(
            name or call.__name__, tuple(arguments), returns, call, vectorised, deterministic, isolated
        )
        setattr(call, ATTRIBUTE, known)
        return call

    return declare


def declaration_of(value: object) -> FunctionDeclaration | None:
    """What was declared of a function, None for anything else."""
    found = getattr(value, ATTRIBUTE, None)
    return found if isinstance(found, FunctionDeclaration) else None
