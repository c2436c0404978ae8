"""Golden files: a statement beside what it is bound to, or why it is refused; a folder for each kind.

``TUREEN_UPDATE_GOLDEN=1 pytest tests/language/golden_test.py`` writes them anew; read the difference before
it is kept.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.language.fixtures import bind
from tests.language.rendering import render_statement
from tureen.carets import render
from tureen.errors import TureenError

FOLDER = Path(__file__).parent / "golden"
UPDATE = os.environ.get("TUREEN_UPDATE_GOLDEN") == "1"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.sql")), ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    sql = path.read_text(encoding="utf-8").removesuffix("\n")
    try:
        text, kind = render_statement(bind(sql)), ".plan"
    except TureenError as error:
        text, kind = f"{error.code}\n{render(sql, error)}", ".error"
    wanted = path.with_suffix(kind)
    if UPDATE:
        for other in (".plan", ".error"):
            path.with_suffix(other).unlink(missing_ok=True)
        wanted.write_text(text + "\n", encoding="utf-8")
    assert wanted.exists(), f"not what the golden file says:\n{text}"
    assert text + "\n" == wanted.read_text(encoding="utf-8")


def test_every_golden_file_has_its_statement() -> None:
    outcomes = [path for path in FOLDER.glob("*/*") if path.suffix in (".plan", ".error")]
    statements = list(FOLDER.glob("*/*.sql"))
    assert {path.with_suffix("") for path in outcomes} == {path.with_suffix("") for path in statements}
    assert len(outcomes) == len(statements) >= 60
    assert len({path.stem for path in statements}) == len(statements)
    assert not [path for path in FOLDER.iterdir() if not path.is_dir()]
