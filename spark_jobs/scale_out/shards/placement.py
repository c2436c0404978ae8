"""Where a query is answered: in parts (:mod:`engine.changes.parts`), or in the shard that has all rows."""

from __future__ import annotations

from typing import Literal

from engine.changes.parts import Streams, why_not_in_parts
from engine.language.query import Query
from spark_jobs.scale_out.shards.layout import Layout
from tureen.errors import NotSupported

Place = Literal["parts", "lane"]


def place(query: Query, streams: Streams, layout: Layout) -> Place:
    """Where a query is answered. streams: all that it reads.

    Raises NotSupported: it needs all rows of a stream that the whole shard does not have; there are no
    shards.
    """
    if not layout.shards:
        raise NotSupported(
            "this scale-out has no shards, and the query needs more than single rows",
            hint="start one with --shards, and a --key for each stream to partition by",
            line=1,
            column=1,
        )
    reason = why_not_in_parts(query, streams, layout.keys)
    if reason is None:
        return "parts"
    cut_only = [name for name in query.sources if not layout.whole_shard_has(streams[name])]
    if not cut_only:
        return "lane"
    options = " ".join(f"--whole {name}" for name in cut_only)
    keys = ", ".join(f"{name} by {layout.keys[name]}" for name in cut_only)
    raise NotSupported(
        f"shards cannot answer this each for itself: {reason}",
        hint=f"rows are cut: {keys}. Begin a scale-out with {options}, and one shard also has all rows, as "
        "far as one machine goes; or let a broker answer it",
        line=1,
        column=1,
    )
