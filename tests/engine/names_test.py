"""One name, one class: no public class stands twice in a package of the engine."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

KNOWN = {("model", "Column"): "the data of a column in a batch, and what an expression says of one"}

ENGINE = Path(__file__).parents[2] / "engine"


def test_no_public_class_name_stands_twice_in_a_package() -> None:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(ENGINE.rglob("*.py")):
        place = path.relative_to(ENGINE)
        package = place.parts[0] if len(place.parts) > 1 else ""
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[package, node.name].append(str(place))
    assert {name for name, places in found.items() if len(places) > 1} == KNOWN.keys()
