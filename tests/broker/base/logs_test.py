"""What of the libraries' lines is shown."""

from __future__ import annotations

import errno
import logging
import sys

import pytest
from aiokafka.errors import GroupCoordinatorNotAvailableError, NotLeaderForPartitionError

from broker.base.logs import COORDINATOR_S, OneLine, Unready

SAID = "Group Coordinator Request failed: %s"


def line(error: Exception, name: str = "aiokafka.consumer.group_coordinator") -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, __file__, 1, SAID, (error,), None)


def test_a_coordinator_is_waited_for_before_it_is_an_error() -> None:
    clock = [0.0]
    unready = Unready(lambda: clock[0])
    missing = line(GroupCoordinatorNotAvailableError())

    assert not unready.filter(missing)
    assert unready.filter(line(NotLeaderForPartitionError()))
    assert unready.filter(line(GroupCoordinatorNotAvailableError(), "elsewhere"))
    while clock[0] < COORDINATOR_S:
        clock[0] += COORDINATOR_S / 4
        assert not unready.filter(missing)
    clock[0] += 1
    assert unready.filter(missing)  # it persists
    clock[0] += 3 * COORDINATOR_S
    assert not unready.filter(missing)  # another time


@pytest.mark.parametrize(
    ("failed", "keeps"),
    [
        (
            Exception("IO error: No space left on device: While appending to file: /d/registry-0.db/25.sst"),
            False,
        ),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (OSError(errno.ECONNREFUSED, "Connection refused"), True),
        (ValueError("IO error: of ours"), True),
    ],
)
def test_a_full_disk_is_one_line_and_a_defect_has_its_place(failed: Exception, keeps: bool) -> None:
    try:
        raise failed
    except type(failed):
        record = logging.LogRecord("faust", logging.ERROR, __file__, 1, "Crashed", (), sys.exc_info())
    assert OneLine().filter(record)
    assert (record.exc_info is not None) == keeps
