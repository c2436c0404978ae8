"""Tables of strings and labels of named strings, beside plain dictionaries and lists."""

from __future__ import annotations

import gc
import weakref
from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domains.domain import KEY_MIN, StringDomain
from engine.domains.regions import ABOVE, BELOW, Region
from engine.kernels import strings as kernels
from engine.model.answer import AnswerColumns
from engine.model.batch import Batch, Column, concatenate_columns
from engine.model.capacities import Capacities
from engine.model.codes import CodeValues, used_codes
from engine.model.source import Field, Schema
from engine.model.string_table import StringTable
from engine.model.types import BIGINT, STRING
from engine.stems.stream_strings import SMALL_STRINGS, StreamStrings

TEXTS = st.one_of(
    st.sampled_from(
        ["", "\0", "a", "a\0", "a\0\0", "ab", "abcdefgh", "abcdefgha", "abcdefgh\0", "é", "😀", "\U0010ffff"]
    ),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
)


@given(st.lists(st.lists(TEXTS, max_size=30), max_size=6), st.integers(1, 4))
def test_codes_are_those_of_a_dictionary(batches: list[list[str]], room: int) -> None:
    table, twin = StringTable(Capacities(room)), dict[str, int]()
    seen: list[tuple[pa.StringArray, list[str]]] = []
    for batch in batches:
        array = pa.array(["", *batch], pa.string()).slice(1)
        codes = table.number(array)
        assert codes.tolist() == [twin.setdefault(text, len(twin)) for text in batch]
        seen.append((table.array(), list(twin)))
        table._check()
    for array, values in seen:  # what was read stays
        assert array.to_pylist() == values


@given(st.lists(TEXTS), st.lists(TEXTS))
def test_strings_that_are_not_in_a_table_are_not_found(held: list[str], wanted: list[str]) -> None:
    table = StringTable()
    table.number(pa.array(held, pa.string()))
    codes, missing = table.find(pa.array(wanted, pa.string()))
    values = table.array().to_pylist()
    expected = [values.index(text) if text in values else kernels.UNKNOWN for text in wanted]
    assert codes.tolist() == expected
    assert missing == expected.count(kernels.UNKNOWN)


@given(st.lists(TEXTS, min_size=1), st.data())
def test_rows_of_strings_are_laid_out_as_arrow_has_them(held: list[str], data: st.DataObject) -> None:
    table = StringTable()
    codes = table.number(pa.array(held, pa.string()))
    rows = data.draw(st.lists(st.tuples(st.sampled_from(codes.tolist()), st.booleans())))
    values = np.array([code for code, _ in rows], np.int32)
    there = np.array([is_there for _, is_there in rows], np.bool_)
    expected = table.array().take(pa.array(values, pa.int32(), mask=~there))
    for strings in (table, table.array(), pa.concat_arrays([pa.array(["x"]), table.array()]).slice(1)):
        column = Column(STRING, values, there, strings)
        found = column.to_arrow()
        found.validate(full=True)
        assert found.equals(expected)
        assert column.nbytes == values.nbytes + sum(
            len(text.encode()) for text in expected.drop_null().to_pylist()
        )
        assert Column(STRING, values, None, strings).to_arrow().equals(table.array().take(pa.array(values)))


@pytest.mark.parametrize("n", [0, 3])
def test_nothing_but_null_strings(n: int) -> None:
    column = Column(STRING, np.zeros(n, np.int32), np.zeros(n, np.bool_), StringTable())
    assert column.to_arrow().equals(pa.nulls(n, pa.string()))
    assert column.nbytes == 4 * n


def test_an_answer_with_more_text_than_an_array_holds_is_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.model.batch.ARROW_BYTES_MAX", 10)
    texts = pa.array([f"s{i}" for i in range(20)])
    column = Column.from_arrow(STRING, texts)
    with pytest.raises(OverflowError):
        column.to_arrow()
    rows = AnswerColumns(pa.schema([("s", pa.string())]), [column], 20)
    assert [row["s"] for one in rows.batches() for row in one.to_pylist()] == texts.to_pylist()
    assert rows.table.column(0).num_chunks > 4
    assert rows.table.column(0).to_pylist() == texts.to_pylist()


def test_table_of_some_codes() -> None:
    table = StringTable()
    table.number(pa.array([f"s{i}" for i in range(1_000)]))
    fewer = table.only(np.array([7, 900, 3], np.int64))
    assert fewer.array().to_pylist() == ["s7", "s900", "s3"]
    fewer._check()


def test_long_strings_and_many() -> None:
    table = StringTable()
    texts = ["x" * 65_536 + str(i % 7) for i in range(20)] + [str(i) for i in range(100_000)]
    codes = table.number(pa.array(texts))
    assert len(table) == 100_007
    assert codes[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    table._check()


@given(st.lists(TEXTS, min_size=1, max_size=5), st.lists(st.integers(0, 4), max_size=20))
def test_column_of_a_long_dictionary(dictionary: list[str], rows: list[int]) -> None:
    values = list(dict.fromkeys(dictionary)) + [f"other {i}" for i in range(400)]
    places = np.array([row % len(values) for row in rows], np.int32)
    table = StringTable()
    codes = Column(STRING, places, None, pa.array(values)).codes_in(table)
    held = table.array().to_pylist()
    assert [held[code] for code in codes] == [values[place] for place in places]


@given(st.lists(st.lists(st.none() | TEXTS, max_size=20), min_size=2, max_size=5), st.integers(0, 40))
def test_columns_one_after_another(parts: list[list[str | None]], unused: int) -> None:
    columns = [Column.from_arrow(STRING, pa.array(part, pa.string())) for part in parts]
    filler = Column.from_arrow(STRING, pa.array([f"unused {i}" for i in range(unused)], pa.string()))
    columns[0] = concatenate_columns(STRING, [filler, columns[0]]).slice(unused, unused + len(parts[0]))
    whole = concatenate_columns(STRING, columns)
    assert whole.to_arrow().to_pylist() == [text for part in parts for text in part]
    assert whole.dictionary is not None
    assert len(set(whole.dictionary.to_pylist())) == len(whole.dictionary)


@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=40), st.lists(TEXTS, max_size=40), st.data())
def test_keys_of_strings_lie_in_the_regions_that_hold_them(
    named: list[tuple[str, bool]], values: list[str], data: st.DataObject
) -> None:
    """=, <> and ranges decide by keys as by the strings, whatever was named before and after."""
    domain = StringDomain(STRING)
    with_ranges = data.draw(st.booleans())
    regions = []
    asked = [*values, *(text for text, _ in named), *(text + "\0" for text, _ in named)]
    column = Column.from_arrow(STRING, pa.array(asked, pa.string()))
    for text, flag in named:
        above = text + "\0"
        if with_ranges and flag:
            regions.append(Region(((text, ABOVE),)))
        elif flag:
            regions.append(Region(((BELOW, text), (above, ABOVE)) if text else ((above, ABOVE),)))
        else:
            regions.append(Region(((text, above),)))
        domain.name(regions[-1])
        if data.draw(st.booleans()):
            domain.keys(column, np.empty(len(asked), np.int64))
    domain.moved()
    domain._check()
    keys = np.empty(len(asked), np.int64)
    domain.keys(column, keys)
    for region in regions:
        wanted = [
            any((a is BELOW or a <= text) and (b is ABOVE or text < b) for a, b in region.intervals)
            for text in asked
        ]
        intervals = domain.intervals(region)
        assert [any(low <= key <= last for low, last in intervals) for key in keys.tolist()] == wanted


def test_many_named_strings_in_order() -> None:
    """The long run is made again many times while strings come out of order."""
    domain = StringDomain(STRING)
    rng = np.random.default_rng(5)
    texts = [f"k{i:05d}" for i in rng.permutation(3_000)]
    probes = [f"k{i:05d}x" for i in range(0, 3_000, 7)] + ["", "a", "z"]
    column = Column.from_arrow(STRING, pa.array(probes))
    for number, text in enumerate(texts):
        domain.name(Region(((text, ABOVE),)))
        if number % 100 == 0:
            keys = np.empty(len(probes), np.int64)
            domain.keys(column, keys)
            below = sorted(texts[: number + 1])
            for probe, key in zip(probes, keys.tolist(), strict=True):
                place = bisect_left(below, probe)
                assert key == (domain._labels[below[place - 1]] + 1 if place else KEY_MIN)
    domain._check()


@given(st.lists(st.integers(0, 10**6) | st.integers(0, 5), max_size=60))
def test_used_codes_are_numbered_without_gaps(values: list[int]) -> None:
    codes, used = used_codes(np.array(values, np.int32))
    assert used.tolist() == list(dict.fromkeys(values))
    assert used[codes].tolist() == values


@given(st.lists(st.lists(st.none() | TEXTS, max_size=20), min_size=1, max_size=5), st.integers(0, 5))
def test_decoded_columns_are_what_arrow_has(parts: list[list[str | None]], first: int) -> None:
    """Taken apart, put together and coded, before and after."""
    arrays = [pa.array(["cut off", *part], pa.string()).slice(1) for part in parts]
    decoded = [Column.decoded(STRING, array) for array in arrays]
    flat = [text for part in parts for text in part]
    assert concatenate_columns(STRING, decoded).to_arrow().to_pylist() == flat
    table = StringTable(Capacities(4))
    coded = [column.coded(table) for column in decoded]
    assert all(column.strings is table for column in coded)
    whole = concatenate_columns(STRING, coded)
    assert whole.strings is table or len(parts) == 1
    assert whole.to_arrow().to_pylist() == flat
    again = concatenate_columns(STRING, [whole.slice(first, len(flat)), decoded[0]]).coded(StringTable())
    assert again.to_arrow().to_pylist() == flat[first:] + parts[0]
    table._check()


@given(st.data())
def test_values_by_code_are_those_of_the_strings(data: st.DataObject) -> None:
    """However tables grow, whatever is set anew, and when all are forgotten."""
    lengths: dict[str, int] = {}

    def work(strings: pa.StringArray) -> np.ndarray:
        return np.array([lengths.get(text, len(text)) for text in strings.to_pylist()], np.int64)

    values, tables = CodeValues(), [StringTable(Capacities(2)), StringTable(Capacities(2))]
    for _ in range(data.draw(st.integers(1, 6))):
        table = data.draw(st.sampled_from(tables))
        table.number(pa.array(data.draw(st.lists(TEXTS, max_size=12)), pa.string()))
        held = table.array().to_pylist()
        codes = data.draw(st.lists(st.sampled_from(range(len(held))), max_size=6)) if held else []
        out = np.empty(len(codes), np.int64)
        values.take(table, np.array(codes, np.int32), out, work)
        assert out.tolist() == [lengths.get(held[code], len(held[code])) for code in codes]
        changed = data.draw(st.lists(TEXTS, unique=True, max_size=3))
        lengths |= dict.fromkeys(changed, -7)
        if data.draw(st.booleans()):
            values.put(pa.array(changed, pa.string()), np.full(len(changed), -7, np.int64))
        else:
            values.forget()


def test_a_table_goes_with_the_last_who_has_it() -> None:
    """At once, with all it holds: no collector of cycles is waited for."""
    table, other = StringTable(), StringTable()
    other.number(pa.array(["a", "b"]))
    table.codes_of(other, np.array([1, 0], np.int32))
    gone = weakref.ref(table)
    gc.disable()
    try:
        del table
        assert gone() is None
    finally:
        gc.enable()


SCHEMA = Schema((Field("s", STRING), Field("n", BIGINT), Field("t", STRING)))


def _rows(texts: list[str], others: list[str]) -> Batch:
    table = pa.table({"s": texts, "n": pa.array(range(len(texts)), pa.int64()), "t": others})
    n = len(texts)
    return Batch.from_arrow(SCHEMA, table, np.zeros(n), np.arange(n), np.arange(n))


def test_rows_are_coded_once_a_generation() -> None:
    strings = StreamStrings(SCHEMA)
    rows = strings.coded(_rows(["a", "b", "a"], ["x", "x", "y"]))
    assert strings.coded(rows) is rows
    before = strings.tables
    strings.let_go(0)
    assert strings.tables is before
    strings.clear()
    assert all(one is not other for one, other in zip(strings.tables, before, strict=True) if one is not None)
    again = strings.coded(rows)
    assert again.to_arrow().equals(rows.to_arrow())
    assert again.columns[0].strings is strings.tables[0]


def test_a_table_that_is_mostly_dead_gives_way() -> None:
    strings = StreamStrings(SCHEMA)
    many = [f"{i}" for i in range(SMALL_STRINGS + 1)]
    strings.coded(_rows(many, ["x"] * len(many)))
    first, _, other = strings.tables
    strings.let_go(len(many))
    assert strings.tables[0] is first
    strings.let_go(len(many) // 10)
    assert strings.tables[0] is not first
    assert strings.tables[2] is other
