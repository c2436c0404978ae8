"""Keys: byte order is the order of numbers, and ranges hold what they should."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.model.source import SourceName
from storage.keys import RowKind, key_number, number_key, rows_key, rows_range, source_range
from tests.storage.cases import INT64, NAMES

EDGES = st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])


@given(a=INT64 | EDGES, b=INT64 | EDGES)
def test_keys_are_ordered_as_their_numbers(a: int, b: int) -> None:
    assert (number_key(a) < number_key(b)) == (a < b)
    assert key_number(number_key(a)) == a


@given(name=NAMES, other=NAMES, number=INT64 | EDGES, kind=st.sampled_from(RowKind))
def test_a_range_holds_the_keys_of_its_source_and_kind_alone(
    name: str, other: str, number: int, kind: RowKind
) -> None:
    key = rows_key(SourceName(name), kind, number)
    for reader in RowKind:
        begin, end = rows_range(SourceName(other), reader)
        assert (begin <= key < end) == (name == other and kind is reader)
    begin, end = source_range(SourceName(other))
    assert (begin <= key < end) == (name == other)
