"""Stores of other versions and damaged ones: refused by name, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from engine.model.source import SourceName
from engine.model.step import Position
from storage.database import Changes, Database, StoreOptions
from storage.keys import (
    FORMAT_KEY,
    FORMER_FAMILIES,
    META,
    POSITION_KEY,
    POSITIONS,
    QUERIES,
    SEGMENTS,
    SOURCES,
    RowKind,
    rows_key,
)
from storage.store import Store
from tests.storage.cases import numbered, query_state, source_state
from tureen.errors import StoreCorrupt, StoreError, StoreVersionUnknown

S = SourceName("s")
VALUES = {
    META: FORMAT_KEY,
    POSITIONS: POSITION_KEY,
    SOURCES: b"s",
    QUERIES: b"q",
    SEGMENTS: rows_key(S, RowKind.VISIBLE, 4),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with Store(tmp_path) as store:
        store.put_source(source_state())
        store.put_query(query_state("q"))
        store.append_rows(S, 0, numbered(0, 4))
        store.append_rows(S, 4, numbered(4, 8))
        store.append_rows(S, 8, numbered(8, 9))
        store.put_pending(S, 1, numbered(9, 10))
        store.commit(Position(1, 1))
    return tmp_path


def change(directory: Path, family: str, key: bytes, how: Callable[[bytearray], object]) -> None:
    database = Database(directory, StoreOptions())
    value = database.get(family, key)
    assert value is not None
    changed = bytearray(value)
    how(changed)
    changes = Changes()
    changes.put(family, key, bytes(changed))
    database.write(changes)
    database.close()


def read_all(directory: Path) -> None:
    with Store(directory) as store:
        list(store.sources())
        list(store.queries())
        list(store.rows(S))
        list(store.pending(S))


@pytest.mark.parametrize("family", VALUES)
def test_a_value_of_another_version_is_refused(directory: Path, family: str) -> None:
    change(directory, family, VALUES[family], lambda value: value.__setitem__(0, 200))
    with pytest.raises(StoreVersionUnknown, match="version 200") as refused:
        read_all(directory)
    assert refused.value.hint


@pytest.mark.parametrize("family", VALUES)
@pytest.mark.parametrize("how", [bytearray.pop, lambda value: value.append(0), bytearray.clear], ids="<>0")
def test_a_damaged_value_is_named(directory: Path, family: str, how: Callable[[bytearray], object]) -> None:
    names = {
        META: "meta/format",
        POSITIONS: "positions/engine",
        SOURCES: "source 's'",
        QUERIES: "query 'q'",
        SEGMENTS: "rows of s from ordinal 4",
    }
    change(directory, family, VALUES[family], how)
    with pytest.raises(StoreCorrupt, match=names[family]) as refused:
        read_all(directory)
    assert refused.value.hint


def test_a_missing_piece_is_a_gap(directory: Path) -> None:
    database = Database(directory, StoreOptions())
    changes = Changes()
    changes.delete(SEGMENTS, VALUES[SEGMENTS])
    database.write(changes)
    database.close()
    with pytest.raises(StoreCorrupt, match="from ordinal 8"):
        read_all(directory)


def test_column_families_of_another_version_are_refused(directory: Path) -> None:
    families = {name: Options(raw_mode=True) for name in Rdict.list_cf(str(directory))}
    database = Rdict(str(directory), Options(raw_mode=True), column_families=families)
    database.create_column_family("joins", Options(raw_mode=True)).close()
    database.close()
    with pytest.raises(StoreVersionUnknown, match="joins"):
        Store(directory)


def test_store_with_families_of_an_earlier_version_opens_and_loses_them(directory: Path) -> None:
    families = {name: Options(raw_mode=True) for name in Rdict.list_cf(str(directory))}
    database = Rdict(str(directory), Options(raw_mode=True), column_families=families)
    for name in FORMER_FAMILIES:
        database.create_column_family(name, Options(raw_mode=True)).close()
    database.close()
    for _ in range(2):
        with Store(directory) as store:
            assert store.position() == Position(1, 1)
            assert [one.registration.query_id for one in store.queries()] == ["q"]
        assert not FORMER_FAMILIES & set(Rdict.list_cf(str(directory)))


def test_damaged_files_are_reported(directory: Path) -> None:
    tables = sorted(directory.glob("*.sst"), key=lambda path: path.stat().st_size)
    assert tables
    for table in tables:
        content = bytearray(table.read_bytes())
        for place in range(0, len(content), 7):
            content[place] ^= 0xFF
        table.write_bytes(content)
    with pytest.raises(StoreCorrupt) as refused:
        read_all(directory)
    assert refused.value.hint


def test_what_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(StoreError) as refused:
        Store(tmp_path / "file")
    assert refused.value.hint


def test_a_refused_store_is_left_to_the_next_owner(directory: Path) -> None:
    change(directory, META, FORMAT_KEY, lambda value: value.__setitem__(0, 200))
    for _ in range(2):
        with pytest.raises(StoreVersionUnknown):
            Store(directory)
