"""Queries that are conjunctions of comparisons with constants, over one source: what many of them share.

    SELECT a, b FROM s [RANGE 1 HOUR] WHERE key = 'u17' AND value > 5

The queries of a template are alike in everything but their constants. Where these stand in such a predicate,
and perhaps in what is put out, all that has to be known of a query to keep its matches is the constants.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.bind.placing import conjuncts
from engine.language.query import Query
from engine.language.tracing import Traced
from engine.model.expressions import Column, Compare, CompareOp, Literal


@dataclass(frozen=True, slots=True)
class Comparison:
    """``column op constant``. constant: a literal, or the number of one among the values of a template."""

    column: Column
    op: CompareOp
    constant: int | Literal


@dataclass(frozen=True, slots=True)
class Selection:
    """Queries of one scan that emit and prefer nothing, whose predicate is TRUE where all of these
    comparisons are; without any, everywhere.

    like: one of them. The others have other constants and all else the same: source, windows, stages.
    """

    like: Query
    comparisons: tuple[Comparison, ...]


def comparisons_of(traced: Query) -> tuple[Comparison, ...] | None:
    """The comparisons of the predicate of a query whose literals were traced; None for other queries."""
    scan, *inner = traced.scans()
    predicates = tuple(scan.predicates())
    if inner or traced.emit is not None or traced.preference is not None or len(predicates) > 1:
        return None
    if scan.predicate is None:
        return None if predicates else ()
    compared: list[Comparison] = []
    for conjunct in conjuncts(scan.predicate):
        if not isinstance(conjunct, Compare):
            return None
        column, constant = conjunct.left, conjunct.right
        if not isinstance(column, Column) or not isinstance(constant, Literal):
            return None
        number = constant.number if isinstance(constant, Traced) else constant
        compared.append(Comparison(column, conjunct.op, number))
    return tuple(compared)
