"""Rules at a DISTINCT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.algebra.distinct.stage import Distinct
from engine.algebra.join.stage import Join
from engine.algebra.project.stage import Output, Project
from engine.dataflow.rewrites.rule import (
    Sources,
    Stages,
    is_distinct,
    is_made_distinct,
    moved,
    none_errs,
    up_to,
    width_of,
)
from engine.language.query import Query
from engine.model.expressions import Column, columns_of


def drop_distinct(stage: Distinct, query: Query, place: int, sources: Sources) -> Stages | None:
    below = up_to(query, place)
    columns = [Column(at, name, type_) for at, (name, type_) in enumerate(below.columns)]
    if is_distinct(below, columns, sources) or is_made_distinct(query, place):
        return *query.stages[:place], *query.stages[place + 1 :]
    return None


def makes_distinct(stage: Distinct, query: Query, place: int) -> bool:
    return True


def distinct_below_join(stage: Distinct, query: Query, place: int, sources: Sources) -> Stages | None:
    match query.stages[max(0, place - 2) : place]:
        case (Join(kind="inner", latest=None) as join, Project(outputs)):
            given = [output.expression for output in outputs]
        case _:
            return None
    left, inner, width = up_to(query, place - 2), join.inner, width_of(query, place - 2, sources)
    condition = () if join.condition is None else (join.condition,)
    if not none_errs([*given, *condition, *(key for pair in join.keys for key in pair)]):
        return None
    of_pairs = {column.index: column for each in (*given, *condition) for column in columns_of(each)}
    lefts = {index: column for index, column in of_pairs.items() if index < width}
    rights = {
        index - width: replace(column, index=index - width)
        for index, column in of_pairs.items()
        if index >= width
    }
    lefts |= {column.index: column for key, _ in join.keys for column in columns_of(key)}
    rights |= {column.index: column for _, key in join.keys for column in columns_of(key)}
    if is_distinct(left, lefts.values(), sources) and is_distinct(inner, rights.values(), sources):
        return None
    one, other = sorted(lefts), sorted(rights)
    left_places = {index: at for at, index in enumerate(one)}
    right_places = {index: at for at, index in enumerate(other)}
    pair_places = left_places | {width + index: len(one) + at for index, at in right_places.items()}
    joined = replace(
        join,
        inner=replace(inner, stages=(*inner.stages, *_distinct(rights[index] for index in other))),
        keys=tuple((moved(key, left_places), moved(of, right_places)) for key, of in join.keys),
        condition=None if join.condition is None else moved(join.condition, pair_places),
    )
    above = Project(tuple(replace(each, expression=moved(each.expression, pair_places)) for each in outputs))
    told = _told({each.index for each in given if isinstance(each, Column)}, join, width)
    last = () if told >= {*one, *(width + index for index in other)} else (Distinct(),)
    first = _distinct(lefts[index] for index in one)
    return *left.stages, *first, joined, above, *last, *query.stages[place + 1 :]


def _distinct(columns: Iterable[Column]) -> tuple[Project, Distinct]:
    return Project(tuple(Output(column.name, column) for column in columns)), Distinct()


def _told(places: set[int], join: Join, width: int) -> set[int]:
    """Columns of pairs whose values these tell: each side of a key tells the other."""
    found = set(places)
    for key, of in join.keys:
        if isinstance(key, Column) and isinstance(of, Column):
            both = {key.index, width + of.index}
            found |= both if found & both else set()
    return found
