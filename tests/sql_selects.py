"""Random SELECTs over a stream: every clause, window, table function and kind of subquery that is served.

Typed from the start, so that the binder should accept every text. What a subquery's columns are is asked of
the binder itself; expressions come from :mod:`tests.sql_strategies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from engine.language.query import Query
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Derived, Field, Schema, Stream
from engine.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP, Kind, Type
from tests.sql_strategies import COMPARISONS, Writer, comparable, literal

NUMERIC_ONLY = ("SUM", "AVG", "STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP")
ANY_TYPE = ("COUNT", "MIN", "MAX", "FIRST", "LAST", "ARRAY_AGG")
SHARES = ("0", "0.1", "0.25", "0.5", "1")
OF_PAIRS = ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_COUNT", "REGR_AVGX", "REGR_SLOPE", "REGR_R2")
WITH_DISTINCT = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@dataclass(frozen=True)
class Item:
    """What stands behind FROM, its columns, and the BEGIN END clause that goes with it.

    whole: whether ``*`` is just these columns, no array among them. joined: whether it is several, each with
    a name of its own.
    """

    text: str
    schema: Schema
    at_end: str = ""
    whole: bool = True
    joined: bool = False


class Selects:
    """Writes SELECTs over one stream.

    instant: about where its rows are. expressions: who writes those. views: over the stream, to select from.
    """

    expressions: type[Writer] = Writer
    set_operations: Sequence[str] = (
        "UNION",
        "UNION ALL",
        "INTERSECT",
        "INTERSECT ALL",
        "EXCEPT",
        "EXCEPT ALL",
        "EXCEPT ALL ON (x0)",
    )

    def __init__(
        self, draw: st.DrawFn, stream: Stream, instant: int = 1_000, views: Sequence[Derived] = ()
    ) -> None:
        self.draw = draw
        self.stream = stream
        self.instant = instant
        self.views = views
        self.name = f'"{stream.name}"'

    def known(self) -> list[Stream | Derived]:
        """What a text may name."""
        return [self.stream, *self.views]

    def writer(self, schema: Schema | None = None) -> Writer:
        """A writer of expressions over these columns, or over the stream's."""
        return self.expressions(self.draw, schema or self.stream.schema, self.instant)

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    # --- windows ------------------------------------------------------------------------------------

    def brackets(self) -> str:
        """A window in brackets, or none."""
        if self.chance(3):
            return ""
        span = self.draw(st.sampled_from([500, 60, 20, 5, 1, 0]))
        count = self.draw(st.sampled_from([5, 40, 3, 2, 1]))
        slide = self.draw(st.sampled_from([1, 3, 10, 50]))
        writer = self.writer()
        return self.pick(
            "[UNBOUNDED]",
            "[NOW]",
            f"[RANGE {span} MILLISECONDS]",
            f"[RANGE INTERVAL '{span}' MILLISECOND]",
            f"[RANGE {span} MILLISECONDS SLIDE {slide} MILLISECONDS]",
            f"[RANGE {span} MILLISECONDS WHERE {writer.predicate(1)}]",
            f"[ROWS {count}]",
            f"[ROWS {count} WHERE {writer.predicate(1)}]",
            f"[PARTITION BY {self.keys()} ROWS {count}]",
        )

    def keys(self) -> str:
        """One or two of the stream's columns."""
        columns = [f'"{f.name}"' for f in self.stream.schema]
        return ", ".join(self.draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True)))

    def ends(self) -> str:
        """BEGIN e END e."""
        span = self.draw(st.sampled_from([0, 1, 5, 20, 60, 500]))
        back = self.draw(st.sampled_from([0, 1, 10, 40]))
        constant = self.instant + self.draw(st.integers(-80, 250))
        return self.pick(
            f"BEGIN {constant} END {constant + span}",
            f"BEGIN {constant} END NOW",
            f"BEGIN NOW - {span} MILLISECONDS END NOW",
            f"BEGIN(NOW - {span + back}) END(NOW - {back})",
            f"BEGIN NOW - INTERVAL '{span} milliseconds' END {constant}",
            f"BEGIN {literal(TIMESTAMP, constant)} END NOW - {back} MILLISECONDS",
        )

    # --- FROM ---------------------------------------------------------------------------------------

    def source(self, depth: int) -> Item:
        form = self.pick(
            "stream", "stream", "stream", "ends", "function", "function", "subquery", "selection", "ranked"
        )
        if self.views and self.chance(2):
            view = self.draw(st.sampled_from(self.views))
            window = self.pick("", "[RANGE 20 MILLISECONDS]", "[ROWS 3]") if view.is_stream else ""
            return self.named(f'"{view.name}" {window}', view.sql)
        if form == "ends":
            return Item(self.name, self.stream.schema, self.ends())
        if form == "function":
            return self.table_function()
        if form == "subquery" and depth > 0:
            return self.subquery(self.sets() if self.chance(3) else self.select(depth - 1))
        if form == "ranked" and depth > 0:
            return self.subquery(self.ranked() if self.chance(2) else self.over())
        if form == "selection" and depth > 0:
            writer = self.writer()
            window = self.pick("", "[RANGE 20 MILLISECONDS]", "[NOW]")
            text = f"(SELECT * FROM {self.name} WHERE {writer.predicate(1)}) {window}"
            return Item(text, self.stream.schema)
        return Item(f"{self.name} {self.brackets()}", self.stream.schema)

    def ranked(self) -> str:
        """Rows with their rank within a key, perhaps those at the top alone."""
        item = self.source(0)
        writer = self.writer(item.schema)
        by, order = (f'"{writer.pick(*item.schema).name}"' for _ in range(2))
        partition = self.pick("", f"PARTITION BY {by} ")
        direction = self.pick("", " DESC", " DESC NULLS LAST", " NULLS FIRST")
        number = f"ROW_NUMBER() OVER ({partition}ORDER BY {order}{direction}) AS rn"
        where = f"WHERE {writer.predicate(1)}" if self.chance(3) else ""
        inner = f"SELECT *, {number} FROM {item.text} {where} {item.at_end}"
        top = self.pick("", "WHERE rn <= 1", "WHERE rn < 3", "WHERE rn = 2")
        return f"SELECT * FROM ({inner.strip()}) AS ranks {top}".strip()

    def subquery(self, inner: str) -> Item:
        return self.named(f"({inner})", inner)

    def named(self, text: str, inner: str) -> Item:
        """An item that gives the columns of a SELECT, without those that nothing can be done with."""
        catalogue = {source.name: source for source in self.known()}
        query = parse(inner, catalogue, Limits())
        assert isinstance(query, Query)
        useful = [Field(name, type_) for name, type_ in query.columns if usable(type_)]
        return Item(text, Schema(tuple(useful)), whole=len(useful) == len(query.columns))

    # --- set operations -----------------------------------------------------------------------------

    def side(self) -> Item:
        """What a side of a set operation reads."""
        return self.source(int(self.chance(4)))

    def sets(self) -> str:
        """Two or three SELECTs with set operations between them, perhaps in brackets."""
        first = self.side()
        if not len(first.schema):
            return self.select(0)
        types = [self.writer().pick(*first.schema).type for _ in range(self.draw(st.integers(1, 3)))]
        text = self.side_over(first, types)
        for _ in range(self.draw(st.sampled_from([1, 1, 2]))):
            other = self.side_over(self.side(), types)
            if self.chance(3):
                other = f"({other} {self.pick(*self.set_operations)} {self.side_over(first, types)})"
            text = f"{text} {self.pick(*self.set_operations)} {other}"
        order = f" ORDER BY {self.pick('1', 'x0 DESC')}" if self.chance(4) else ""
        limit = f" {self.limit(order)}" if self.chance(5) else ""
        return f"{text}{order}{limit}".strip()

    def side_over(self, item: Item, types: Sequence[Type]) -> str:
        """A SELECT of columns of these types, or of some that they can be compared with."""
        writer = self.writer(item.schema)
        outputs = []
        for place, type_ in enumerate(types):
            fit = [f'"{f.name}"' for f in item.schema if comparable(f.type, type_)]
            plain = self.pick(*fit) if fit else f"CAST(NULL AS {type_})"
            text = writer.expression(type_, 1) if len(item.schema) and self.chance(4) else plain
            outputs.append(f"{text} AS x{place}")
        where = f"WHERE {writer.predicate(1)}" if len(item.schema) and self.chance(3) else ""
        parts = ["SELECT", ", ".join(outputs), "FROM", item.text, where, item.at_end]
        return " ".join(part for part in parts if part)

    # --- windows of time ----------------------------------------------------------------------------

    def group_window(self, size: int, slide: int, gap: int) -> str:
        """A window of time in GROUP BY."""
        return self.pick(
            f"TUMBLE(INTERVAL '{size}' MILLISECOND)",
            f"HOP(INTERVAL '{slide}' MILLISECOND, INTERVAL '{size}' MILLISECOND)",
            f"SESSION(INTERVAL '{gap}' MILLISECOND)",
        )

    def by_window(self) -> str:
        """Groups of a window of time, and of a key."""
        size, slide, gap = (self.draw(st.sampled_from([10, 25, 60])) for _ in range(3))
        writer = self.writer()
        window = self.group_window(max(size, slide), slide, gap)
        key = f'"{writer.pick(*self.stream.schema).name}"'
        where = f"WHERE {writer.predicate(1)}" if self.chance(2) else ""
        if self.chance(3):
            gap_ms, size_ms, slide_ms = (f"{ms} MILLISECONDS" for ms in (gap, max(size, slide), slide))
            window = self.pick(
                f"TUMBLING (SIZE {size_ms})",
                f"HOPPING (SIZE {size_ms}, ADVANCE BY {slide_ms})",
                f"SESSION ({gap_ms})",
            )
            outputs = f"window_start, window_end, {key} AS k, {self.aggregate(writer)} AS o0, COUNT(*) AS n"
            return f"SELECT {outputs} FROM {self.name} {where} WINDOW {window} GROUP BY k"
        outputs = f"{window} AS w, {key} AS k, {self.aggregate(writer)} AS o0, COUNT(*) AS n"
        return f"SELECT {outputs} FROM {self.name} {where} GROUP BY w, k"

    def sessions_of_some(self) -> str:
        """Sessions of the rows that a selection keeps."""
        gap = self.draw(st.sampled_from([5, 25, 60]))
        kept = f"SELECT * FROM {self.name} WHERE {self.writer().predicate(1)}"
        by = self.pick("", f" PARTITION BY {self.keys()}")
        return f"WITH kept AS ({kept}) SELECT * FROM SESSION(kept{by}, INTERVAL '{gap}' MILLISECOND)"

    def table_function(self) -> Item:
        slide, size, gap = (self.draw(st.sampled_from([1, 3, 10, 25, 60])) for _ in range(3))
        size = max(size, slide)
        fields = (Field("window_start", TIMESTAMP), Field("window_end", TIMESTAMP))
        ms = "' MILLISECOND"
        text = self.pick(
            f"TUMBLE({self.name}, INTERVAL '{size}{ms})",
            f"TUMBLE({self.name}, INTERVAL '{size}{ms}, INTERVAL '{min(slide, size - 1)}{ms})",
            f"HOP({self.name}, INTERVAL '{slide}{ms}, INTERVAL '{size}{ms})",
            f"HOP({self.name}, INTERVAL '{size}{ms}, INTERVAL '{slide}{ms})",
            f"HOP({self.name}, INTERVAL '{slide}{ms}, INTERVAL '{size}{ms}, INTERVAL '{slide - 1}{ms})",
            f"TABLE(HOP(TABLE {self.name}, INTERVAL '{slide}{ms}, INTERVAL '{size}{ms}))",
            f"SESSION({self.name}, INTERVAL '{gap}{ms})",
            f"SESSION({self.name} PARTITION BY {self.keys()}, INTERVAL '{gap}{ms})",
        )
        window = self.pick(
            "",
            "",
            "",
            "[RANGE 60 MILLISECONDS]",
            "[NOW]",
            "[RANGE 20 MILLISECONDS SLIDE 10 MILLISECONDS]",
            "[ROWS 4]",
            f"[PARTITION BY window_end, {self.keys()} ROWS 1]",
        )
        return Item(f"{text} {window}", Schema(self.stream.schema.fields + fields))

    def over(self) -> str:
        """Rows with values of window functions, at times those alone that a condition on one keeps."""
        item = self.source(0)
        writer = self.writer(item.schema)
        calls = [f"{self.window_function(writer)} AS w{n}" for n in range(self.draw(st.integers(1, 2)))]
        where = f"WHERE {writer.predicate(1)}" if self.chance(3) else ""
        qualify = "QUALIFY w0 IS NOT NULL" if self.chance(4) else ""
        columns = ", ".join(f'"{field.name}" AS x{n}' for n, field in enumerate(item.schema))
        head = f"SELECT {columns}, {', '.join(calls)} FROM {item.text}"
        return " ".join(part for part in (head, where, qualify, item.at_end) if part)

    def of_frame(self, writer: Writer) -> str:
        """An aggregate that has no order of its own."""
        call = self.aggregate(writer)
        return "COUNT(*)" if "ORDER BY" in call else call

    def window_function(self, writer: Writer) -> str:
        """A call of one over a random window."""
        column, by, key = (f'"{writer.pick(*writer.schema).name}"' for _ in range(3))
        partition = self.pick("", f"PARTITION BY {by}")
        direction = self.pick("", " DESC", " DESC NULLS LAST", " NULLS FIRST")
        order = self.pick("", f"ORDER BY {key}{direction}", f"ORDER BY {key}{direction}, {by}")
        if self.chance(2):
            call = self.pick(
                "RANK()",
                "DENSE_RANK()",
                "PERCENT_RANK()",
                "CUME_DIST()",
                "NTILE(3)",
                f"LAG({column})",
                f"LEAD({column}, 2, {column})",
                f"LAG({column}) IGNORE NULLS",
            )
            return f"{call} OVER ({partition} {order})"
        call = self.pick(
            f"FIRST_VALUE({column})",
            f"LAST_VALUE({column}) IGNORE NULLS",
            f"NTH_VALUE({column}, 2)",
            self.of_frame(writer),
            self.of_frame(writer),
        )
        unit = self.pick("ROWS", "RANGE", "GROUPS") if order else "ROWS"
        start, end = "CURRENT ROW", "CURRENT ROW"
        if unit != "RANGE" and self.chance(2):
            start = f"{self.draw(st.integers(0, 2))} PRECEDING"
            end = f"{self.draw(st.integers(0, 2))} FOLLOWING"
        start, end = self.pick(start, "UNBOUNDED PRECEDING"), self.pick(end, "UNBOUNDED FOLLOWING")
        exclude = self.pick("", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")
        frame = self.pick("", f"{unit} BETWEEN {start} AND {end}{exclude}")
        return f"{call} OVER ({partition} {order} {frame})"

    # --- SELECT -------------------------------------------------------------------------------------

    def statement(self, depth: int = 1) -> str:
        if self.chance(8):
            return self.by_window()
        if self.chance(12):
            return self.sessions_of_some()
        if self.chance(6):
            return self.sets()
        if self.chance(6):
            inner = self.select(0)
            item = self.named("sub", inner)
            if len(item.schema):
                return f"WITH sub AS ({inner}) {self.select_from(item, 0)}"
        return self.select(depth)

    def select(self, depth: int) -> str:
        item = self.source(depth)
        if not len(item.schema):
            return f"SELECT COUNT(*) AS n FROM {item.text} {item.at_end}".strip()
        return self.select_from(item, depth)

    def select_from(self, item: Item, depth: int) -> str:
        writer = self.writer(item.schema)
        form = self.pick("selection", "selection", "grouped", "grouped", "totals", "distinct")
        where = self.where(writer, depth)
        tail = ""
        if form == "grouped":
            outputs, tail = self.grouped(writer)
        elif form == "totals":
            outputs = [self.of_group(writer) for _ in range(self.draw(st.integers(1, 3)))]
            tail = self.having(writer)
        elif item.whole and self.chance(4):
            outputs = ["*"]
        else:
            outputs = [self.output(writer, depth) for _ in range(self.draw(st.integers(1, 3)))]
        head = ", ".join("*" if text == "*" else f"{text} AS o{n}" for n, text in enumerate(outputs))
        head = f"DISTINCT {head}" if form == "distinct" else head
        order = self.order(outputs) if self.chance(3) else ""
        limit = self.limit(order) if self.chance(4) else ""
        alias = "" if item.joined else "AS outside"
        parts = ["SELECT", head, "FROM", item.text, alias, where, tail, item.at_end, order, limit]
        return " ".join(part for part in parts if part)

    def output(self, writer: Writer, depth: int) -> str:
        """Mostly a column."""
        column = f'"{writer.pick(*writer.schema).name}"'
        return self.pick(column, column, writer.expression(writer.some_type(), depth))

    def where(self, writer: Writer, depth: int) -> str:
        conjuncts = []
        if self.chance(3):
            conjuncts.append(f"({writer.predicate(1)})")
        if depth > 0 and self.chance(3):
            conjuncts.append(self.membership(writer))
        return f"WHERE {' AND '.join(conjuncts)}" if conjuncts else ""

    def membership(self, writer: Writer) -> str:
        """A conjunct that asks whether a row is among those of another query over the stream."""
        field = writer.pick(*writer.schema)
        inner = self.writer()
        window, where = self.brackets(), self.pick("", f"WHERE {inner.predicate(1)}")
        negated = self.pick("", "", "NOT ")
        same = [f for f in self.stream.schema if f.type == field.type]
        if same and self.chance(2):
            column = f'"{inner.pick(*same).name}"'
            value = self.pick(column, f"MAX({column})") if ordered(field.type) else column
            return f'"{field.name}" {negated}IN (SELECT {value} FROM {self.name} {window} {where})'
        if same and self.chance(2):
            within = f'x."{inner.pick(*same).name}" = outside."{field.name}"'
            return f"{negated}EXISTS (SELECT 1 FROM {self.name} {window} AS x WHERE {within})"
        return f"{negated}EXISTS (SELECT 1 FROM {self.name} {window} {where})"

    # --- aggregates ---------------------------------------------------------------------------------

    def grouped(self, writer: Writer) -> tuple[list[str], str]:
        """Outputs, and GROUP BY with HAVING."""
        keys = []
        for _ in range(self.draw(st.integers(1, 2))):
            plain = f'"{writer.pick(*writer.schema).name}"'
            keys.append(writer.expression(writer.some_type(), 1) if self.chance(3) else plain)
        keys = list(dict.fromkeys(keys))
        calls = [self.of_group(writer) for _ in range(self.draw(st.integers(0, 3)))]
        places = ", ".join(str(n + 1) for n in range(len(keys)))
        plain = all(key.startswith('"') for key in keys)
        by = self.pick(", ".join(keys), places) if plain else places
        if plain and self.chance(3):
            by = self.grouping_sets(keys)
            calls.append(f"GROUPING({', '.join(keys)})")
        return [*keys, *calls], f"GROUP BY {by} {self.having(writer)}".strip()

    def grouping_sets(self, keys: Sequence[str]) -> str:
        """Several sets of these columns, which are in one of them at least."""
        all_of = ", ".join(keys)
        return self.pick(
            f"ROLLUP ({all_of})",
            f"CUBE ({all_of})",
            f"GROUPING SETS (({all_of}), ())",
            f"GROUPING SETS ({all_of})",
            f"GROUPING SETS (ROLLUP ({all_of}), ({all_of}))",
            f"{keys[0]}, ROLLUP ({all_of})",
        )

    def having(self, writer: Writer) -> str:
        if not self.chance(3):
            return ""
        count = f"COUNT(*) {self.pick(*COMPARISONS)} {self.draw(st.integers(0, 4))}"
        return self.pick(
            f"HAVING {count}",
            f"HAVING {self.value(writer)} IS NOT NULL",
            f"HAVING {count} OR {self.value(writer)} IS NULL",
        )

    def value(self, writer: Writer) -> str:
        """An aggregate with which more can be done, no array."""
        call = self.aggregate(writer)
        return "COUNT(*)" if call.startswith("ARRAY_AGG") else call

    def of_group(self, writer: Writer) -> str:
        """An aggregate, or what is computed of one."""
        call = self.aggregate(writer)
        if call.startswith("ARRAY_AGG"):
            return call
        return self.pick(call, call, call, f"({call}) IS NULL", f"CASE WHEN COUNT(*) > 1 THEN {call} END")

    def aggregate(self, writer: Writer) -> str:
        """A call of a random aggregate, over a column or an expression."""
        filtered = f" FILTER (WHERE {writer.predicate(1)})" if self.chance(5) else ""
        if self.chance(3):
            return self.of_all_values(writer) + filtered
        if self.chance(5):
            return f"COUNT(*){filtered}"
        if self.chance(8):
            return f"{self.pick('BOOL_AND', 'BOOL_OR')}({writer.predicate(1)}){filtered}"
        numbers = [f.type for f in writer.schema if f.type.is_numeric] or [BIGINT, DOUBLE]
        if self.chance(2):
            function, type_ = self.pick(*NUMERIC_ONLY), writer.pick(*numbers)
        else:
            function = self.pick(*ANY_TYPE)
            type_ = writer.pick(*[f.type for f in writer.schema])
            if function in ("MIN", "MAX") and not ordered(type_):
                function = "COUNT"
        argument = writer.column(type_) if self.chance(2) else None
        distinct = "DISTINCT " if function in WITH_DISTINCT and self.chance(3) else ""
        return f"{function}({distinct}{argument or writer.expression(type_, 1)}){filtered}"

    def of_all_values(self, writer: Writer) -> str:
        """An aggregate that needs all values: by their order, of bits, of pairs, or one after another."""
        numbers = [f.type for f in writer.schema if f.type.is_numeric] or [BIGINT, DOUBLE]
        number = writer.expression(writer.pick(*numbers), 1)
        type_ = writer.some_type()
        some, text = writer.expression(type_, 1), writer.expression(STRING, 1)
        by = f"{writer.expression(writer.some_type(), 1)}{self.pick('', ' DESC', ' NULLS FIRST')}"
        share, distinct = self.pick(*SHARES), self.pick("", "", "DISTINCT ")
        down = self.pick("", " DESC")
        return self.pick(
            f"MEDIAN({distinct}{number})",
            f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {number}{down})",
            f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {some}{down})",
            f"MODE({some})",
            f"STRING_AGG({distinct}{text}, '{self.pick('', '-')}')",
            f"STRING_AGG({text}, ',' ORDER BY {by})",
            f"FIRST({some} ORDER BY {by})",
            f"{self.pick('BIT_AND', 'BIT_OR', 'BIT_XOR')}({distinct}{writer.whole(1)})",
            f"{self.pick('ARG_MIN', 'ARG_MAX')}({some}, {number})",
            f"COUNT(DISTINCT {some}, {number})",
            f"{self.pick(*OF_PAIRS)}({number}, {writer.expression(DOUBLE, 1)})",
        )

    # --- the end ------------------------------------------------------------------------------------

    def order(self, outputs: list[str]) -> str:
        """By the places of some outputs, but for arrays."""
        choices = [n + 1 for n, text in enumerate(outputs) if not text.startswith("ARRAY_AGG")]
        if self.chance(4) and "COUNT(*)" in " ".join(outputs):
            return f"ORDER BY COUNT(*){self.pick('', ' DESC')}, {choices[0] if choices else 'COUNT(*)'}"
        if not choices:
            return ""
        places = self.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=2, unique=True))
        keys = [
            f"{place}{self.pick('', ' ASC', ' DESC')}{self.pick('', '', ' NULLS FIRST', ' NULLS LAST')}"
            for place in places
        ]
        return f"ORDER BY {', '.join(keys)}"

    def limit(self, order: str) -> str:
        """Behind an ORDER BY also with ties."""
        count = self.draw(st.sampled_from([0, 1, 2, 5]))
        if order and self.chance(2):
            offset = self.pick("", "", f"OFFSET {self.draw(st.integers(0, 3))} ROWS ")
            return f"{offset}FETCH FIRST {count} ROWS WITH TIES"
        return f"LIMIT {count}{self.pick('', f' OFFSET {self.draw(st.integers(0, 3))}')}"


def usable(type_: Type) -> bool:
    """Whether more can be done with a column of this type."""
    return type_.kind.value not in ("NULL", "ARRAY")


def ordered(type_: Type) -> bool:
    """Whether MIN and MAX take it."""
    return type_.kind is not Kind.BOOLEAN


def statement(draw: st.DrawFn, stream: Stream, instant: int = 1_000) -> str:
    """Any SELECT over a stream."""
    return Selects(draw, stream, instant).statement()


class WithSketches(Selects):
    """Approximate aggregates as well, which no other evaluator computes to the bit."""

    def aggregate(self, writer: Writer) -> str:
        if self.chance(3):
            if self.chance(2):
                return f"APPROX_COUNT_DISTINCT({writer.expression(writer.some_type(), 1)})"
            return f"APPROX_QUANTILE({writer.expression(DOUBLE, 1)}, {self.pick('0', '0.5', '0.9', '1')})"
        return super().aggregate(writer)


def with_sketches(draw: st.DrawFn, stream: Stream, instant: int = 1_000) -> str:
    """Any SELECT over a stream, approximate ones too."""
    return WithSketches(draw, stream, instant).statement()
