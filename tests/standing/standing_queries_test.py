"""A map in parts is a dictionary, and what it showed stays."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.standing.queries import ShownQueries, StandingQueries

KEYS = st.integers(0, 3_000).map(str)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers()),
        st.tuples(st.just("pop"), KEYS, st.just(0)),
        st.tuples(st.just("show"), KEYS, st.just(0)),
    ),
    max_size=60,
)


@given(st.integers(0, 2_000), CHANGES)
def test_it_is_a_dictionary_and_what_was_shown_stays(count: int, changes: Any) -> None:
    queries: Any = StandingQueries()
    plain: dict[str, int] = {}
    for number in range(count):
        queries[str(number)] = plain[str(number)] = number
    shown: list[tuple[ShownQueries, dict[str, int]]] = [(queries.shown(), dict(plain))]
    for kind, key, value in changes:
        if kind == "set":
            queries[key] = plain[key] = value
        elif kind == "pop":
            assert queries.pop(key, None) == plain.pop(key, None)
        else:
            assert (key in queries) == (key in plain)
            shown.append((queries.shown(), dict(plain)))
        assert len(queries) == len(plain)
    assert list(queries.items()) == list(plain.items())
    assert queries.shown() is queries.shown()
    now = queries.shown()
    assert sorted(map(str, now.changed_since(None))) == sorted(map(str, plain.values()))
    assert not list(now.changed_since(now))
    for then, wanted in shown:
        others = {value for key, value in plain.items() if wanted.get(key) != value}
        assert others <= {int(str(value)) for value in now.changed_since(then)}
    for then, wanted in shown:
        assert len(then) == len(wanted)
        assert list(then.items()) == list(wanted.items())
        assert sorted(map(str, then.in_any_order())) == sorted(map(str, wanted.values()))
        assert all(then.get(key) == wanted.get(key) for key in map(str, range(0, 3_000, 61)))
