"""Rewrites of bound queries. Which are applied is a matter of cost
(:mod:`engine.dataflow.choice`), never of answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.dataflow.rewrites.rule import Sources, applied
from engine.dataflow.rewrites.rules import RULES
from engine.language.query import Query

ALTERNATIVES_MAX = 32
"""So many queries that mean the same are weighed at most."""


def alternatives(query: Query, sources: Sources) -> Iterator[tuple[Query, tuple[str, ...]]]:
    """A query, then others that mean the same, each with the rules that lead to it, the fewest first.

    sources: all that it reads. Cost: O(stages * rules) for each alternative.
    """
    yield query, ()
    if query.has_streams:
        return
    known: set[Query] = set()
    waiting: list[tuple[Query, tuple[str, ...]]] = [(query, ())]
    for present, found in waiting:
        for rule in RULES:
            for other in applied(rule, present, sources):
                if other != query and other not in known and len(known) < ALTERNATIVES_MAX - 1:
                    known.add(other)
                    waiting.append((other, (*found, rule.name)))
                    yield waiting[-1]
