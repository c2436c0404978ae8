"""Random SELECTs over streams of subqueries: windows over what a SELECT gives, ISTREAM, DSTREAM and RSTREAM
in FROM, joined with each other and with sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from engine.model.source import Field, Schema, Stream
from tests.sql_joins import Inputs, Joins, aliased
from tests.sql_selects import Item


class Streams(Joins):
    """Writes queries whose inputs in FROM are mostly streams of subqueries. depth_max: how deep they nest."""

    def __init__(
        self,
        draw: st.DrawFn,
        sources: Mapping[str, Stream],
        instant: int = 1_000,
        inputs_max: int = 2,
        depth_max: int = 2,
    ) -> None:
        kinds = {stream.event_time for stream in sources.values() if not stream.is_table}
        same = {name: stream for name, stream in sources.items() if not kinds or stream.event_time in kinds}
        super().__init__(draw, same, instant, inputs_max)
        self.depth_max = depth_max

    def source(self, depth: int) -> Item:
        form = self.pick("stream", "stream", "joins", "commas")
        if form == "stream":
            return self.input(depth)
        return self.commas(0) if form == "commas" else self.joins(0, brackets=False)

    def input(self, depth: int) -> Item:
        if self.depth_max and not self.chance(4):
            found = self.changes()
            if found is not None:
                return found
        return super().input(depth)

    def changes(self) -> Item | None:
        """A subquery with a window behind it, or a stream operator around it; None where its columns will not
        do.
        """
        deeper = self.depth_max - 1 if self.chance(5) else 0
        within = Streams(self.draw, self.sources, self.instant, self.inputs_max, deeper)
        within.count = self.count
        inner = within.select(0)
        self.count = within.count
        operators = ("", "", "ISTREAM", "DSTREAM") if deeper else ("", "", "ISTREAM", "DSTREAM", "RSTREAM")
        operator = self.pick(*operators)
        item = self.named(f"{operator}({inner})", inner)
        if not item.whole or not len(item.schema):
            return None
        alias = self.alias()
        fields = tuple(Field(f"{alias}c{n}", f.type) for n, f in enumerate(item.schema))
        renamed = replace(self.stream, schema=Schema(fields))
        window = Inputs(self.draw, renamed, self.instant).brackets()
        if not self.chance(4):
            return aliased(f"{operator}({inner}) {window}", alias, renamed.schema)
        sample = self.pick("SAMPLE(50)", "SAMPLE(20, 7)", "SAMPLE(100)")
        return aliased(f"{operator}({inner}) {window} {sample}", alias, renamed.schema)


def streaming(draw: st.DrawFn, sources: Mapping[str, Stream], instant: int = 1_000) -> str:
    """Any SELECT over streams of subqueries."""
    return Streams(draw, sources, instant).statement()
