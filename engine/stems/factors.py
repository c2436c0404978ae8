"""A predicate as the Query SteM takes it: terms that the indexes hold, and what is left over.

    WHERE a > 5 AND (b = 1 OR c < 2) AND f(d) = 3

    terms      a > 5, b = 1        residuals      f(d) = 3
               a > 5, c < 2

A *term* is a conjunction of regions, one an attribute; the predicate is TRUE where some term holds and every
residual is TRUE. Conjuncts over one attribute become regions; NOT is driven to the leaves (regions
know where they are FALSE); a disjunction over several attributes multiplies the terms. That may blow up, so
past ``TERMS_MAX`` terms or ``INTERVALS_MAX`` intervals a conjunct stays a residual. None of what becomes
terms can be an error, so terms may be tested in any order, before residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.domains.regions import (
    ABOVE,
    BELOW,
    EMPTY,
    WHOLE,
    Region,
    intersect,
    simple_region,
    truth_of,
    where,
)
from engine.language.selection import Comparison
from engine.model import expressions as ex

TERMS_MAX = 16
INTERVALS_MAX = 4_096
"""Intervals of one predicate, over all its terms."""

LAST = 2**63 - 1

Term = dict[int, Region]
"""By place of the column. No region: every row."""


@dataclass(slots=True)
class Factors:
    """See the module. No terms: never TRUE, and never an error."""

    terms: list[Term]
    residuals: tuple[ex.Expression, ...]


def factors(predicate: ex.Expression) -> Factors:
    """Take a predicate apart. O(size of the predicate * TERMS_MAX)."""
    common: Term = {}
    products: list[tuple[ex.Expression, list[Term]]] = []
    residuals: dict[ex.Expression, None] = {}
    pending = [predicate]
    while pending:
        conjunct = pending.pop()
        if isinstance(conjunct, ex.And):
            pending.extend(reversed(conjunct.operands))
            continue
        simple = simple_region(conjunct)
        if simple is not None:
            index, region = simple
            held = common.get(index)
            common[index] = region if held is None else intersect(held, region)
            continue
        terms = _terms(conjunct, true=True)
        if terms is None:
            residuals[conjunct] = None
        elif len(terms) == 1:
            common = _both(common, terms[0])
        elif terms:
            products.append((conjunct, terms))
        else:
            return Factors([], ())
    all_terms = [common]
    for conjunct, terms in products:
        wider = _product(all_terms, terms)
        if wider is None or sum(map(_size, wider)) > INTERVALS_MAX:
            residuals[conjunct] = None
        else:
            all_terms = wider
    possible = [term for term in all_terms if EMPTY not in term.values()]
    return Factors(possible, tuple(residuals) if possible else ())


def compared(comparisons: Sequence[Comparison], values: Sequence[ex.Literal]) -> Factors | None:
    """What :func:`factors` gives for the conjunction of comparisons with these constants, without its tree;
    None where one of them does not become a region. O(comparisons), a microsecond each where they are of
    integers or instants.
    """
    term: Term = {}
    bounds: dict[int, list[int | None]] = {}
    """By column of whole numbers: the first value, and the first above the last; None: no bound."""
    for comparison in comparisons:
        column, op, constant = comparison.column, comparison.op, comparison.constant
        literal = values[constant] if isinstance(constant, int) else constant
        value, kind = literal.value, column.type.kind
        same = literal.type.kind is kind and op != "<>"
        if same and kind in WHOLE and type(value) is int and -LAST < value < LAST:
            held = bounds.setdefault(column.index, [None, None])
            _narrow(held, op, value)
            continue
        if value is None:
            return None
        region = where(column, op, literal)
        if region is None:
            return None
        known = term.get(column.index)
        term[column.index] = region if known is None else intersect(known, region)
    for index, (start, stop) in bounds.items():
        if start is not None and stop is not None and start >= stop:
            return Factors([], ())
        region = Region(((BELOW if start is None else start, ABOVE if stop is None else stop),))
        known = term.get(index)
        term[index] = region if known is None else intersect(known, region)
    return Factors([], ()) if EMPTY in term.values() else Factors([term], ())


def _narrow(held: list[int | None], op: ex.CompareOp, value: int) -> None:
    """Narrow these bounds by ``op value``."""
    if op in ("=", ">=", ">"):
        start = value + 1 if op == ">" else value
        if held[0] is None or held[0] < start:
            held[0] = start
    if op in ("=", "<=", "<"):
        stop = value if op == "<" else value + 1
        if held[1] is None or stop < held[1]:
            held[1] = stop


def _terms(e: ex.Expression, *, true: bool) -> list[Term] | None:
    """The regions where the expression is TRUE (or FALSE), as alternative terms; None if it takes too many
    terms or has another form.
    """
    if isinstance(e, ex.Literal):
        return [{}] if e.value is true else []
    found = truth_of(e)
    if found is not None:
        column, truth = found
        region = truth.true if true else truth.false
        return [] if region == EMPTY else [{column.index: region}]
    match e:
        case ex.Not(operand):
            return _terms(operand, true=not true)
        case ex.And(operands) | ex.Or(operands):
            each: list[list[Term]] = []
            for operand in operands:
                terms = _terms(operand, true=true)
                if terms is None:
                    return None
                each.append(terms)
            if isinstance(e, ex.Or) is true:
                united = [term for terms in each for term in terms]
                return united if len(united) <= TERMS_MAX else None
            product: list[Term] = [{}]
            for terms in each:
                wider = _product(product, terms)
                if wider is None:
                    return None
                product = wider
            return product
        case _:
            return None


def _product(left: list[Term], right: list[Term]) -> list[Term] | None:
    if len(left) * len(right) > TERMS_MAX:
        return None
    return [_both(a, b) for a in left for b in right]


def _both(a: Term, b: Term) -> Term:
    both = dict(a)
    for index, region in b.items():
        held = both.get(index)
        both[index] = region if held is None else intersect(held, region)
    return both


def _size(term: Term) -> int:
    return sum(len(region.intervals) for region in term.values())
