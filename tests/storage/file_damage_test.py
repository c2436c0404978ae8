"""Files of RocksDB that are cut, changed or gone: a store opens as of some commit, or is refused."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.model.source import SourceName
from engine.model.step import Position
from storage.database import StoreOptions
from storage.store import Store
from tests.storage.cases import numbered, ordinals, plain, query_state, source_state
from tureen.errors import StoreError

COMMITS_LEAST = 40
COMMITS_MAX = 1_000
LOGS = 2
MANY = ("log", "sst", "MANIFEST")
ROWS = 400
PENDING = 50
OPTIONS = StoreOptions(write_buffer_bytes=64 << 10)
S = SourceName("s")


def write_and_end(directory: Path) -> None:
    """Make a store, and end as a killed process does, when its log has several files."""
    store = Store(directory, OPTIONS)
    for number in range(1, COMMITS_MAX + 1):
        end = number * ROWS
        store.append_rows(S, end - ROWS, numbered(end - ROWS, end))
        if number % 5 == 0:
            store.seal(S, end - 5 * ROWS, numbered(end - 5 * ROWS, end))
        store.put_pending(S, number, numbered(end, end + PENDING))
        store.drop_pending(S, number - 1)
        store.put_source(source_state(end=end))
        store.put_query(query_state(f"q{number:03}"))
        store.commit(Position(1, number))
        if number >= COMMITS_LEAST and len(list(directory.glob("*.log"))) >= LOGS:
            os._exit(9)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store whose process was killed: tables, a manifest, and a log that is not empty."""
    directory: Path = tmp_path_factory.mktemp("damage") / "store"
    code = f"from {__name__} import write_and_end; import pathlib, sys; "
    code += "write_and_end(pathlib.Path(sys.argv[1]))"
    assert subprocess.run([sys.executable, "-c", code, str(directory)], check=False).returncode == 9
    kinds = Counter(kind_of(path) for path in directory.iterdir())
    assert kinds["sst"] > 3
    assert kinds["log"] >= 2
    return directory


def kind_of(path: Path) -> str:
    return path.name.partition("-")[0] if path.suffix == "" else path.suffix[1:]


def found(directory: Path) -> int | None:
    """Which commit a store is as of; None where it has none. Raises StoreError; fails for a mixture."""
    with Store(directory, OPTIONS) as store:
        position = store.position()
        sources = {state.stream.name: state.end for state in store.sources()}
        queries = [state.registration.query_id for state in store.queries()]
        pieces = ordinals(store) if sources else []
        values = [row[3] for _, rows in store.rows(S) for row in plain(rows)] if sources else []
        pending = [number for number, _ in store.pending(S)] if sources else []
    if position is None:
        assert not sources
        assert not queries
        return None
    number = position.sequence
    assert sources == {S: number * ROWS}
    assert queries == [f"q{one:03}" for one in range(1, number + 1)]
    assert pieces[-1][1] == number * ROWS
    assert values == list(range(number * ROWS))
    assert pending == [number]
    return number


def cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def blank(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    stop = min(len(data), start + 4_096)
    data[start:stop] = bytes(stop - start)
    path.write_bytes(data)


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


def outcomes(
    killed: Path, copy: Path, kind: str, damage: Callable[[Path, random.Random], None], times: int
) -> Iterator[int | str | None]:
    names = sorted(path.name for path in killed.iterdir() if kind_of(path) == kind and path.stat().st_size)
    assert names
    for number in range(times):
        chance = random.Random(f"{kind} {damage.__name__} {number}")
        shutil.copytree(killed, copy)
        try:
            damage(copy / names[number % len(names)], chance)
            yield found(copy)
        except StoreError as refused:
            yield refused.code
        finally:
            shutil.rmtree(copy)


def test_without_damage_nothing_is_missing(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "copy")
    assert (found(tmp_path / "copy") or 0) >= COMMITS_LEAST


@pytest.mark.parametrize("kind", ["log", "sst", "MANIFEST", "CURRENT", "OPTIONS", "IDENTITY"])
@pytest.mark.parametrize("damage", [cut, flip, blank, remove])
def test_a_damaged_store_is_as_of_a_commit_or_refused(
    killed: Path, tmp_path: Path, kind: str, damage: Callable[[Path, random.Random], None]
) -> None:
    seen = Counter(outcomes(killed, tmp_path / "copy", kind, damage, 6 if kind in MANY else 2))
    codes = {one for one in seen if isinstance(one, str)}
    assert codes <= {"store_corrupt"}
