"""Thousands of rows, thousands of keys, ever new strings: followed changes add up to the answers, those are
what DuckDB gives, and neither a restart nor queries that leave change them.
"""

from __future__ import annotations

import pytest

from tests.capacities import small_engine
from tests.large.course import LATEST, SIZES, Course, Folded
from tests.large.families import FAMILIES, OVER_ALL
from tureen.errors import OptionRefused

pytestmark = pytest.mark.slow

SMALL: dict[str, str] = {"strategy": "upa", "partitions": "1"}
"""In an engine whose state begins with room for one item."""
STRATEGIES: tuple[dict[str, str], ...] = (
    {},
    SMALL,
    {"strategy": "nt"},
    {"strategy": "direct"},
    {"strategy": "upa"},
    {"strategy": "upa", "structure": "indexed"},
)


@pytest.mark.parametrize("options", STRATEGIES, ids=lambda one: "-".join(one.values()) or "usual")
@pytest.mark.parametrize("family", FAMILIES)
def test_changes_add_up_to_answers(family: str, options: dict[str, str]) -> None:
    course = Course(len(family), small_engine() if options is SMALL else None)
    folded = Folded()
    texts = dict(enumerate(FAMILIES[family]))
    lazy = {f"asked{place}": text for place, text in texts.items()}
    course.register(lazy, {"maintenance": "none"})
    for place, text in list(texts.items()):
        try:
            folded.add(course.register({f"told{place}": f"{text} EMIT CHANGES"}, options))
        except OptionRefused:  # its rows leave at instants that are not known when they enter
            del texts[place]
    for step, result in enumerate(course.run()):
        folded.add(result)
        if step == len(SIZES):  # others come while there is much state, and leave again below
            late = {f"late{place}": f"{text} EMIT CHANGES" for place, text in texts.items()}
            folded.add(course.register(late, options))
        if step == 2 * len(SIZES):
            course.unregister([f"late{place}" for place in texts])
        if step % 5 == 0 or step == 3 * len(SIZES) - 1:
            for place, text in texts.items():
                answer = course.answer(f"asked{place}")
                assert folded.of(f"told{place}") == answer, (step, text)
                if len(SIZES) < step < 2 * len(SIZES):
                    assert folded.of(f"late{place}") == answer, (step, text)
    course.engine._check()


@pytest.mark.parametrize("maintenance", ["none", "lazy", "eager"])
def test_answers_over_all_rows_are_those_of_duckdb(maintenance: str) -> None:
    course = Course(11)
    queries = {f"q{place}": text for place, text in enumerate(OVER_ALL)}
    course.register(queries, {"maintenance": maintenance})
    for step, _ in enumerate(course.run()):
        if step == len(SIZES):
            course.restarted()
    for query_id, text in queries.items():
        expected = course.expected((OVER_ALL[text] or text).format(latest=LATEST))
        assert course.answer(query_id) == expected, text
    course.engine._check()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restart_changes_nothing_that_follows(family: str) -> None:
    whole, cut = Course(5), Course(5)
    queries = {f"q{place}": f"{text} EMIT CHANGES" for place, text in enumerate(FAMILIES[family])}
    both = [Folded(), Folded()]
    for course, folded in zip((whole, cut), both, strict=True):
        folded.add(course.register(queries))
        for step, result in enumerate(course.run()):
            folded.add(result)
            if course is cut and step in (4, 2 * len(SIZES)):
                course.restarted()
    for query_id in queries:
        assert both[0].of(query_id) == both[1].of(query_id) == whole.answer(query_id) == cut.answer(query_id)
