"""Random SELECTs over joins of streams and tables: every kind of join and of condition, windows of all sorts.

Each input is renamed in FROM, so that no two columns of a join are named alike, and everything that
:mod:`tests.sql_selects` writes over one item is written over the join as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import strategies as st

from engine.model.source import Derived, Field, Schema, Stream
from engine.model.types import Kind
from tests.sql_selects import Item, Selects
from tests.sql_strategies import COMPARISONS, Writer, comparable

KINDS = (
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT OUTER JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "SEMI JOIN",
    "ANTI JOIN",
)


class Joins(Selects):
    """Writes SELECTs over several sources.

    sources: by name, streams of one kind of time and tables. inputs_max: how many are joined.
    """

    def __init__(
        self, draw: st.DrawFn, sources: Mapping[str, Stream], instant: int = 1_000, inputs_max: int = 4
    ) -> None:
        super().__init__(draw, next(iter(sources.values())), instant)
        self.sources = sources
        self.inputs_max = inputs_max
        self.count = 0

    # --- FROM ---------------------------------------------------------------------------------------

    def source(self, depth: int) -> Item:
        form = self.pick("joins", "joins", "joins", "commas", "subquery", "nested")
        if form == "subquery" and depth > 0:
            return self.subquery(self.sets() if self.chance(3) else self.select(depth - 1))
        if form == "commas":
            return self.commas(depth)
        return self.joins(depth, brackets=form == "nested")

    def known(self) -> list[Stream | Derived]:
        return list(self.sources.values())

    def side(self) -> Item:
        return self.joins(0, brackets=False) if self.chance(4) else self.input(int(self.chance(3)))

    def input(self, depth: int) -> Item:
        """A source with a window of its own, or a query over it, with columns of its own names."""
        return self.over(self.sources[self.pick(*self.readable())]).item(depth, self.alias())

    def readable(self) -> list[str]:
        """Sources that may stand anywhere."""
        return [name for name, stream in self.sources.items() if stream.retroactive]

    def alias(self) -> str:
        self.count += 1
        return f"a{self.count}"

    def over(self, stream: Stream) -> Inputs:
        return Inputs(self.draw, stream, self.instant)

    def commas(self, depth: int) -> Item:
        """Inputs whose conditions WHERE gives, or nothing does."""
        left, right = self.input(depth), self.input(0)
        comma = self.pick(", ", " CROSS JOIN ")
        return Item(f"{left.text}{comma}{right.text}", both(left.schema, right.schema), joined=True)

    def joins(self, depth: int, brackets: bool) -> Item:
        first = self.input(depth)
        item = (self.versions() if self.chance(3) else None) or first
        wanted = self.draw(st.sampled_from([2, 2, 2, 3, 4]))
        for n in range(1, min(wanted, self.inputs_max)):
            if brackets and n == 1:
                inner = self.joins(0, brackets=False)
                right = Item(f"({inner.text})", inner.schema, joined=True)
            else:
                right = self.input(0)
            item = self.joined(item, right, self.pick(*KINDS[:2], *KINDS))
        return item

    def versions(self) -> Item | None:
        """A stream, or two, with the version of a table's row at each instant."""
        tables = [stream for stream in self.sources.values() if not stream.retroactive]
        streams = [stream for stream in self.sources.values() if not stream.is_table and stream.event_time]
        if not tables or not streams:
            return None
        table = self.draw(st.sampled_from(tables))
        left = self.over(self.draw(st.sampled_from(streams))).windowed(self.alias())
        compared = [left.schema]
        if self.chance(3):
            other = self.over(self.draw(st.sampled_from(streams))).windowed(self.alias())
            compared.append(other.schema)
            left = self.joined(left, other, self.pick("JOIN", "LEFT JOIN", "FULL JOIN"))
        right = self.over(table).windowed(self.alias())
        equal = [
            f"{self.draw(st.sampled_from(compared)).fields[place].name} = {b.name}"
            for place, (b, _) in enumerate(zip(right.schema, table.key, strict=False))
        ]
        asked = [self.conjunct(left.schema, right.schema)] if self.chance(3) else []
        kind = self.pick("JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN")
        schema = left.schema if kind in ("SEMI JOIN", "ANTI JOIN") else both(left.schema, right.schema)
        on = " AND ".join(equal + asked)
        return Item(f"{left.text} {kind} {right.text} ON {on}", schema, joined=True)

    def joined(self, left: Item, right: Item, kind: str) -> Item:
        asof = self.asof(left.schema, right.schema) if self.chance(8) else None
        if asof is not None:
            kind = self.pick("ASOF JOIN", "ASOF LEFT JOIN")
        on = asof or self.on(left.schema, right.schema)
        schema = left.schema if kind in ("SEMI JOIN", "ANTI JOIN") else both(left.schema, right.schema)
        return Item(f"{left.text} {kind} {right.text} ON {on}", schema, joined=True)

    # --- ON -----------------------------------------------------------------------------------------

    def on(self, left: Schema, right: Schema) -> str:
        """Mostly with an equality among the conjuncts."""
        conjuncts = [self.equal(left, right)] if not self.chance(4) else []
        more = self.draw(st.sampled_from([0, 0, 1, 2])) or int(not conjuncts)
        conjuncts += [self.conjunct(left, right) for _ in range(more)]
        return " AND ".join(conjuncts)

    def pair(self, left: Schema, right: Schema) -> tuple[Field, Field]:
        """A column of each side, that can be compared if there are such."""
        pairs = [(a, b) for a in left for b in right if comparable(a.type, b.type)]
        return self.draw(st.sampled_from(pairs or [(a, b) for a in left for b in right]))

    def equal(self, left: Schema, right: Schema) -> str:
        a, b = self.pair(left, right)
        if not comparable(a.type, b.type):
            return f"{a.name} IS NOT NULL"
        if a.type.is_integer and b.type.is_integer and self.chance(4):
            return self.pick(f"{a.name} % 3 = {b.name} % 3", f"{a.name} = CAST({b.name} AS BIGINT) + 1")
        return self.pick(f"{a.name} = {b.name}", f"{b.name} = {a.name}")

    def conjunct(self, left: Schema, right: Schema) -> str:
        form = self.pick("compare", "compare", "band", "either", "side", "any", "equal")
        a, b = self.pair(left, right)
        if form == "compare" and comparable(a.type, b.type):
            return f"{a.name} {self.pick(*COMPARISONS)} {b.name}"
        if form == "band":
            return self.band(left, right)
        if form == "either":
            return f"({self.conjunct(left, right)} OR {self.equal(left, right)})"
        if form == "side":
            return f"({self.writer(self.draw(st.sampled_from([left, right]))).predicate(1)})"
        if form == "any":
            return f"({self.writer(both(left, right)).predicate(1)})"
        return self.equal(left, right)

    def band(self, left: Schema, right: Schema) -> str:
        """Numbers, or instants, that lie near each other."""
        pairs = [(a, b) for a in left for b in right if measure(a) is not None and measure(b) is not None]
        if not pairs:
            return self.equal(left, right)
        a, b = (measure(field) for field in self.draw(st.sampled_from(pairs)))
        width = self.draw(st.sampled_from([0, 1, 5, 20]))
        high = self.pick("0", str(width))
        return self.pick(
            f"{a} BETWEEN {b} - {width} AND {b} + {high}",
            f"ABS({a} - {b}) <= {width}",
            f"{a} - {b} > {width}",
        )

    def asof(self, left: Schema, right: Schema) -> str | None:
        """Equal columns, if any, and instants that decide."""
        times = [
            (a, b)
            for a in left
            for b in right
            if a.type == b.type and a.type.kind in (Kind.TIMESTAMP, Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE)
        ]
        if not times:
            return None
        a, b = self.draw(st.sampled_from(times))
        op = self.pick(">=", ">", "<=", "<")
        latest = self.pick(f"{a.name} {op} {b.name}", f"{b.name} {op} {a.name}")
        equal = self.equal(left, right)
        return latest if self.chance(3) or " IS " in equal else f"{equal} AND {latest}"

    # --- SELECT -------------------------------------------------------------------------------------

    def statement(self, depth: int = 1) -> str:
        if self.chance(5):
            return self.sets()
        if self.chance(6):
            inner = self.select(0)
            item = self.named("sub", inner)
            if len(item.schema):
                return f"WITH sub AS ({inner}) {self.select_from(item, 0)}"
        return self.select(depth)

    def membership(self, writer: Writer) -> str:
        """A conjunct that asks whether a row is among those of another source."""
        item, negated = self.input(0), self.pick("", "", "NOT ")
        field = writer.pick(*writer.schema)
        same = [f for f in item.schema if f.type == field.type]
        if same and self.chance(2):
            value = writer.pick(*same).name
            return f'"{field.name}" {negated}IN (SELECT {value} FROM {item.text})'
        if same and self.chance(2):
            within = f'{writer.pick(*same).name} = "{field.name}"'
            return f"{negated}EXISTS (SELECT 1 FROM {item.text} WHERE {within})"
        return f"{negated}EXISTS (SELECT 1 FROM {item.text} WHERE {self.writer(item.schema).predicate(1)})"


class Inputs(Selects):
    """One input of a join: mostly a source with a window in brackets, a table as it is."""

    def item(self, depth: int, alias: str) -> Item:
        form = self.pick("window", "window", "window", "window", "function", "grouped", "select")
        if self.stream.is_table:
            form = self.pick("window", "window", "grouped")
        item = None
        if form == "function":
            item = self.table_function()
        elif form == "grouped" and depth > 0:
            key = f'"{self.writer().pick(*self.stream.schema).name}"'
            window = "" if self.stream.is_table else self.brackets()
            inner = f"SELECT {key}, COUNT(*) AS n FROM {self.name} {window} GROUP BY {key}"
            item = self.named(f"({inner})", inner)
        elif form == "select" and depth > 0:
            inner = self.select(0)
            item = self.named(f"({inner})", inner)
        if item is None or not item.whole or not len(item.schema) or "[PARTITION BY window" in item.text:
            return self.windowed(alias)
        fields = tuple(Field(f"{alias}c{n}", f.type) for n, f in enumerate(item.schema))
        return aliased(item.text, alias, Schema(fields))

    def brackets(self) -> str:
        """Mostly wide enough that rows of several sources are in their windows together."""
        wide = self.pick("", "[RANGE 90 MILLISECONDS]", "[ROWS 8]", "[UNBOUNDED]", "other", "other")
        return super().brackets() if wide == "other" else wide

    def windowed(self, alias: str) -> Item:
        """The source itself. What stands in its brackets speaks of the columns by their new names."""
        fields = tuple(Field(f"{alias}c{n}", f.type) for n, f in enumerate(self.stream.schema))
        renamed = replace(self.stream, schema=Schema(fields))
        window = "" if self.stream.is_table else Inputs(self.draw, renamed, self.instant).brackets()
        return aliased(f"{self.name} {window}", alias, renamed.schema)


def aliased(text: str, alias: str, schema: Schema) -> Item:
    names = ", ".join(f.name for f in schema)
    return Item(f"{text} AS {alias}({names})", schema, joined=True)


def both(left: Schema, right: Schema) -> Schema:
    return Schema(left.fields + right.fields)


def measure(field: Field) -> str | None:
    """A column as a number that no small width takes out of its type."""
    if field.type.kind is Kind.TIMESTAMP:
        return f"EPOCH_MS({field.name})"
    if field.type.kind is Kind.INTEGER:
        return f"CAST({field.name} AS BIGINT)"
    return field.name if field.type.kind is Kind.DOUBLE else None


def joining(draw: st.DrawFn, sources: Mapping[str, Stream], instant: int = 1_000) -> str:
    """Any SELECT over a join."""
    return Joins(draw, sources, instant).statement()
