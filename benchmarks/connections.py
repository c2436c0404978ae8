"""Connections on three network links: the rows of the experiments with update patterns.

A row of a link is a TCP connection: when it began, how long it lasted in seconds, its protocol, its bytes,
and its source and destination, hosts by number. Each link has one row a unit of time, which is 1,000 ms. A
row counts as 50 bytes, so that windows of 100 KB to 10 MB are 2,000 to 200,000 units.

The rows are drawn by a generator that the caller seeds, or read from a trace of connections
(:mod:`benchmarks.lbl_trace`). Drawn rows are 5% ftp, 15.8% telnet and 79.2% others. 800 sources are on all
links, 1,200 more on each. Users of ftp and telnet come and go: at unit t their source is a common one, number
(t div 400 + g) mod 800 of a random order, g geometric from 0 with mean 1. So a source has its connections
within some thousand units, and a window of at least some thousand units holds 400 p^2 pairs of connections a
unit, of two links, with the same source, where p is the protocol's share. Of the others 24% have common
sources and 76% the link's own, both by Zipf's law with exponent 0.8. A source has 10 destinations on each
link, used uniformly; no destination is on two links. Durations and bytes are log-normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.engine import Engine
from engine.model.batch import Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import BIGINT, DOUBLE, INTEGER, STRING, TIMESTAMP

LINKS = 3
UNIT_MS = 1_000
ROW_BYTES = 50
"""What a row counts as where a window is told in bytes."""

PROTOCOLS = ("ftp", "telnet", "smtp", "nntp", "ftp-data", "finger")
SHARES = (0.05, 0.158, 0.31, 0.24, 0.17, 0.072)
"""Share of each protocol in all rows."""
INTERACTIVE = 2
"""How many of the protocols, the first ones, are those of users who come and go."""

COMMON = 800
OWN = 1_200
SOURCES = COMMON + OWN * LINKS
DESTINATIONS = 10
STAY_UNITS = 400
COMMON_SHARE = 0.24
EXPONENT = 0.8

SCHEMA = Schema(
    (
        Field("duration", DOUBLE),
        Field("protocol", STRING),
        Field("bytes", BIGINT),
        Field("src", INTEGER),
        Field("dst", INTEGER),
        Field("ts", TIMESTAMP, nullable=False),
    )
)
COLUMNS = "duration DOUBLE, protocol STRING, bytes BIGINT, src INTEGER, dst INTEGER, ts TIMESTAMP NOT NULL"

IntMatrix = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Connections:
    """The rows of some links; row i of a link is of unit i.

    protocols: their names. protocol: int32[links, units], which of them each row has.
    duration: float64[links, units], seconds, NaN: unknown. bytes: int64[links, units], -1: unknown.
    src, dst: int32[links, units], hosts from 0 on.
    """

    protocols: tuple[str, ...]
    protocol: IntMatrix
    duration: npt.NDArray[np.float64]
    bytes: npt.NDArray[np.int64]
    src: IntMatrix
    dst: IntMatrix

    def __len__(self) -> int:
        """How many units there are."""
        return self.src.shape[1]

    def of(self, protocol: str) -> npt.NDArray[np.bool_]:
        """bool[links, units]: which rows have a protocol."""
        found: npt.NDArray[np.bool_] = self.protocol == self.protocols.index(protocol)
        return found

    def batch(self, link: int, first: int, stop: int) -> Batch:
        """The rows of a link (from 0) of units first to stop, from one partition."""
        units = np.arange(first, stop)
        duration, size = self.duration[link, first:stop], self.bytes[link, first:stop]
        timestamp = UNIT_MS * units
        return Batch(
            SCHEMA,
            (
                Column(DOUBLE, duration, _there(~np.isnan(duration))),
                Column(STRING, self.protocol[link, first:stop], None, pa.array(self.protocols, pa.string())),
                Column(BIGINT, size, _there(size >= 0)),
                Column(INTEGER, self.src[link, first:stop]),
                Column(INTEGER, self.dst[link, first:stop]),
                Column(TIMESTAMP, timestamp),
            ),
            np.zeros(stop - first, np.int32),
            units,
            timestamp,
        )


def make_connections(rng: np.random.Generator, units: int) -> Connections:
    """Rows of the three links over so many units."""
    shape = LINKS, units
    order = rng.permutation(COMMON)
    protocol = np.searchsorted(np.cumsum(SHARES[:-1]), rng.random(shape), side="right").astype(np.int32)
    stays = np.arange(units) // STAY_UNITS + rng.geometric(0.5, shape) - 1
    users = order[stays % COMMON]
    common = _zipf(rng, COMMON, shape)
    own = COMMON + OWN * np.arange(LINKS)[:, None] + _zipf(rng, OWN, shape)
    others = np.where(rng.random(shape) < COMMON_SHARE, common, own)
    src = np.where(protocol < INTERACTIVE, users, others)
    links = np.arange(LINKS)[:, None]
    dst = (src * LINKS + links) * DESTINATIONS + rng.integers(0, DESTINATIONS, shape)
    return Connections(
        PROTOCOLS,
        protocol,
        rng.lognormal(1.0, 1.5, shape),
        rng.lognormal(7.5, 1.8, shape).astype(np.int64),
        src.astype(np.int32),
        dst.astype(np.int32),
    )


def create(engine: Engine, retain_units: int) -> None:
    """The links as streams link1, link2, link3 of an engine, which retain so many units at least."""
    for link in range(1, LINKS + 1):
        engine.create(
            f"CREATE STREAM link{link} ({COLUMNS}) WITH (topic = 'link{link}', timestamp = 'ts') "
            f"RETAIN {UNIT_MS * retain_units} MILLISECONDS"
        )


def _zipf(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """0 .. n - 1, number i with a weight of (i + 1) ** -EXPONENT."""
    upto = np.cumsum(np.arange(1, n + 1) ** -EXPONENT)
    return np.searchsorted(upto / upto[-1], rng.random(shape), side="right").clip(max=n - 1)


def _there(valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_] | None:
    return None if valid.all() else valid
