"""Examples in docstrings run as written, pages that source files name exist, and files that pages name."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine.language
import tureen

ROOT = Path(__file__).parents[1]
PACKAGES = ("tureen", "broker", "topics", "engine", "storage", "spark_jobs", "examples", "benchmarks")


def modules() -> Iterator[str]:
    for package in (tureen, engine.language):
        yield package.__name__
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not one.name.endswith("__main__"):
                yield one.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert not found.failed


def test_code_at_the_head_of_a_module_is_python() -> None:
    """Indented examples that match events are not run; they are compiled."""
    import ast
    import textwrap

    text = ast.get_docstring(ast.parse((ROOT / "tureen" / "changes.py").read_text())) or ""
    block = textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ")))
    assert "match event" in block
    compile(block, "tureen/changes.py", "exec")


def test_pages_that_source_files_name_exist() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {page}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for page in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text())
        if not (ROOT / page).exists()
    }
    assert not missing


def test_files_that_the_page_of_the_papers_names_exist() -> None:
    named = re.findall(r"`((?:\w+/)+\w+(?:\.py)?)`", (ROOT / "docs" / "papers.md").read_text())
    assert len(named) > 60
    assert not [name for name in named if not (ROOT / name).exists()]
