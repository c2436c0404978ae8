"""What happens to a join: shapes, windows, and rows that enter step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from engine.joins.shape import JoinEdge, Shape
from engine.model.source import SourceName
from engine.windows.clauses import NOW, UNBOUNDED, Instant, RowWindow, TimeWindow
from tests.joins.sources import KEYS, Row, Sources, in_window
from tests.time_windows import range_window

NAMES = ("a", "b", "c")

keys = st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2, unique=True)
values = st.tuples(
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.sampled_from(["", "x", "y"])),
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, float("nan"), 1.5])),
)
windows = st.one_of(
    st.integers(0, 8).map(range_window),
    st.integers(1, 8).map(RowWindow),
    st.just(UNBOUNDED),
    st.integers(0, 20).map(lambda ms: TimeWindow(Instant(relative=False, ms=ms), NOW)),
    st.tuples(st.integers(3, 8), st.integers(0, 3)).map(
        lambda ms: TimeWindow(Instant(relative=True, ms=-ms[0]), Instant(relative=True, ms=-ms[1]))
    ),
    st.just(RowWindow(2, keys=(KEYS["k"],))),
    st.just(TimeWindow(Instant(relative=True, ms=-4), NOW, slide_ms=3)),
)


@st.composite
def shapes(draw: st.DrawFn, inputs_max: int = 4) -> Shape:
    """Trees and more of edges over sources that may be the same."""
    n = draw(st.integers(2, inputs_max))
    inputs = tuple(SourceName(draw(st.sampled_from(NAMES))) for _ in range(n))
    edges = []
    for right in range(1, n):
        for left in sorted(draw(st.sets(st.integers(0, right - 1), min_size=1, max_size=2))):
            names = draw(keys)
            columns = tuple(KEYS[name] for name in names)
            edges.append(JoinEdge(left, right, columns, columns))
    return Shape(inputs, tuple(edges))


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, list[Row]]]:
    """Rows of each source that enter together, by ascending instants, all beyond those of the step before."""
    instant, made = 0, []
    for _ in range(draw(st.integers(1, 5))):
        step, latest = {}, instant
        for name in NAMES:
            gaps = draw(st.lists(st.integers(0, 2), max_size=5))
            stamps = (instant + 1 + np.cumsum(gaps, dtype=int)).tolist() if gaps else []
            step[name] = [(stamp, *draw(values)) for stamp in stamps]
            latest = max([latest, *stamps])
        instant = latest
        made.append(step)
    return made


def all_ordinals(sources: Sources, shape: Shape, windows_: Sequence[object], now_ms: int) -> list[np.ndarray]:
    """By input: ordinals of the rows that are retained and in the input's window at NOW."""
    found = []
    for name, window in zip(shape.inputs, windows_, strict=True):
        stem, rows = sources.stems[name], sources.rows[name]
        inside = [o for o in range(stem.base, stem.end) if in_window(window, o, rows, now_ms)]
        found.append(np.array(inside, np.int64))
    return found
