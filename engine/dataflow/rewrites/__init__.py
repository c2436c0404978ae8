"""Rewrites of bound queries: one rule a file. Which are applied is a matter of cost
(:mod:`engine.dataflow.choice`), never of answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.algebra.distinct.stage import Distinct
from engine.algebra.operators import Stage
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.rewrites.distinct_below_join import distinct_below_join
from engine.dataflow.rewrites.drop_distinct import drop_distinct
from engine.dataflow.rewrites.merge_unions import merge_unions
from engine.dataflow.rewrites.negation_down import negation_down
from engine.dataflow.rewrites.negation_up import negation_up
from engine.dataflow.rewrites.rule import Rule, Sources, applied
from engine.dataflow.rewrites.selection_down import selection_down
from engine.language.query import Query

RULES = (
    Rule("merge unions", merge_unions, keeps_order=False),
    Rule("drop DISTINCT", drop_distinct),
    Rule("selection below", selection_down),
    Rule("DISTINCT below join", distinct_below_join),
    Rule("negation above join", negation_up),
    Rule("negation below join", negation_down),
)

ALTERNATIVES_MAX = 32
"""So many queries that mean the same are weighed at most."""


def alternatives(query: Query, sources: Sources) -> Iterator[tuple[Query, tuple[str, ...]]]:
    """A query, then others that mean the same, each with the rules that lead to it, the fewest first.

    sources: all that it reads. Cost: O(stages) where no rule can fit; else that for each alternative.
    """
    yield query, ()
    if query.has_streams or not any(isinstance(stage, _REWRITTEN) for stage in _stages(query)):
        return
    known = {query}
    waiting: list[tuple[Query, tuple[str, ...]]] = [(query, ())]
    for present, found in waiting:
        for rule in RULES:
            for other in applied(rule, present, sources):
                if other not in known and len(known) < ALTERNATIVES_MAX:
                    known.add(other)
                    waiting.append((other, (*found, rule.name)))
                    yield waiting[-1]


_REWRITTEN = Distinct | SemiJoin | SetOperation
"""Each rule needs one of these."""


def _stages(query: Query) -> Iterator[Stage]:
    for stage in query.stages:
        yield stage
        if stage.right_input is not None:
            yield from _stages(stage.right_input)
