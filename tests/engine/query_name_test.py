"""No id and no handle that Tureen makes can be the name of a query."""

from __future__ import annotations

from engine.model.query_name import is_query_name
from tureen.protocol import new_handle, query_id


def test_ids_and_handles_are_no_names() -> None:
    for _ in range(100):
        handle = new_handle()
        assert not is_query_name(handle)
        assert not is_query_name(query_id(handle))


def test_names_have_a_limit() -> None:
    assert is_query_name("a" * 100)
    assert not is_query_name("a" * 101)
    assert not is_query_name("")
    assert not is_query_name("a/b")
    assert not is_query_name("1a")
