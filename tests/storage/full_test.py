"""A disk that is full: the commit fails, the store is as it was, and goes on when there is space again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.model.step import Position
from storage.store import Store
from tests.storage.full import check, check_again, fill, put_again
from tureen.errors import StoreFull

DEADLINE_S = 60


LIMITED = """
import resource
import sys
from pathlib import Path
from engine.model.step import Position
from storage.store import Store
from tests.storage.full import check, check_again, fill, put_again
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
