"""Docstrings say what a thing is, and what they refer to is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from tests.source_modules import PACKAGES, ROOT, modules

RIDDLE = re.compile(r"(Of |The same\b|None:)")
REFERENCE = re.compile(r":(?:mod|class|func|meth|data|attr|exc):`~?([\w.]+)`")


MODULES = modules(PACKAGES)


@lru_cache(None)
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def docstrings(module: str) -> Iterator[tuple[int, str]]:
    """Each string that stands as a statement, with its line: of modules, classes, functions, attributes."""
    for node in ast.walk(tree(module)):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, text
            case _:
                pass


@lru_cache(None)
def names(module: str) -> frozenset[str]:
    """Whatever a module defines, imports or assigns, at any depth: attributes of its classes, too."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias():
                found.add((node.asname or node.name).split(".")[0])
            case _:
                pass
    return frozenset(found)


@lru_cache(None)
def everywhere() -> frozenset[str]:
    return frozenset().union(*(names(module) for module in MODULES))


def resolves(target: str, module: str) -> bool:
    """Whether a reference leads somewhere. A name alone is one that the module knows, or a method that
    one of its classes may inherit.
    """
    if target.startswith("."):
        package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
        target = package + target
    parts = target.split(".")
    if parts[0] not in PACKAGES:
        return parts[0] in names(module) or parts[0] in everywhere()
    lengths = range(len(parts), 0, -1)
    owner, rest = next(
        (name, parts[length:]) for length in lengths if (name := ".".join(parts[:length])) in MODULES
    )
    # The client's package offers what its modules define.
    known = everywhere() if owner == "tureen" else names(owner)
    return not rest or (rest[0] in known and rest[-1] in everywhere())


def test_no_docstring_opens_with_a_riddle() -> None:
    found = [
        f"{MODULES[module].relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for module in MODULES
        for line, text in docstrings(module)
        if RIDDLE.match(text)
    ]
    assert not found, "\n".join(found)


def test_references_of_docstrings_lead_somewhere() -> None:
    found = [
        f"{MODULES[module].relative_to(ROOT)}:{line}: {target}"
        for module in MODULES
        for line, text in docstrings(module)
        for target in REFERENCE.findall(text)
        if not resolves(target, module)
    ]
    assert not found, "\n".join(found)
