"""Rows that some predicate may accept, by a grouped filter, against the predicates one by one."""

from __future__ import annotations

import numpy as np
import pytest

from engine.language.evaluate import truth
from engine.model.expressions import And, Arithmetic, Compare, Expression, Literal
from engine.model.types import BIGINT, STRING
from engine.promising.acceptance import Acceptance
from tests.joins.sources import KEYS, SCHEMA, Sources


def accepts(bound: int, text: str, *, strict: bool) -> Expression:
    """k = bound AND s = text; strict: AND k * k = bound, which the filter does not know of."""
    key, square = KEYS["k"], Arithmetic("*", KEYS["k"], KEYS["k"], BIGINT)
    parts: list[Expression] = [
        Compare("=", key, Literal(bound, BIGINT)),
        Compare("=", KEYS["s"], Literal(text, STRING)),
    ]
    if strict:
        parts.append(Compare("=", square, Literal(bound, BIGINT)))
    return And(tuple(parts))


@pytest.mark.parametrize("count", [1, 5, 700])
def test_rows_are_accepted_that_satisfy_one_of_the_predicates(count):
    rng = np.random.default_rng(count)
    texts = ["x", "y", None]
    sources = Sources(("a",))
    keys = rng.integers(0, 2 * count, 300).tolist()
    rows = [(at, key if key % 7 else None, texts[key % 3], 0.0) for at, key in enumerate(keys)]
    sources.append("a", rows)
    predicates = [accepts(bound, "xy"[bound % 2], strict=False) for bound in range(count)]
    acceptance = Acceptance(SCHEMA, frozenset(predicates))
    ((_, batch),) = sources.stems["a"].rows().slices(0, 300)
    expected = np.zeros(300, np.bool_)
    for predicate in predicates:
        expected |= truth(predicate, batch.columns, 300)[0]
    assert (acceptance.of(batch) == expected).all()
    assert expected.any() or count == 1
    strict = frozenset(accepts(bound, "xy"[bound % 2], strict=True) for bound in range(count))
    assert (Acceptance(SCHEMA, strict).of(batch) == expected).all()
