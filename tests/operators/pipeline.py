"""Data and helpers that ``pipeline_test.py`` shares with other tests."""

from __future__ import annotations

from typing import Any

from engine.language.query import Query
from engine.model.batch import Column
from tests.operators.relations import python


def table_rows(query: Query, table: Any) -> list[tuple[Any, ...]]:
    columns = [
        python(Column.from_arrow(type_, table.column(place)))
        for place, (_, type_) in enumerate(query.columns)
    ]
    return list(zip(*columns, strict=True)) if table.num_rows else []
