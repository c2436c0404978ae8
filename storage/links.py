"""Finds out whether a commit is missing between others: its part of the log is gone, or the manifest was cut.

RocksDB reads what there is of its log, and does not miss a file that is not there. So each commit writes a
key of its own, a link, and when the store is opened all links must be there, from the oldest that is kept to
the last commit's. A commit can be missing only while it is in the log and not in tables. Those that are in
tables for certain need no link: that is when the log has begun ``GENERATIONS`` new files since, because a
buffer that is full waits until the one before is in tables.

Cost: one small key a commit; opening reads those of the last files of the log.
"""

from __future__ import annotations

import struct
from collections import deque

from storage.database import Changes, Database
from storage.frames import corrupt
from storage.keys import FIRST_LINK_KEY, LINK_PREFIX, POSITIONS, key_number, number_key

GENERATIONS = 4
_NUMBER = struct.Struct(">Q")


class Links:
    """Those of an open database. last: the number of its last commit; 0: none.

    Raises StoreCorrupt where one is missing.
    """

    def __init__(self, database: Database, last: int) -> None:
        self._database = database
        value = database.get(POSITIONS, FIRST_LINK_KEY)
        self._first = None if value is None else _NUMBER.unpack(value)[0]
        if self._first is not None:
            expected = self._first
            for key, _ in database.scan(POSITIONS, _key(self._first), _key(last + 1)):
                if key_number(key) != expected:
                    break
                expected += 1
            if expected != last + 1:
                raise corrupt(f"commit {expected}", f"it is missing, and commit {last} is not")
        self._in_tables = last  # a log that was read at the opening is in tables afterwards
        self._log = database.newest_log()
        self._switches: deque[int] = deque(maxlen=GENERATIONS)

    def put(self, changes: Changes, number: int) -> None:
        """Add the link of a commit to its changes; older ones that are needed no more go."""
        changes.put(POSITIONS, _key(number), b"")
        first = self._first
        if first is None:
            first = number
        elif first < self._in_tables:
            changes.delete_range(POSITIONS, _key(first), _key(self._in_tables))
            first = self._in_tables
        if first != self._first:
            changes.put(POSITIONS, FIRST_LINK_KEY, _NUMBER.pack(first))
            self._first = first

    def committed(self, number: int) -> None:
        """The commit of this number was written."""
        log = self._database.newest_log()
        if log != self._log:
            self._log = log
            if len(self._switches) == GENERATIONS:
                self._in_tables = self._switches[0]
            self._switches.append(number)


def _key(number: int) -> bytes:
    return LINK_PREFIX + number_key(number)
