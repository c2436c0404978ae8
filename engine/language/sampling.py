"""SAMPLE as a condition over the rows of a source: which rows it keeps.

    sample key < keys below p percent            SAMPLE(p)
    seeded sample key < keys below p percent     SAMPLE(p, seed)

The sample key is a column behind those that the source stores (:mod:`engine.model.sample`). So a sample is
matched, shared and found again in a plan as any other condition is.
"""

from __future__ import annotations

from dataclasses import replace

from engine.language.functions import SEEDED
from engine.language.query import Scan
from engine.model.expressions import (
    And,
    Column,
    Compare,
    Expression,
    Function,
    Literal,
    conjunction,
)
from engine.model.sample import Sample
from engine.model.source import SAMPLE_KEY, Stream
from engine.windows.clauses import RowWindow


def without_sample(scan: Scan, stream: Stream) -> Scan:
    """The scan of all rows, with the rest of its conditions; SAMPLE is not among them."""
    condition = None if scan.sample is None else kept(scan.sample, stream)
    if condition is None:
        return replace(scan, sample=None)
    window = scan.window
    if isinstance(window, RowWindow):
        window = replace(window, filter=_but(window.filter, condition))
    return replace(scan, sample=None, window=window, predicate=_but(scan.predicate, condition))


def _but(predicate: Expression | None, condition: Expression) -> Expression | None:
    """The conjunction without one of its operands."""
    if predicate is None:
        return None
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    rest = [operand for operand in operands if operand != condition]
    return conjunction(rest) if rest else None


def kept(sample: Sample, stream: Stream) -> Expression | None:
    """What rows of the sample satisfy; None: any row."""
    if sample.is_whole:
        return None
    key: Expression = Column(stream.sample_place, SAMPLE_KEY.name, SAMPLE_KEY.type)
    if sample.seed is not None:
        key = Function(SEEDED, (key, Literal(sample.seed, SAMPLE_KEY.type)), SAMPLE_KEY.type)
    return Compare("<", key, Literal(sample.keys_below, SAMPLE_KEY.type))
