"""SHOW SUMMARIES and DESCRIBE SUMMARY as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.language.render import render_span

Table = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def listed_table(found: Sequence[dict[str, Any]]) -> Table:
    """One row a summary; of one that waits for its stream what is known of it."""
    columns = ["name", "state", "stream", "attribute", "granularity", "collapse", "reach"]
    columns += ["zones", "rows", "bytes", "queries", "statement"]
    rows = [
        [
            one["name"],
            one["state"],
            one["stream"],
            one["attribute"],
            _span(one["granularity_ms"]),
            None if one["rate"] is None else f"{one['rate']}, {one['depth']}",
            _span(one["reach_ms"]),
            one["zones"],
            one["rows"],
            one["bytes"],
            one["queries"],
            " ".join(one["sql"].split()),
        ]
        for one in found
    ]
    return {"columns": columns, "rows": rows}


def described_table(found: dict[str, Any]) -> Table:
    """One row a granularity, the most recent first, and ``summary``: all that is known.

    A zone of the first granularity ends where the stream changes, at its longest, or at a multiple of the
    granularity; one of the others at a multiple of its length.
    """
    columns = ["granularity", "length", "zones", "rows", "from", "until"]
    columns += ["by change", "by length", "by granularity", "open", "confidence", "error"]
    rows = []
    for one in found["granularities"]:
        cuts = one["cuts"]
        counts = [cuts["change"], cuts["length"], cuts["granularity"], cuts["open"]]
        rows.append(
            [
                one["granularity"],
                _span(one["length_ms"]),
                one["zones"],
                one["rows"],
                _instant(one["from_ms"]),
                _instant(one["until_ms"]),
                *counts,
                _rounded(one["confidence_min"]),
                _rounded(one["error_rows"]),
            ]
        )
    return {"columns": columns, "rows": rows, "summary": found}


def _span(length_ms: int | None) -> str | None:
    return None if length_ms is None else render_span(length_ms)


def _instant(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(sep=" ", timespec="milliseconds")[:23]
    except OverflowError:
        return f"{at_ms} ms"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")
