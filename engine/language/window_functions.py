"""The catalogue of functions that only stand before OVER: name, arity, types, and what a call gives.

Besides these every aggregate may stand there. ROW_NUMBER() is an operator of its own
(:mod:`engine.algebra.row_number`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.language.promotion import common
from engine.language.signatures import Signature, Types, Unfit
from engine.model.expressions import Expression, Literal
from engine.model.types import BIGINT, DOUBLE, INTEGER, Kind, Type

COUNT_MAX = 2**31 - 1
"""The greatest distance, place and number of parts."""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """One function.

    arity_min, arity_max: how many arguments it takes. takes_nulls: whether IGNORE NULLS may stand behind it.
    framed: whether it goes by the frame; others go by the partition. peers_alike: whether rows that are equal
    in ORDER BY get the same value, so that their order does not matter.
    """

    name: str
    arity_min: int
    arity_max: int
    signature: Signature
    usage: str
    doc: str
    takes_nulls: bool = False
    framed: bool = False
    peers_alike: bool = False

    @property
    def shortest(self) -> str:
        """A call without what may be left out."""
        first, optional, _ = self.usage.partition(" [")
        return f"{first})" if optional else first

    def types(self, arguments: Sequence[Expression]) -> Types:
        """The types that the arguments become, and the result's. Raises Unfit."""
        return self.signature(arguments)


def _rank(arguments: Sequence[Expression]) -> Types:
    return [], BIGINT


def _share(arguments: Sequence[Expression]) -> Types:
    return [], DOUBLE


def _whole(arguments: Sequence[Expression], place: int, least: int, hint: str) -> Type:
    """The type of an argument that is a whole number as it stands."""
    argument = arguments[place]
    value = argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, int) or isinstance(value, bool) or not argument.type.is_integer:
        raise Unfit(place, "needs a whole number as a literal", hint)
    if not least <= value <= COUNT_MAX:
        raise Unfit(place, f"needs a whole number from {least} to {COUNT_MAX}", hint)
    return argument.type


def _parts(arguments: Sequence[Expression]) -> Types:
    return [_whole(arguments, 0, 1, "write NTILE(4)")], BIGINT


def _value(arguments: Sequence[Expression]) -> Type:
    type_ = arguments[0].type
    return INTEGER if type_.kind is Kind.NULL else type_


def _of_row(arguments: Sequence[Expression]) -> Types:
    return [_value(arguments)], _value(arguments)


def _nth(arguments: Sequence[Expression]) -> Types:
    return [_value(arguments), _whole(arguments, 1, 1, "write NTH_VALUE(x, 2)")], _value(arguments)


def _at_distance(arguments: Sequence[Expression]) -> Types:
    targets = [_value(arguments)]
    if len(arguments) > 1:
        hint = "write LAG(x, 1) for a row before, LEAD(x, 1) for one behind"
        targets.append(_whole(arguments, 1, 0, hint))
    if len(arguments) > 2:
        joined = common([arguments[0].type, arguments[2].type])
        if joined is None:
            raise Unfit(2, f"needs the type of the first argument, {targets[0]}, this is {arguments[2].type}")
        targets[0] = INTEGER if joined.kind is Kind.NULL else joined
        targets.append(targets[0])
    return targets, targets[0]


_ALL = (
    WindowFunction(
        "RANK",
        0,
        0,
        _rank,
        "RANK()",
        "1, and by how many rows come before that are not equal in ORDER BY",
        peers_alike=True,
    ),
    WindowFunction(
        "DENSE_RANK",
        0,
        0,
        _rank,
        "DENSE_RANK()",
        "1, and how many different values of ORDER BY come before",
        peers_alike=True,
    ),
    WindowFunction(
        "PERCENT_RANK",
        0,
        0,
        _share,
        "PERCENT_RANK()",
        "(RANK() - 1) / (rows of the partition - 1) as DOUBLE; 0 of a single row",
        peers_alike=True,
    ),
    WindowFunction(
        "CUME_DIST",
        0,
        0,
        _share,
        "CUME_DIST()",
        "the share of the partition's rows that come before or are equal in ORDER BY, as DOUBLE",
        peers_alike=True,
    ),
    WindowFunction(
        "NTILE",
        1,
        1,
        _parts,
        "NTILE(n)",
        "the number, from 1 to n, of the part that a row is in: n parts nearly equal, larger ones first",
    ),
    WindowFunction(
        "LAG",
        1,
        3,
        _at_distance,
        "LAG(x [, distance [, default]])",
        "x of the row so many (1 if not given) before in the partition; "
        "where there is none the default, or NULL",
        takes_nulls=True,
    ),
    WindowFunction(
        "LEAD",
        1,
        3,
        _at_distance,
        "LEAD(x [, distance [, default]])",
        "x of the row so many behind in the partition",
        takes_nulls=True,
    ),
    WindowFunction(
        "FIRST_VALUE",
        1,
        1,
        _of_row,
        "FIRST_VALUE(x)",
        "x of the first row of the frame",
        takes_nulls=True,
        framed=True,
    ),
    WindowFunction(
        "LAST_VALUE",
        1,
        1,
        _of_row,
        "LAST_VALUE(x)",
        "x of the last row of the frame",
        takes_nulls=True,
        framed=True,
    ),
    WindowFunction(
        "NTH_VALUE",
        2,
        2,
        _nth,
        "NTH_VALUE(x, n)",
        "x of the n-th row of the frame, from 1; NULL where there is none",
        takes_nulls=True,
        framed=True,
    ),
)

WINDOW_FUNCTIONS: dict[str, WindowFunction] = {function.name: function for function in _ALL}
"""By upper-case name."""
