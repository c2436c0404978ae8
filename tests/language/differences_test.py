"""The table of differences from PostgreSQL says what is so."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.language.evaluate import ERROR, value

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


@pytest.mark.parametrize(
    ("on_the_page", "expression", "wanted"),
    [
        (r"LIKE 'a\_b'", r"'a_b' LIKE 'a\_b'", False),
        (r"LIKE 'a\_b'", r"'a\xb' LIKE 'a\_b'", True),
        (r"ESCAPE '\'", r"'a_b' LIKE 'a\_b' ESCAPE '\'", True),
        ("ROUND(2.5e0)", "ROUND(2.5e0)", 3.0),
        ("ROUND(2.5e0)", "ROUND(2.5)", Decimal(3)),
        ("CONCAT(TRUE, 2e0)", "CONCAT(TRUE, 2e0)", "true2.0"),
        (r"1e0 \|\| TRUE", "1e0 || TRUE", "1.0true"),
        ("1 / 3.0", "1 / 4.0", 0.25),
        ("x / 0", "1 / 0", ERROR),
        ("CAST('a' AS INTEGER)", "CAST('a' AS INTEGER)", ERROR),
        ("EXTRACT(SECOND FROM t)", "EXTRACT(SECOND FROM TIMESTAMP '2024-01-31 12:00:07.9')", 7),
    ],
)
def test_a_difference_on_the_page_is_what_the_engine_gives(
    on_the_page: str, expression: str, wanted: Any
) -> None:
    assert on_the_page in PAGE.read_text(encoding="utf-8")
    assert value(expression) == wanted
