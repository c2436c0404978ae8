"""Data and helpers that ``strategies_test.py`` shares with other tests."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from engine.changes.transition import Transition
from engine.dataflow.graph import Graph
from engine.dataflow.policy import Policy
from engine.model.changes import Operator
from engine.model.limits import Limits
from tests.capacities import small
from tests.changes.ways import (
    LIMITS,
    TABLES,
    bound,
    standing,
    told_of,
)
from tests.dataflow.graph import OPERATORS, bag
from tests.dataflow.policies import POLICIES

KNOWN_EXITS = (
    "SELECT DISTINCT k FROM s [RANGE 4 MILLISECONDS] WHERE v > 0",
    "SELECT DISTINCT k, w FROM s [RANGE 6 MILLISECONDS SLIDE 2 MILLISECONDS]",
    "SELECT DISTINCT v FROM s [NOW]",
    "SELECT DISTINCT c FROM (SELECT k, COUNT(*) AS c FROM s [RANGE 6 MILLISECONDS] GROUP BY k) AS x",
    "SELECT DISTINCT k FROM (SELECT DISTINCT k, w FROM s [RANGE 6 MILLISECONDS]) AS x",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k AND s.w = 'a'",
    """SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    WHERE s.w = 'b'""",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k WHERE u.n > 1",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k < u.k",
    "SELECT s.v, t.v FROM s [RANGE 3 MILLISECONDS] JOIN s AS t [RANGE 3 MILLISECONDS] ON s.k = t.k",
    """SELECT x.k, y.n FROM (SELECT DISTINCT k FROM s [RANGE 6 MILLISECONDS]) AS x
    JOIN (SELECT DISTINCT k, n FROM u [RANGE 5 MILLISECONDS]) AS y ON x.k = y.k""",
    """SELECT w, SUM(n) AS t FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 3 MILLISECONDS] ON s.k = u.k
    GROUP BY w""",
)
"""All exits of the windows are known."""

EARLY = (
    "SELECT s.v, p FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k",
    "SELECT s.v, p FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k WHERE s.w = 'b'",
    "SELECT s.v, p FROM s [RANGE 6 MILLISECONDS] JOIN m ON s.k = m.k",
    "SELECT DISTINCT p FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k",
    "SELECT x.k, p FROM (SELECT DISTINCT k FROM s [RANGE 6 MILLISECONDS]) AS x JOIN h ON x.k = h.k",
    """SELECT x.k, p, n FROM (SELECT DISTINCT k FROM s [RANGE 6 MILLISECONDS]) AS x JOIN h ON x.k = h.k
    JOIN u [RANGE 4 MILLISECONDS] ON u.k = h.k""",
    """SELECT s.v, c FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, COUNT(*) AS c FROM u [RANGE 4 MILLISECONDS] GROUP BY k) AS x ON s.k = x.k""",
    """SELECT s.v, c, n FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, COUNT(*) AS c FROM u [RANGE 4 MILLISECONDS] GROUP BY k) AS x ON s.k = x.k
    JOIN u [RANGE 3 MILLISECONDS] ON u.k = s.k""",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u ON s.k = u.k",
    "SELECT s.v, n FROM s [RANGE 6 MILLISECONDS] JOIN u [PARTITION BY k ROWS 1] ON s.k = u.k",
    """SELECT s.v, x.n FROM s [RANGE 6 MILLISECONDS] JOIN (SELECT DISTINCT k, n FROM u [ROWS 3]) AS x
    ON s.k = x.k""",
    """SELECT s.v, x.n FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, n FROM u [RANGE 9 MILLISECONDS] ORDER BY n LIMIT 2) AS x ON s.k = x.k""",
    """SELECT x.v, y.n FROM (SELECT k, v FROM s [RANGE 6 MILLISECONDS]
    EXCEPT ALL ON (k) SELECT k FROM u [RANGE 4 MILLISECONDS]) AS x
    JOIN u [RANGE 5 MILLISECONDS] AS y ON x.k = y.k""",
    """SELECT s.v, x.k FROM s [RANGE 6 MILLISECONDS] JOIN (SELECT k FROM s [RANGE 3 MILLISECONDS]
    INTERSECT ALL SELECT k FROM u [RANGE 4 MILLISECONDS]) AS x ON x.k = s.k""",
)
"""Some rows leave earlier than was known."""


class Followed:
    """A graph whose queries come, go and switch, and what each is told compared with what it alone is."""

    def __init__(
        self, rng: random.Random, texts: Sequence[str], policies: Sequence[Policy] = POLICIES
    ) -> None:
        self.rng, self.texts, self.policies = rng, texts, policies
        self.graph = Graph(TABLES, settings=small())
        self.members: dict[str, tuple[str, Operator, bool]] = {}

    def between(self) -> None:
        rng, graph = self.rng, self.graph
        for place, text in enumerate(self.texts):
            name, chance = f"q{place}", rng.random()
            if name in self.members and chance < 0.2:
                graph.remove(name)
                del self.members[name]
            elif name in self.members and chance > 0.8:
                graph.switch(name, rng.choice(self.policies))
            elif name not in self.members and chance < 0.6:
                operator = rng.choice(OPERATORS)
                copies = operator == "changes" and rng.random() < 0.5
                self.members[name] = text, operator, copies
                query, policy = bound(text), rng.choice(self.policies)
                graph.add(standing(query, name), query, operator, copies=copies, policy=policy)
        if rng.random() < 0.15:
            graph.forget()

    def told(self, transition: Transition, limits: Limits = LIMITS) -> dict[str, Counter[Any]]:
        broken, found = dict[str, Exception](), dict[str, Counter[Any]]()
        for changes in self.graph.advance(transition, limits, transition.until_ms, broken):
            for place, name in enumerate(changes.query_ids):
                assert name not in found
                assert name not in broken
                found[name] = bag(changes, place)
        self.graph._check()
        return found | {name: Counter({"broken": 1}) for name in broken}

    def step(self, transition: Transition) -> None:
        found = self.told(transition)
        for name, (text, operator, copies) in self.members.items():
            alone = told_of(bound(text), operator, transition, copies=copies)
            assert found.get(name, Counter()) == bag(alone), (name, text, self.graph.policy_of(name))
