"""A picture of a compacted history: how an answer went, hour by hour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson
from deltalake import DeltaTable

from storage.archive.layout import table_uri
from tureen.errors import PackageMissing

AIRPORTS = ("EWR", "JFK", "LGA")


@dataclass(frozen=True, slots=True)
class Version:
    """A row of an answer and the instants [begin, end) at which it stood; end None: it still does."""

    begin_ms: int
    end_ms: int | None
    origin: str
    flights: int
    delay: float | None


def history(archive: str, topic: str, query_id: str) -> list[Version]:
    """The rows that a query's answer ever had, by when they came, from the compacted history of its topic."""
    table = DeltaTable(table_uri(archive, "history", topic)).to_pyarrow_table(
        columns=["row", "copies", "valid_from_ms", "valid_to_ms"],
        filters=[("query_id", "=", query_id)],
    )
    found = []
    for entry in table.to_pylist():
        if entry["row"] is not None and entry["copies"]:
            row = orjson.loads(entry["row"])
            found.append(
                Version(
                    entry["valid_from_ms"], entry["valid_to_ms"], row["origin"], row["flights"], row["delay"]
                )
            )
    return sorted(found, key=lambda one: (one.begin_ms, one.origin))


def draw(versions: Iterable[Version], path: Path) -> None:
    """Flights and mean delay of the last day, by airport, as a PNG. Raises PackageMissing, OSError."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as missing:
        raise PackageMissing("matplotlib", hint="pip install matplotlib") from missing
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    of = {origin: [one for one in versions if one.origin == origin] for origin in AIRPORTS}
    figure, (delays, counts) = plt.subplots(2, 1, figsize=(10, 5.5), sharex=True, layout="constrained")
    for origin, rows in of.items():
        times = [datetime.fromtimestamp(one.begin_ms / 1_000, UTC) for one in rows]
        line = {"where": "post", "linewidth": 1.1, "label": origin}
        delays.step(times, [one.delay for one in rows], **line)
        counts.step(times, [one.flights for one in rows], **line)
    delays.set_ylabel("mean delay, minutes")
    counts.set_ylabel("flights")
    delays.set_title("Departures of the last 24 hours, as the standing query answered hour by hour")
    delays.legend(ncols=len(of), frameon=False, loc="upper left")
    for axes in (delays, counts):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    counts.set_ylim(bottom=0)
    figure.savefig(path, dpi=120)
    plt.close(figure)
