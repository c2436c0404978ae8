"""Arrays in files without a name: their values, what they take, and what is left of them."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from storage import spill_files
from storage.spill_files import PAGE, SpillFiles
from tests.spill import FILES
from tureen.errors import MIB, StoreFull

DTYPES = [np.bool_, np.int32, np.int64, np.float64, np.uint8]
SHAPES = st.one_of(st.integers(0, 3_000), st.tuples(st.integers(0, 700), st.integers(1, 3)))
ARRAYS = st.lists(st.sampled_from(DTYPES).flatmap(lambda dtype: arrays_of.arrays(dtype, SHAPES)), max_size=5)


@given(given_arrays=ARRAYS, step=st.sampled_from([1, 2, -1]))
def test_arrays_are_the_same_from_disk(given_arrays: list[np.ndarray], step: int) -> None:
    wanted = [array[::step] for array in given_arrays]
    written = FILES.write(wanted)
    FILES.page_out()
    for before, after in zip(wanted, written, strict=True):
        assert before.dtype == after.dtype
        assert before.shape == after.shape
        assert before.tobytes() == after.tobytes()
        assert after.flags.writeable or not after.size  # kernels are compiled for such arrays
        assert after.flags.aligned


def test_what_is_mapped_goes_with_its_last_array(tmp_path: Path) -> None:
    files = SpillFiles(tmp_path / "spill")
    first, second = files.write([np.arange(PAGE), np.ones(3, np.bool_)])
    (third,) = files.write([np.zeros(10)])
    assert files.nbytes == 8 * PAGE + PAGE + PAGE
    assert list((tmp_path / "spill").iterdir()) == []
    assert (tmp_path / "spill").stat().st_mode & 0o077 == 0
    kept = second[1:]
    del first, second
    gc.collect()
    assert files.nbytes == 8 * PAGE + PAGE + PAGE
    assert kept.tolist() == [True, True]
    del kept
    gc.collect()
    assert files.nbytes == PAGE
    assert third.tolist() == [0.0] * 10


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not take pages back when asked")
def test_pages_leave_memory_and_come_back_when_they_are_read(tmp_path: Path) -> None:
    files = SpillFiles(tmp_path)
    (array,) = files.write([np.arange(4 * MIB // 8)])
    int(array.sum())
    assert files.resident() == 4 * MIB
    files.page_out()
    assert files.resident() < MIB
    assert int(array.sum()) == len(array) * (len(array) - 1) // 2
    assert files.resident() == 4 * MIB


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFull, match="cannot be written"):
        SpillFiles(tmp_path / "file" / "spill").write([np.arange(3)])


def test_files_take_no_descriptors_and_are_so_many_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, before = SpillFiles(tmp_path), len(os.listdir("/dev/fd"))
    kept = [files.write([np.full(10, number)])[0] for number in range(50)]
    assert len(os.listdir("/dev/fd")) == before
    monkeypatch.setattr(spill_files, "FILES_MAX", 50)
    with pytest.raises(StoreFull, match="no more can be mapped"):
        files.write([np.zeros(1)])
    assert [int(array.sum()) for array in kept] == [10 * number for number in range(50)]
    del kept[:25]
    gc.collect()
    assert files.nbytes == 25 * PAGE
    assert files.write([np.ones(1)])[0].tolist() == [1.0]


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from storage.spill_files import SpillFiles
from tureen.errors import StoreFull

files = SpillFiles(Path(sys.argv[1]))
kept = files.write([np.arange(1_000)])
resource.setrlimit(getattr(resource, sys.argv[2]), (int(sys.argv[3]), resource.RLIM_INFINITY))
for _ in range(3):
    try:
        files.write([np.arange(100_000)])
    except StoreFull as full:
        assert full.hint
        continue
    raise AssertionError("it was written")
assert kept[0].tolist() == list(range(1_000))
print(files.nbytes)
"""


@pytest.mark.parametrize(("limit", "value"), [("RLIMIT_FSIZE", 500_000), ("RLIMIT_NOFILE", 3)])
def test_where_a_limit_is_reached_nothing_is_lost(tmp_path: Path, limit: str, value: int) -> None:
    hard = resource.getrlimit(getattr(resource, limit))[1]
    script = LIMITED.replace("resource.RLIM_INFINITY", str(hard))
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), limit, str(value)],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 2 * PAGE
