"""Reads traces of wide-area connections in the format of the Internet Traffic Archive, such as LBL-CONN-7.

LBL-CONN-7 has the 606,497 connections between the Lawrence Berkeley Laboratory and the rest of the world in
thirty days of 1993 (V. Paxson and S. Floyd, 1995; https://ita.ee.lbl.gov/html/contrib/LBL-CONN-7.html). A
line is a connection, in columns apart by blanks: timestamp, duration, protocol, bytes from the originator,
bytes from the responder, local host, remote host, state, and perhaps flags; ``?`` stands for what is unknown.
The flag L says that the local host began the connection: then it is the source, otherwise the remote host is.

Rows are cut into links by their destination: the destinations, those with most connections first, go each to
the link that has fewest rows so far. On each link rows keep their order and are numbered anew, one a unit.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.connections import LINKS, Connections

COLUMNS_MIN = 8
UNKNOWN = "?"


def read_trace(path: Path) -> Connections:
    """The connections of a trace, which may be compressed by gzip; links are as long as the shortest one.

    Raises ValueError for a line that is no connection, with its number.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="ascii", errors="replace") as lines:
        return parse(lines)


def parse(lines: Iterable[str]) -> Connections:
    """The connections of the lines of a trace."""
    began: list[float] = []
    duration: list[float] = []
    size: list[int] = []
    protocols: dict[str, int] = {}
    protocol: list[int] = []
    hosts: dict[str, int] = {}
    src: list[int] = []
    dst: list[int] = []
    for fields in _fields(lines):
        began.append(float(fields[0]))
        duration.append(float("nan") if fields[1] == UNKNOWN else float(fields[1]))
        protocol.append(protocols.setdefault(fields[2], len(protocols)))
        sent = [int(each) for each in fields[3:5] if each != UNKNOWN]
        size.append(sum(sent) if sent else -1)
        # local hosts are numbers that stand for addresses, remote ones are addresses: they never meet
        local, remote = (hosts.setdefault(each, len(hosts)) for each in (f"local {fields[5]}", fields[6]))
        is_ours = any("L" in flags for flags in fields[COLUMNS_MIN:])
        src.append(local if is_ours else remote)
        dst.append(remote if is_ours else local)
    order = np.argsort(np.array(began), kind="stable")
    links = _links(np.array(dst, np.int64)[order], order)
    return Connections(
        tuple(protocols),
        np.array(protocol, np.int32)[links],
        np.array(duration, np.float64)[links],
        np.array(size, np.int64)[links],
        np.array(src, np.int32)[links],
        np.array(dst, np.int32)[links],
    )


def _fields(lines: Iterable[str]) -> Iterator[list[str]]:
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        try:
            float(fields[0])
            [float(each) for each in (fields[1], *fields[3:5]) if each != UNKNOWN]
            if len(fields) < COLUMNS_MIN:
                raise ValueError
        except (ValueError, IndexError):
            raise ValueError(f"line {number} is no connection: {line.strip()!r}") from None
        yield fields


def _links(dst: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[links, units]: the rows of each link. dst: of each row in order of time; rows: their places."""
    counts = np.bincount(dst)
    link_of = np.zeros(len(counts), np.int64)
    held = [0] * LINKS
    for host in np.argsort(-counts, kind="stable").tolist():
        link = held.index(min(held))
        link_of[host] = link
        held[link] += int(counts[host])
    links = link_of[dst]
    units = int(np.bincount(links, minlength=LINKS).min(initial=len(rows)))
    return np.stack([rows[links == link][:units] for link in range(LINKS)])
