"""Folders know one another in one direction alone: of two folders that stand side by side, at any depth, only
one imports the other. The layers of `pyproject.toml` say which one. Tests do not know one another at all.
"""

from __future__ import annotations

import re
from pathlib import Path

import grimp
import pytest

from tests.source_modules import PACKAGES

BY_FLOOR = {"engine.algebra"}
"""Folders each of whose files stands on a floor of its own, which contracts of `pyproject.toml` name."""


def side_by_side(importer: str, imported: str) -> tuple[str, str]:
    """The two modules or folders, children of the same folder, that hold these modules."""
    above, below = importer.split("."), imported.split(".")
    shared = 0
    while above[shared : shared + 1] == below[shared : shared + 1] != []:
        shared += 1
    return ".".join(above[: shared + 1]), ".".join(below[: shared + 1])


def mutual(package: str) -> set[tuple[str, str]]:
    """Pairs of folders side by side that import each other."""
    graph = grimp.build_graph(package, cache_dir=None)
    folders = {module for module in graph.modules if graph.find_children(module)}
    one_way = {
        pair
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if (pair := side_by_side(importer, imported))
        and folders.issuperset(pair)
        and BY_FLOOR.isdisjoint(pair)
    }
    return {(above, below) for above, below in one_way if above < below and (below, above) in one_way}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_folders_import_each_other(package: str) -> None:
    assert mutual(package) == set()


def test_no_test_imports_another() -> None:
    """What several need stands beside them, in a module without tests."""
    imports = re.compile(r"^\s*(?:from|import) tests\.\S*_test\b", re.MULTILINE)
    files = sorted(Path(__file__).parent.rglob("*.py"))
    assert len(files) > 400
    assert not [path.name for path in files if imports.search(path.read_text(encoding="utf-8"))]
