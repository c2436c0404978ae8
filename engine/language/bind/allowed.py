"""What a text says of tolerance and weight, bound: Query.tolerance and Query.weight."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from engine.language import known_options
from engine.language.bind.emit import OPTIONS
from engine.language.bind.environment import Environment
from engine.language.bind.options import WithOptions
from engine.language.bind.preferred import check_options
from engine.language.query import Query
from engine.model.tolerance import AMOUNTS, Tolerance

_OF_CHANGES = dict.fromkeys(OPTIONS, "it is said of the changes: write EMIT CHANGES WITH (format = 'upsert')")


def with_allowed(query: Query, tree: exp.Expr, env: Environment) -> Query:
    """The query of a SELECT that nothing is around, with what it allows.

    Raises SyntaxRefused and TypeMismatch for names and values.
    """
    clause = tree.args.get("allowed")
    if clause is None:
        return query
    options = WithOptions(clause.args["options"], tuple(known_options.QUERY), env.text, _OF_CHANGES)
    given = {name: options.amount(name) for name in AMOUNTS if name in options}
    weight = given.pop("weight", None)
    if query.preference is not None:
        check_options(given, env.text.of_node(clause))
    return replace(query, tolerance=Tolerance(**given), weight=weight)
