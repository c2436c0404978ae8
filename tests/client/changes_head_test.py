"""The example at the head of the module on changes is Python, and names what the events have."""

from __future__ import annotations

import ast
import textwrap

from tureen import changes


def test_the_example_names_events_and_their_attributes() -> None:
    assert changes.__doc__ is not None
    example = changes.__doc__.split("\n\n")[1]
    tree = ast.parse(textwrap.dedent(example))
    (match,) = (node for node in ast.walk(tree) if isinstance(node, ast.Match))
    for case in match.cases:
        assert isinstance(case.pattern, ast.MatchClass)
        assert isinstance(case.pattern.cls, ast.Name)
        event = getattr(changes, case.pattern.cls.id)
        used = {
            node.attr
            for statement in case.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "event"
        }
        known = {*dir(event), *event.__dataclass_fields__}
        assert used <= known, case.pattern.cls.id
    assert len(match.cases) == 5
