"""Random window functions over columns of given types."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import strategies as st

from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import (
    DEFAULT_FRAME,
    Distance,
    Exclusion,
    Frame,
    FrameUnit,
    WindowFunctionCall,
    WindowFunctions,
)
from engine.language.aggregates import AGGREGATES
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model.expressions import Column, Compare, Expression, Literal
from engine.model.types import BIGINT, DOUBLE, INTEGER, Kind, Type

RANKS = ("RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE")
OF_ROWS = ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE")
AGGREGATED = (
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "VAR_SAMP",
    "STDDEV_POP",
    "FIRST",
    "LAST",
    "ARRAY_AGG",
    "ARG_MAX",
    "MEDIAN",
)
EXCLUSIONS: Sequence[Exclusion] = ("no others", "current row", "group", "ties")
DISTANCES = (Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP)
"""Kinds of keys that RANGE has distances of."""


def column(place: int, types: Sequence[Type]) -> Column:
    return Column(place, f"c{place}", types[place])


@st.composite
def stages(draw: st.DrawFn, types: Sequence[Type], functions: Sequence[str] = ()) -> WindowFunctions:
    """functions: those that there may be; all if none are given."""
    places = range(len(types))
    keys = draw(st.lists(st.sampled_from(places), max_size=1))
    order = tuple(
        SortKey(column(place, types), draw(st.booleans()), draw(st.booleans()))
        for place in draw(st.lists(st.sampled_from(places), max_size=2, unique=True))
    )
    names = functions or (*RANKS, *OF_ROWS, *AGGREGATED)
    calls = [
        draw(one_call(types, order, name))
        for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    ]
    return WindowFunctions(tuple(column(place, types) for place in keys), order, tuple(calls))


@st.composite
def one_call(
    draw: st.DrawFn, types: Sequence[Type], order: Sequence[SortKey], name: str
) -> WindowFunctionCall:
    """A call of a function."""
    if name in RANKS:
        arguments = (Literal(draw(st.integers(1, 4)), INTEGER),) if name == "NTILE" else ()
        return _made(name, arguments)
    place = draw(st.sampled_from(range(len(types))))
    argument: Expression = column(place, types)
    if name in OF_ROWS:
        others: tuple[Expression, ...] = ()
        if name in ("LAG", "LEAD", "NTH_VALUE"):
            others = (
                Literal(draw(st.integers(1, 3) if name == "NTH_VALUE" else st.integers(0, 3)), INTEGER),
            )
        if name in ("LAG", "LEAD") and draw(st.booleans()):
            others = (*others, argument if draw(st.booleans()) else Literal(None, argument.type))
        frame = draw(frames(order)) if WINDOW_FUNCTIONS[name].framed else DEFAULT_FRAME
        return _made(name, (argument, *others), frame, ignore_nulls=draw(st.booleans()))
    condition: Expression | None = None
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.sampled_from(range(len(types))))
        condition = Compare("=", column(at, types), column(at, types))
    frame = draw(frames(order))
    if name == "COUNT" and draw(st.booleans()):
        return _made(name, (), frame, filter=condition)
    if name in ("SUM", "AVG", "MEDIAN") and not argument.type.is_numeric:
        name = "COUNT"
    if name in ("VAR_SAMP", "STDDEV_POP") and argument.type != DOUBLE:
        name = "MIN"
    distinct = name in ("COUNT", "SUM", "AVG") and draw(st.integers(0, 4)) == 0
    arguments: tuple[Expression, ...] = (argument,)
    if name == "ARG_MAX" or (name == "COUNT" and distinct and draw(st.booleans())):
        arguments = argument, column(draw(st.sampled_from(range(len(types)))), types)
    return _made(name, arguments, frame, filter=condition, distinct=distinct)


def _made(
    name: str, arguments: tuple[Expression, ...], frame: Frame = DEFAULT_FRAME, **options: object
) -> WindowFunctionCall:
    catalogue = WINDOW_FUNCTIONS[name] if name in WINDOW_FUNCTIONS else AGGREGATES[name]
    _, type_ = catalogue.types(arguments)
    return WindowFunctionCall(name.lower(), name, arguments, type_, frame, **options)  # type: ignore[arg-type]


@st.composite
def frames(draw: st.DrawFn, order: Sequence[SortKey]) -> Frame:
    """Any frame of rows in this order; at times one that ends before it begins."""
    if draw(st.integers(0, 3)) == 0:
        return DEFAULT_FRAME
    units: list[FrameUnit] = ["rows", "range"] + (["groups"] if order else [])
    unit = draw(st.sampled_from(units))
    distances = st.sampled_from((-3, -2, -1, 0, 1, 2))
    step: st.SearchStrategy[Distance] = distances
    if unit == "range":
        type_ = order[0].expression.type if len(order) == 1 else BIGINT
        step = st.just(0)
        if len(order) == 1 and type_.kind in DISTANCES:
            step = distances | st.just(2**62)
            if type_.kind is Kind.DOUBLE:
                step = st.sampled_from((-1.5, -0.1, 0, 3.0, 1e300))
            elif type_.kind is Kind.DECIMAL:
                step = st.sampled_from((Decimal("-1.5"), Decimal(-1), 0, Decimal("0.50"), Decimal(10) ** 15))
    start, end = draw(st.none() | step), draw(st.none() | step)
    return Frame(unit, start, end, draw(st.sampled_from(EXCLUSIONS)))
