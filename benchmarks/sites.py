"""A table of the sites that sources belong to, which changes as rows of the links come."""

from __future__ import annotations

import numpy as np

from benchmarks.connections import UNIT_MS, Connections
from engine.engine import Engine
from engine.model.batch import Batch, Column, versions
from engine.model.source import Stream
from engine.model.types import INTEGER, TIMESTAMP

SITES = 50
EVERY_UNITS = 50
"""A source moves to another site once in so many units."""

RETROACTIVE, NON_RETROACTIVE = "sites", "sites_then"


class Sites:
    """Versions of the table, in the order of their instants; at first each source has one. One owner."""

    def __init__(self, engine: Engine, name: str, rows: Connections) -> None:
        """name: RETROACTIVE or NON_RETROACTIVE, which says what the table is."""
        self.name = name
        self._sources = 1 + int(rows.src.max(initial=0))
        self._rng = np.random.default_rng(self._sources)
        self._versions = 0
        ending = "" if name == RETROACTIVE else " NON RETROACTIVE"
        engine.create(
            f"CREATE TABLE {name} (src INTEGER PRIMARY KEY, site INTEGER, since TIMESTAMP NOT NULL) "
            f"WITH (topic = '{name}', timestamp = 'since') RETAIN {UNIT_MS * len(rows)} MILLISECONDS{ending}"
        )
        stream = engine.catalogue[name]
        assert isinstance(stream, Stream)
        self._stream = stream

    def batch(self, first: int, stop: int) -> Batch:
        """The versions of units first to stop; one at the last, so that NOW comes as far as the links'."""
        units = np.append(np.arange(first, stop - 1, EVERY_UNITS), stop - 1)
        src = self._rng.integers(0, self._sources, len(units))
        if first == 0:
            units = np.append(np.zeros(self._sources, np.int64), units)
            src = np.append(np.arange(self._sources), src)
        n = len(units)
        site = self._rng.integers(0, SITES, n, np.int32)
        since = UNIT_MS * units
        offset = np.arange(self._versions, self._versions + n)
        self._versions += n
        columns = (Column(INTEGER, src.astype(np.int32)), Column(INTEGER, site), Column(TIMESTAMP, since))
        rows = Batch(self._stream.schema, columns, np.zeros(n, np.int32), offset, since)
        return versions(self._stream, rows)
