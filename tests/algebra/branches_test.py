"""Only files in ``engine/algebra`` branch over operators.

A branch is a class of a stage that a module names in ``isinstance``, in ``issubclass``, in a class pattern of
``match``, or beside ``is`` and ``type(...)``: each name counts, so ``isinstance(stage, Join | SemiJoin)`` is
two. Not counted: ``engine.algebra`` itself; ``engine.reference``, which shares nothing with the engine.

    python -m tests.algebra.branches_test        prints how many there are, by module
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.algebra.operators import OPERATORS
from tests.source_modules import modules

PACKAGES = ("broker", "engine", "spark_jobs", "storage", "topics", "tureen")
APART = ("engine.algebra", "engine.reference")
STAGES = {operator.__name__ for operator in OPERATORS}


def stages_by_name(tree: ast.Module) -> set[str]:
    """The names by which a module knows classes of stages."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("engine.algebra.")
        for alias in node.names
        if alias.name in STAGES
    }


def branches(tree: ast.Module) -> int:
    known = stages_by_name(tree)
    return sum(name in known for node in ast.walk(tree) for name in _branched_over(node))


def _branched_over(node: ast.AST) -> Iterator[str]:
    """The names of classes that a node branches over."""
    match node:
        case ast.Call(func=ast.Name("isinstance" | "issubclass"), args=[_, classes]):
            yield from _names(classes)
        case ast.MatchClass(cls=ast.Name(name)):
            yield name
        case ast.Compare(left=ast.Call(func=ast.Name("type")), comparators=[other]):
            yield from _names(other)
        case _:
            pass


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def counted() -> dict[str, int]:
    """Modules with branches, and how many they have."""
    found = {
        name: branches(ast.parse(path.read_text(encoding="utf-8")))
        for name, path in modules(PACKAGES).items()
        if not name.startswith(APART)
    }
    return {name: count for name, count in found.items() if count}


def test_what_counts() -> None:
    tree = ast.parse(
        "from engine.algebra.join.stage import Join as Joining, Latest\n"
        "from engine.algebra.limit.stage import Limit\n"
        "from elsewhere import Filter\n"
        "isinstance(stage, Joining | Limit | Latest | Filter)\n"
        "type(stage) is Limit\n"
        "match stage:\n"
        "    case [Limit(0), Filter()] | Joining(kind='inner'): pass\n"
    )
    assert branches(tree) == 5


def test_nobody_else_branches_over_operators() -> None:
    assert not counted(), "only files in engine/algebra branch over operators; ask the stage, or add a rule"


if __name__ == "__main__":
    table = counted()
    for module, count in sorted(table.items(), key=lambda each: (-each[1], each[0])):
        print(f"    {module!r}: {count},".replace("'", '"'))
    print(f"# {sum(table.values())} in {len(table)} modules")
