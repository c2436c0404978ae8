"""A disk that is full: the commit fails, the store is as it was, and goes on when there is space again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.model.source import SourceName
from engine.model.step import Position
from storage.store import Store
from tests.storage.cases import numbered, ordinals, query_state, source_state
from tureen.errors import StoreFull

S = SourceName("s")
ROWS = 20_000
DEADLINE_S = 60


def fill(store: Store) -> int:
    """Commit until it fails; returns how many went in."""
    store.put_source(source_state())
    position = store.position()
    number = 0 if position is None else position.sequence
    for number in range(number, 100_000):  # noqa: B020
        store.append_rows(S, number * ROWS, numbered(number * ROWS, (number + 1) * ROWS))
        store.put_query(query_state(f"q{number}"))
        try:
            store.commit(Position(1, number + 1))
        except StoreFull:
            return number
    raise AssertionError("the disk is never full")


def check(store: Store, commits: int) -> None:
    assert store.position() == Position(1, commits)
    assert ordinals(store) == [(n * ROWS, (n + 1) * ROWS) for n in range(commits)]
    assert len(list(store.queries())) == commits


def put_again(store: Store, commits: int) -> None:
    """What failed comes again, cut in another way, with more of it."""
    first = commits * ROWS
    for cut in range(4):
        begin = first + cut * ROWS // 2
        store.append_rows(S, begin, numbered(begin, begin + ROWS // 2))
    store.put_query(query_state("again"))


def check_again(store: Store, commits: int) -> None:
    assert store.position() == Position(1, commits + 2)
    whole = [(n * ROWS, (n + 1) * ROWS) for n in range(commits)]
    halves = [(commits * ROWS + n * ROWS // 2, commits * ROWS + (n + 1) * ROWS // 2) for n in range(4)]
    assert ordinals(store) == whole + halves
    assert len(list(store.queries())) == commits + 1


LIMITED = """
import resource
import sys
from pathlib import Path
from engine.model.step import Position
from storage.store import Store
from tests.storage.full_test import check, check_again, fill, put_again
from tureen.errors import StoreFull

unlimited = resource.RLIM_INFINITY
with Store(Path(sys.argv[1])) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, unlimited))
    commits = fill(store)
    check(store, commits)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, unlimited))
    for _ in range(3):
        put_again(store, commits)
        try:
            store.commit(Position(1, commits + 2))
        except StoreFull:
            continue
        raise AssertionError("a commit went through")
    resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
    check(store, commits)
    put_again(store, commits)
    store.commit(Position(1, commits + 2))
    check_again(store, commits)
with Store(Path(sys.argv[1])) as store:
    check_again(store, commits)
print(commits)
"""


def test_a_write_that_fails_leaves_the_store_as_it_was_and_the_next_goes_through(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> object:
    """A file system of a few MB, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(options, capture_output=True).returncode
    ):
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_waited_out(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(24_000_000))
    with Store(small_disk / "shard") as store:
        commits = fill(store)
        assert commits > 0
        assert store.position() == Position(1, commits)
        for _ in range(2):
            put_again(store, commits)
            with pytest.raises(StoreFull, match="No space left") as refused:
                store.commit(Position(1, commits + 2))
            assert refused.value.hint
        filler.unlink()
        check(store, commits)
        put_again(store, commits)
        store.commit(Position(1, commits + 2))
        check_again(store, commits)
    with Store(small_disk / "shard") as store:
        check_again(store, commits)


def test_a_store_that_cannot_be_made_says_so(small_disk: Path) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    with pytest.raises(StoreFull):
        Store(small_disk / "shard")
    (small_disk / "filler").unlink()
    with Store(small_disk / "shard") as store:
        store.commit(Position(1, 1))
