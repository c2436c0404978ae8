"""Join and SemiJoin over lists of rows, by nested loops: every row of the one with every row of the other."""

from __future__ import annotations

from collections.abc import Sequence

from engine.algebra.join.stage import Join
from engine.algebra.semi_join.stage import SemiJoin
from engine.model.expressions import Expression
from engine.model.types import Type
from engine.reference.expressions import evaluate
from engine.reference.rows import Placed, Values
from engine.reference.values import ERROR, order


def values_of(expressions: Sequence[Expression], row: Values) -> tuple[Values, int]:
    """What the expressions give over a row, NULL for errors, and how many those are."""
    outcomes = [evaluate(expression, row) for expression in expressions]
    errors = sum(outcome is ERROR for outcome in outcomes)
    return tuple(None if outcome is ERROR else outcome for outcome in outcomes), errors


def join(
    stage: Join, rows: Sequence[Placed], width: int, inner: Sequence[Values]
) -> tuple[list[Placed], int]:
    """The joined rows and how many errors were met; width: how many columns the relation has.

    Keys, and the two instants of ASOF, are looked at once a row; the condition once for every two rows that
    equal in the keys, or with ASOF once for a row and the one that was picked for it.
    """
    inner_width = len(stage.inner.columns)
    outer_expressions = [outer for outer, _ in stage.keys]
    inner_expressions = [expression for _, expression in stage.keys]
    if stage.latest is not None:
        outer_expressions.append(stage.latest.outer)
        inner_expressions.append(stage.latest.inner)
    types = [expression.type for expression in outer_expressions]
    errors = 0
    inner_keys: list[Values] = []
    for values in inner:
        keys, met = values_of(inner_expressions, values)
        inner_keys.append(keys)
        errors += met
    partners: list[list[int]] = []
    for row in rows:
        keys, met = values_of(outer_expressions, row.values)
        errors += met
        if stage.latest is None:
            candidates = [n for n, other in enumerate(inner_keys) if _all_equal(keys, other, types)]
        else:
            candidates = _latest(stage.latest.strict, keys, inner_keys, types)
        found = []
        for n in candidates:
            outcome = True if stage.condition is None else evaluate(stage.condition, row.values + inner[n])
            errors += outcome is ERROR
            if outcome is True:
                found.append(n)
        partners.append(found)
    return _joined(stage, rows, width, inner, inner_width, partners), errors


def _all_equal(keys: Values, other: Values, types: Sequence[Type]) -> bool:
    return all(
        a is not None and b is not None and order(a, type_, b, type_) == 0
        for a, b, type_ in zip(keys, other, types, strict=True)
    )


def _latest(strict: bool, keys: Values, inner_keys: Sequence[Values], types: Sequence[Type]) -> list[int]:
    """The place of the inner row that comes last at or before the instant, ``strict``: before it, among those
    that equal the row in all keys but the last; a list of none or one.
    """
    instant, type_ = keys[-1], types[-1]
    best: int | None = None
    for n, other in enumerate(inner_keys):
        candidate = other[-1]
        if instant is None or candidate is None or not _all_equal(keys[:-1], other[:-1], types[:-1]):
            continue
        placed = order(candidate, type_, instant, type_)
        if placed > 0 or (strict and placed == 0):
            continue
        if best is None or order(candidate, type_, inner_keys[best][-1], type_) >= 0:
            best = n
    return [] if best is None else [best]


def _joined(
    stage: Join,
    rows: Sequence[Placed],
    width: int,
    inner: Sequence[Values],
    inner_width: int,
    partners: Sequence[Sequence[int]],
) -> list[Placed]:
    made: list[Values] = []
    for row, found in zip(rows, partners, strict=True):
        if stage.kind == "semi" or stage.kind == "anti":
            if bool(found) is (stage.kind == "semi"):
                made.append(row.values)
            continue
        made += [row.values + inner[n] for n in found]
        if not found and stage.kind in ("left", "full"):
            made.append(row.values + (None,) * inner_width)
    if stage.kind in ("right", "full"):
        with_partner = {n for found in partners for n in found}
        made += [(None,) * width + other for n, other in enumerate(inner) if n not in with_partner]
    return [Placed(None, values) for values in made]


def semi_join(stage: SemiJoin, rows: Sequence[Placed], inner: Sequence[Values]) -> tuple[list[Placed], int]:
    """Rows that IN or EXISTS keeps, with the ordinals that they had, and how many errors were met."""
    kept = []
    errors = 0
    types = [type_ for _, type_ in stage.inner.columns]
    for row in rows:
        keys, met = values_of(stage.keys, row.values)
        errors += met
        found: bool | None = False
        for candidate in inner:
            equal = _equal(keys, [key.type for key in stage.keys], candidate, types)
            if equal is True:
                found = True
                break
            if equal is None and stage.null_aware:
                found = None
        if found is not None and found is not stage.negated:
            kept.append(row)
    return kept, errors


def _equal(keys: Values, key_types: Sequence[Type], candidate: Values, types: Sequence[Type]) -> bool | None:
    """Whether all keys equal an inner row's columns, in three-valued logic."""
    outcome: bool | None = True
    for a, a_type, b, b_type in zip(keys, key_types, candidate, types, strict=False):
        if a is None or b is None:
            outcome = None
        elif order(a, a_type, b, b_type) != 0:
            return False
    return outcome
