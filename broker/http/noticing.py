"""What a text is told that is understood and hardly meant, at its registration and where it is checked."""

from __future__ import annotations

import contextlib

from broker.node.directory import Directory
from engine.language.notices import Notice, has_windows, notices, of_windows
from engine.language.query import CreateFromQuery, Query
from topics.wording import Wording
from tureen.errors import TureenError


def notices_of(directory: Directory, wording: Wording) -> tuple[Notice, ...]:
    """The notices of a text against what stands now. Any thread. O(text)."""
    found = notices(wording.sql)
    if not has_windows(wording.sql):
        return found
    with contextlib.suppress(TureenError):  # it waits for a stream
        statement = directory.parse(wording.sql, wording.parameters)
        query = statement.query if isinstance(statement, CreateFromQuery) else statement
        if isinstance(query, Query):
            retained = {name: stream.retain_ms for name, stream in directory.streams().items()}
            found += of_windows(wording.sql, query.scans(), retained)
    return found
