"""Thousands of queries of one shape: columns of nodes, words of bits and slots past each of their first sizes
over more rows than a segment has, while queries come and go.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.agreement import plain_rows
from tests.large.course import Course, Folded

pytestmark = pytest.mark.slow

MANY = 4_500
RANGE, WIDE = "[RANGE 90 MILLISECONDS]", "[RANGE 300 MILLISECONDS]"
SHAPES = {
    "selection": f"SELECT k, v FROM s {WIDE} WHERE g = {{n}}",
    "range": f"SELECT i FROM s {WIDE} WHERE v > {{n}} AND i < 3",
    "group": f"SELECT i, MAX(k) AS m FROM s {WIDE} WHERE g = {{n}} GROUP BY i",
    "distinct": f"SELECT DISTINCT b FROM s {WIDE} WHERE g < {{n}}",
    "join": f"SELECT v, w FROM s {RANGE} JOIN u {RANGE} ON s.g = u.g WHERE s.g = {{n}}",
    "membership": f"SELECT k FROM s {RANGE} WHERE g = {{n}} AND k NOT IN (SELECT k FROM u {RANGE})",
    "first rows": f"SELECT k FROM s {WIDE} WHERE g = {{n}} ORDER BY k LIMIT 2",
}
"""By name: a text with a constant."""


@pytest.mark.parametrize("shape", SHAPES)
def test_thousands_of_queries_of_one_shape(shape: str) -> None:
    """Those that are followed add up to answers that are asked; two thirds leave midway, others come."""
    course, folded = Course(len(shape)), Folded()
    text = SHAPES[shape]
    texts = {f"q{n}": text.format(n=n) for n in range(MANY)}
    watched = [f"q{n}" for n in np.random.default_rng(1).choice(MANY, 60, replace=False)]
    watched = sorted({*watched, "q0", "q63", "q64", "q511", "q512", "q4095", "q4096", f"q{MANY - 1}"})
    waves = [(0, 60), (60, 70), (70, 600), (600, 4_200), (4_200, MANY)]
    sizes = (300, 1, 2_500, 40, 6_000, 1_200, 8_500, 7)
    course.register({f"asked-{id_}": texts[id_] for id_ in watched}, {"maintenance": "none"})
    alive: set[str] = set()

    def come(first: int, stop: int) -> None:
        coming = {f"q{n}": f"{texts[f'q{n}']} EMIT CHANGES" for n in range(first, stop)}
        folded.add(course.register(coming))
        alive.update(coming)

    for step, result in enumerate(course.run(sizes)):
        folded.add(result)
        if step % 3 == 2:
            if waves:
                come(*waves.pop(0))
            elif step == 17:
                gone = [f"q{n}" for n in range(MANY) if n % 3]
                course.unregister(gone)
                for id_ in gone:
                    folded.rows.pop(id_, None)
                alive.difference_update(gone)
            elif step == 20:
                come(0, 100)
            for id_ in alive.intersection(watched):
                assert folded.of(id_) == course.answer(f"asked-{id_}"), (step, id_)
    course.engine._check()


@pytest.mark.parametrize("maintenance", ["lazy", "eager"])
@pytest.mark.parametrize("shape", ["selection", "range"])
def test_thousands_of_answers_over_several_segments(shape: str, maintenance: str) -> None:
    course = Course(3)
    text = SHAPES[shape].replace(f" {WIDE}", "")
    texts = {f"q{n}": text.format(n=n) for n in range(MANY)}
    for first, stop in ((0, 50), (50, 600), (600, MANY)):
        course.register({f"q{n}": texts[f"q{n}"] for n in range(first, stop)}, {"maintenance": maintenance})
        for _ in course.run((6_000, 1, 5_000)):
            pass
        course.unregister([f"q{n}" for n in range(first, stop) if n % 7 == 3])
    course.restarted()
    for _ in course.run((3_000, 2)):
        pass
    view = course.engine.view()
    for n in [0, 1, 49, 50, 62, 64, 511, 512, 600, 1_023, 4_095, 4_096, *range(700, 760), MANY - 1]:
        if n % 7 != 3:
            found = plain_rows(view.snapshot(f"q{n}").table)
            expected = course.expected(texts[f"q{n}"])
            assert sorted(map(repr, found)) == sorted(map(repr, expected.elements())), n
    course.engine._check()
