"""Single rows of a query's answer, for whoever may read it and only wants to see what is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from broker.http.formats import encode
from engine.model.answer import AnswerColumns
from engine.views.view import View
from tureen.errors import TureenError

ROWS_MAX = 20
_SPREAD = 0.6180339887498949


def row_sample(view: View, name: str, rows: int, bytes_max: int) -> dict[str, Any]:
    """At most so many rows, one of each of equal parts of the answer; at another position others. Where there
    is no answer: the error. Cost: that of a snapshot.
    """
    try:
        answer = view.snapshot(name)
        n = answer.rows.n
        bounds = np.linspace(0, n, min(rows, n) + 1).astype(np.int64)
        share = answer.position.sequence * _SPREAD % 1.0
        places = (bounds[:-1] + share * np.diff(bounds)).astype(np.int64)
        some = replace(answer, rows=AnswerColumns.of_table(answer.table.take(places)))
        told = orjson.loads(encode(some, "json", bytes_max))
    except TureenError as refused:
        return {"error": refused.as_dict()}
    return {field: told[field] for field in ("position", "now_ms", "columns", "rows")} | {"of": n}
