"""A process that is killed anywhere leaves one committed position, with exactly its rows."""

from __future__ import annotations

import random
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.model.source import SourceName
from engine.model.step import Position
from storage.store import Store
from tests.storage.cases import numbered, plain, source_state, stored
from tureen.errors import StoreInUse

S = SourceName("s")
PIECE = 20
SEALED = 5 * PIECE
DEADLINE_S = 30.0

WRITER = f"""
import sys
from pathlib import Path
from engine.model.source import SourceName
from engine.model.step import Position
from storage.database import StoreOptions
from storage.store import Store
from tests.storage.cases import numbered, source_state

store = Store(Path(sys.argv[1]), StoreOptions(sync=sys.argv[2] == "sync", write_buffer_bytes=1 << 16))
s = SourceName("s")
at = store.position()
number = 0 if at is None else at.sequence
print("ready", flush=True)
while True:
    first = number * {PIECE}
    number += 1
    end = first + {PIECE}
    store.append_rows(s, first, numbered(first, end))
    if end % {SEALED} == 0:
        store.seal(s, end - {SEALED}, numbered(end - {SEALED}, end))
    store.drop_rows(s, end - 4 * {SEALED})
    store.put_source(source_state(end=end))
    store.commit(Position(1, number))
    print(number, flush=True)
"""


def expected(number: int) -> list[int]:
    """First ordinals after so many commits: segments behind, pieces at the end, none wholly below."""
    end = number * PIECE
    sealed = end // SEALED * SEALED
    firsts = [*range(0, sealed, SEALED), *range(sealed, end, PIECE)]
    following = [*firsts[1:], end]
    return [first for first, after in zip(firsts, following, strict=True) if after > end - 4 * SEALED]


def write_and_kill(directory: Path, commits: int, wait_s: float, sync: str) -> int:
    """Run the writer until it told so many commits, then a moment more; returns the last it told."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), sync], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(writer.stdout, selectors.EVENT_READ)
        assert selector.select(DEADLINE_S), "the writer says nothing"
    assert writer.stdout.readline() == "ready\n"
    told = 0
    for _ in range(commits):
        told = int(writer.stdout.readline())
    began = time.perf_counter()
    while time.perf_counter() - began < wait_s:
        pass
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split("\n")
    assert writer.wait(DEADLINE_S) == -signal.SIGKILL
    complete = [int(line) for line in rest[:-1] if line]
    return complete[-1] if complete else told


@pytest.mark.parametrize("sync", ["sync", "lazy"])
def test_a_killed_writer_leaves_a_committed_position_with_its_rows(tmp_path: Path, sync: str) -> None:
    chance = random.Random(5)
    last = 0
    for _ in range(6):
        told = write_and_kill(tmp_path, chance.randrange(40), chance.random() * 0.003, sync)
        with Store(tmp_path) as store:
            position = store.position()
            if position is None:
                assert told == 0
                assert stored(store) == []
                continue
            number = position.sequence
            assert position == Position(1, number)
            assert number in (max(told, last), max(told, last) + 1)
            assert [state.end for state in store.sources()] == [number * PIECE]
            found = stored(store)
            firsts = expected(number)
            assert [first for first, _ in found] == firsts
            rows = [row for _, piece in found for row in piece]
            assert rows == plain(numbered(firsts[0], number * PIECE))
            last = number
    assert last > 0


def test_another_process_is_told_who_the_owner_is_and_takes_over_when_it_dies(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from storage.store import Store; "
        "s = Store(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert owner.stdout is not None
    assert owner.stdin is not None
    with owner:
        assert owner.stdout.readline() == "ready\n"
        with pytest.raises(StoreInUse, match=f"process {owner.pid}"):
            Store(tmp_path)
        owner.kill()
        owner.wait(DEADLINE_S)
        with Store(tmp_path) as store:
            store.put_source(source_state())
            store.commit(Position(1, 1))
