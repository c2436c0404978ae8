"""How large a SELECT may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.language.bind.conditions import BoundSubquery, Condition, SubqueryJoin
from engine.language.bind.environment import Environment
from engine.language.bind.grouping import Grouping
from engine.language.bind.relation import BoundRelation
from engine.language.bind.temporal_filters import TemporalFilter
from engine.language.bind.text_binding import NODES_MAX
from engine.language.places import Place
from engine.model.expressions import Expression

HEIGHT_MAX = 256
STAGES_MAX = 256


def check_size(
    relation: BoundRelation,
    grouping: Grouping | None,
    parts: Sequence[Condition],
    others: Iterable[Expression],
    place: Place,
    env: Environment,
) -> None:
    """Raise LimitExceeded for expressions, those of subqueries too, that are too many or one too high."""
    expressions = list(others)
    for part in parts:
        if isinstance(part, SubqueryJoin):
            expressions += part.keys
        elif isinstance(part, BoundSubquery):
            expressions += part.conditions
        elif not isinstance(part, TemporalFilter):
            expressions.append(part)
    if grouping is not None:
        expressions += grouping.expressions()
    expressions += relation.scan.where
    for join in relation.joins:
        expressions += (*join.conditions, *join.alone, *join.asked)
    nodes = 0
    for expression in expressions:
        size, height = env.sizes.of(expression)
        nodes += size
        if height > HEIGHT_MAX:
            raise place.exceeded(
                "nesting_max",
                env.limits.nesting_max,
                hint="nest less: a subquery's expressions replace its columns",
            )
    if nodes > NODES_MAX:
        raise place.exceeded("expression_nodes_max", NODES_MAX, hint="register several smaller queries")


def check_stages(relation: BoundRelation, place: Place) -> None:
    """Raise LimitExceeded for too many stages."""
    if relation.extent.stages > STAGES_MAX:
        raise place.exceeded("stages_max", STAGES_MAX, relation.extent.stages, hint="nest fewer subqueries")
