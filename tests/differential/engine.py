"""Data and helpers that ``engine_test.py`` shares with other tests."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.model.source import Stream
from tests.sql_selects import statement as any_select
from tests.sql_strategies import statement as selection


def any_statement(draw: st.DrawFn, stream: Stream) -> str:
    """A plain selection, as most standing queries are, or anything else that is served."""
    return draw(st.sampled_from([selection, any_select]))(draw, stream)
