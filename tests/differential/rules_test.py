"""Every rewrite keeps the outcome of every row: value, NULL and error alike, by the reference's reading."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.project.stage import Output
from engine.language.bind.from_names import FromNames
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.language.bind.text_binding import TextBinding
from engine.language.dialect import parse_tree
from engine.language.places import Text
from engine.language.rules import RULES
from engine.model.expressions import Column
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.reference.expressions import evaluate
from engine.reference.rows import python_rows
from tests.differential.agreement import exact
from tests.sql_strategies import expressions, predicates
from tests.strategies import batches, schemas


@given(data=st.data())
def test_rules_keep_outcomes(data: st.DataObject) -> None:
    schema = data.draw(schemas(timestamp=False))
    rows = python_rows(data.draw(batches(schema)))
    written = data.draw(predicates(schema) | expressions(schema))
    text = Text(f"SELECT {written} AS o FROM s")
    limits = Limits()
    columns = {f.name: Output(f.name, Column(place, f.name, f.type)) for place, f in enumerate(schema)}
    scope = Scope(TextBinding(text, limits), FromNames(Stream(SourceName("s"), schema, "s"), columns, None))
    expression = bind_scalar(parse_tree(text, limits).expressions[0].this, scope)
    expected = [exact(evaluate(expression, row.values)) for row in rows]
    for rule in RULES:
        before = expression
        expression = rule(expression)
        assert expression.type == before.type, rule
        assert [exact(evaluate(expression, row.values)) for row in rows] == expected, (
            rule,
            before,
            expression,
        )
