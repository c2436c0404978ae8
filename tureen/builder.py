"""Queries put together call by call, as DataFrames are; what comes out is a text.

    >>> busy = (
    ...     stream("orders").where("price > 50").window(range="30 minutes")
    ...     .group_by("city").agg(orders="COUNT(*)").order_by("orders DESC").limit(3)
    ... )
    >>> print(busy.sql())
    SELECT city, COUNT(*) AS orders FROM orders [RANGE 30 MINUTES] WHERE price > 50 GROUP BY city ORDER BY orders DESC LIMIT 3

Conditions and expressions are SQL; names that are given as names (of streams, of results) are exact and quoted
where they must be, and values for ``?`` become constants. Each call is about what the calls before it give, so
a condition on groups makes a query around them; only a window is always that of the stream itself:

    >>> print(busy.where("orders > ?", 9).sql()[:34])
    SELECT * FROM (SELECT city, COUNT(

A query is a value: a call returns another one and leaves this one as it is. Nothing is asked of a broker, which
says whether columns exist. Every call costs O(what the query holds).
"""  # noqa: E501

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, get_args

from tureen.errors import NotSupported, ParametersRefused, SyntaxRefused
from tureen.literals import Piece, duration, filled, literal, name

Format = Literal["upsert", "debezium", "diff"]
Encoding = Literal["json", "avro", "json_schema", "protobuf"]
Order = Literal["desc", "asc", "weighted"]
How = Literal["inner", "left", "right", "full", "semi", "anti", "cross", "asof", "asof left"]

_JOINS: dict[str, str] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
    "cross": "CROSS JOIN",
    "asof": "ASOF JOIN",
    "asof left": "ASOF LEFT JOIN",
}
_WORD = re.compile(r"\w+")


def stream(called: str) -> Select:
    """All rows of a stream, a table or a view of this very name.

    >>> stream("Weather").sql()
    'SELECT * FROM "Weather"'
    """
    return Select(name(called), name(called))


@dataclass(frozen=True, slots=True, repr=False)
class Select:
    """A query that is being put together; begin one by :func:`stream`. Usable wherever a text is registered.

    One method a clause. Methods raise QueryError for what can be seen to be no piece of a query.
    """

    origin: str
    known_as: str
    scope: str = ""
    joins: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    """(expression, the same as it is selected)"""
    aggregates: tuple[str, ...] = ()
    having_: tuple[str, ...] = ()
    only_once: bool = False
    orders: tuple[str, ...] = ()
    bound: str = ""
    told: str = ""
    """The stream operator around the whole."""
    preferred: str = ""
    emitted: str = ""

    # --- what is read -----------------------------------------------------------------------------

    def alias(self, called: str) -> Select:
        """Another name for it, by which its columns are told apart in joins.

        >>> stream("orders").alias("o").sql()
        'SELECT * FROM orders AS o'
        """
        whole = self._around() if self._shaped or self.joins or self.conditions else self
        return replace(whole, known_as=name(called))

    def window(
        self,
        text: str | None = None,
        *,
        range: str | timedelta | None = None,  # noqa: A002
        rows: int | None = None,
        slide: str | timedelta | None = None,
        partition_by: str | None = None,
    ) -> Select:
        """Which rows of the stream count: those of a length of time, or the last so many.

        >>> print(stream("orders").window(range="1 hour", slide="5 minutes").sql())
        SELECT * FROM orders [RANGE 1 HOUR SLIDE 5 MINUTES]
        >>> print(stream("orders").window(rows=3, partition_by="city").sql())
        SELECT * FROM orders [PARTITION BY city ROWS 3]
        >>> print(stream("orders").window("UNBOUNDED SLIDE 1 HOUR").sql())
        SELECT * FROM orders [UNBOUNDED SLIDE 1 HOUR]
        """
        if self.joins:
            raise NotSupported(
                "after a join it is ambiguous which source the window belongs to",
                hint="call window() before join()",
            )
        if sum(one is not None for one in (text, range, rows)) != 1:
            raise SyntaxRefused("a window is one of a text, range= and rows=")
        if text is not None:
            said = filled(text)
        else:
            said = f"RANGE {duration(range)}" if range is not None else f"ROWS {_count(rows)}"
        if slide is not None:
            said += f" SLIDE {duration(slide)}"
        if partition_by is not None:
            said = f"PARTITION BY {filled(partition_by)} {said}"
        return replace(self, scope=f" [{said}]")

    def tumble(self, size: str | timedelta) -> Select:
        """Windows one after another: rows with ``window_start`` and ``window_end``.

        >>> print(stream("orders").tumble("1 hour").group_by("window_start").agg(n="COUNT(*)").sql())
        SELECT window_start, COUNT(*) AS n FROM TUMBLE(orders, 1 HOUR) AS orders GROUP BY window_start
        """
        return self._cut("TUMBLE", duration(size))

    def hop(self, every: str | timedelta, size: str | timedelta) -> Select:
        """Windows of this size, one every so often: rows with ``window_start`` and ``window_end``."""
        return self._cut("HOP", f"{duration(every)}, {duration(size)}")

    def session(self, gap: str | timedelta, partition_by: str | None = None) -> Select:
        """Windows as long as rows follow each other within the gap, for each key or for all.

        >>> print(stream("clicks").session("5 minutes", partition_by="visitor").sql())
        SELECT * FROM SESSION(clicks PARTITION BY visitor, 5 MINUTES) AS clicks
        """
        key = "" if partition_by is None else f" PARTITION BY {filled(partition_by)}"
        return self._cut("SESSION", duration(gap), key)

    def join(
        self, other: Select | str, on: str | list[str] | tuple[str, ...] | None = None, *, how: How = "inner"
    ) -> Select:
        """This beside another one. on: a condition, or the names of columns that are equal in both.

        >>> print(stream("orders").join("customers", on="customer").sql())
        SELECT * FROM orders JOIN customers USING (customer)
        >>> o, c = stream("orders").window(range="1 hour").alias("o"), stream("customers").alias("c")
        >>> print(o.join(c.where("vip"), on="o.customer = c.id", how="left").select("o.price", "c.city").sql())
        SELECT o.price, c.city FROM orders [RANGE 1 HOUR] AS o LEFT JOIN (SELECT * FROM customers AS c WHERE vip) AS c ON o.customer = c.id
        """  # noqa: E501
        if how not in _JOINS:
            raise NotSupported(f"there is no join {how!r}", hint=f"joins are {', '.join(_JOINS)}")
        if (on is None) != (how == "cross"):
            raise SyntaxRefused("a cross join has no on=, all others have one")
        right = stream(other) if isinstance(other, str) else other._within()
        left = self._around() if self._shaped or self.conditions else self
        if right.known_as in (left.known_as, *(known_as for _, known_as in left.joins)):
            raise SyntaxRefused(
                f"two sources of this query are called {right.known_as}", hint="give one of them an alias()"
            )
        bare = not (right._shaped or right.joins or right.conditions)
        source = right._source() if bare else f"({right._select()}) AS {right.known_as}"
        return replace(left, joins=(*left.joins, (f"{_JOINS[how]} {source}{_on(on)}", right.known_as)))

    # --- what is made of it -----------------------------------------------------------------------

    def where(self, condition: str | None = None, /, *values: Any, **equal: Any) -> Select:
        """Rows for which a condition is true, and whose columns equal these values (a list: one of them).

        A value is a constant, a list of some for IN, or a query of its own.

        >>> print(stream("orders").where("price > ? OR city IN ?", 50, ["Bern", "Zug"]).where(vip=True).sql())
        SELECT * FROM orders WHERE (price > 50 OR city IN ('Bern', 'Zug')) AND (vip = TRUE)
        >>> late = stream("flights").where("delay > 60").select("dest")
        >>> print(stream("flights").where("dest IN ?", late).where(gate=None).sql())
        SELECT * FROM flights WHERE (dest IN (SELECT dest FROM flights WHERE delay > 60)) AND (gate IS NULL)
        """
        told = [] if condition is None else [_filled(condition, values)]
        told += [_equals(column, value) for column, value in equal.items()]
        if not told:
            raise SyntaxRefused("where() has no condition")
        inner = self._around() if self._shaped else self
        return replace(inner, conditions=(*inner.conditions, *told))

    def select(self, *expressions: str, **named: str) -> Select:
        """Columns and expressions, the latter by name.

        >>> print(stream("orders").select("id", total="price * 1.08").sql())
        SELECT id, price * 1.08 AS total FROM orders
        """
        inner = self._around() if self._shaped else self
        return replace(inner, columns=tuple(said for _, said in _items(expressions, named)))

    def group_by(self, *expressions: str, **named: str) -> Select:
        """Groups of rows that agree in these; :meth:`agg` says what is told of each.

        >>> print(stream("orders").group_by(dear="price > 50").agg(n="COUNT(*)").having("n > ?", 9).sql())
        SELECT price > 50 AS dear, COUNT(*) AS n FROM orders GROUP BY price > 50 HAVING n > 9
        """
        inner = self._around() if self._shaped else self
        return replace(inner, groups=_items(expressions, named))

    def agg(self, *expressions: str, **named: str) -> Select:
        """What is told of each group, or of all rows, behind what they are grouped by.

        >>> print(stream("orders").agg(n="COUNT(*)", mean="AVG(price)").sql())
        SELECT COUNT(*) AS n, AVG(price) AS mean FROM orders
        """
        grouped = not (self.columns or self.only_once or self.orders or self.bound)
        inner = self if grouped else self._around()
        return replace(
            inner, aggregates=inner.aggregates + tuple(said for _, said in _items(expressions, named))
        )

    def having(self, condition: str, *values: Any) -> Select:
        """Groups for which a condition on aggregates is true; :meth:`where` behind agg() names results."""
        if not (self.aggregates or self.groups):
            raise SyntaxRefused("having() is about groups", hint="call group_by() before, or where()")
        if self.bound:
            raise SyntaxRefused("having() comes before limit()")
        return replace(self, having_=(*self.having_, _filled(condition, values)))

    def distinct(self) -> Select:
        """Equal rows once."""
        inner = self._around() if self.bound else self
        return replace(inner, only_once=True)

    # --- with another query -------------------------------------------------------------------------

    def union(self, other: Select | str, *, all: bool = False) -> Select:  # noqa: A002
        """The rows of both, equal ones once; all: as often as they are on both sides together.

        >>> print(stream("orders").select("city").union(stream("returns").select("city")).sql())
        SELECT * FROM (SELECT city FROM orders UNION SELECT city FROM returns) AS orders
        """
        return self._beside("UNION", other, all)

    def intersect(self, other: Select | str, *, all: bool = False) -> Select:  # noqa: A002
        """Rows that both have, once; all: as often as both have them."""
        return self._beside("INTERSECT", other, all)

    def except_(
        self,
        other: Select | str,
        *,
        all: bool = False,  # noqa: A002
        on: str | list[str] | tuple[str, ...] = (),
    ) -> Select:
        """Rows that the other has not, once; all: each as much oftener as it is here than there.

        on: with all, names of columns of both that are compared, of rows that stay whole.

        >>> gone = stream("orders").window(range="6 hours").except_("returns", all=True, on="id")
        >>> print(gone.limit(3).sql().partition("(")[2])
        SELECT * FROM orders [RANGE 6 HOURS] EXCEPT ALL ON (id) SELECT * FROM returns) AS orders LIMIT 3
        """
        names = [on] if isinstance(on, str) else list(on)
        if names and not all:
            raise SyntaxRefused(
                "EXCEPT by some columns is EXCEPT ALL", hint="write all=True, or leave on out"
            )
        word = f"EXCEPT ALL ON ({', '.join(map(name, names))})" if names else "EXCEPT"
        return self._beside(word, other, all and not names)

    def _beside(self, word: str, other: Select | str, copies: bool) -> Select:
        right = stream(other) if isinstance(other, str) else other
        text = f"{self._side()} {word}{' ALL' if copies else ''} {right._within()._side()}"
        return Select(
            f"({text})", self.known_as, told=self.told, preferred=self.preferred, emitted=self.emitted
        )

    def _side(self) -> str:
        """As a side of a set operation: in brackets where its end would be about both."""
        return f"({self._select()})" if self.orders or self.bound else self._select()

    # --- the end ------------------------------------------------------------------------------------

    def order_by(self, *expressions: str) -> Select:
        """The order of the answer; the first call counts most.

        >>> print(stream("orders").order_by("price DESC", "id").limit(2, offset=4).sql())
        SELECT * FROM orders ORDER BY price DESC, id LIMIT 2 OFFSET 4
        """
        inner = self._around() if self.bound else self
        orders = tuple(said for _, said in _items(expressions, {}))
        return replace(inner, orders=inner.orders + orders)

    def limit(self, rows: int, offset: int = 0) -> Select:
        """The first rows of the answer, behind some that are left out."""
        inner = self._around() if self.bound else self
        skipped = f" OFFSET {_count(offset)}" if offset else ""
        return replace(inner, bound=f" LIMIT {_count(rows)}{skipped}")

    def prefer(
        self,
        *priorities: str,
        order: Order = "desc",
        fade: float | None = None,
        window: str | timedelta | None = None,
    ) -> Select:
        """Which part of the answer is wanted first, where there is not time for all of it: a priority for
        each source, over estimates of summaries. Like :meth:`istream`, this is about the whole query.

        >>> print(stream("orders").prefer("SUMMARY.Estimate.Count(city)", fade=0.8, window="1 minute").sql())
        SELECT * FROM orders WITH PREFERENCE desc SUMMARY.Estimate.Count(city) FADE FACTOR 0.8 WINDOW 1 MINUTE
        """
        if not priorities:
            raise SyntaxRefused("there is no priority", hint="write one for each source")
        if order not in get_args(Order):
            raise SyntaxRefused(f"{order!r} is no order of preference", hint=", ".join(get_args(Order)))
        said = f" WITH PREFERENCE {order} {', '.join(map(filled, priorities))}"
        if fade is not None:
            said += f" FADE FACTOR {literal(fade)}"
        if window is not None:
            said += f" WINDOW {duration(window)}"
        return replace(self, preferred=said)

    # --- what becomes of its changes ----------------------------------------------------------------

    def istream(self) -> Select:
        """Tell, of the query's changes, the rows that come.

        Such calls, and :meth:`emit_changes`, are about the whole query, whatever is called after them.

        >>> print(stream("orders").istream().where("price > 50").sql())
        ISTREAM (SELECT * FROM orders WHERE price > 50)
        """
        return replace(self, told="ISTREAM")

    def dstream(self) -> Select:
        """Tell, of the query's changes, the rows that go."""
        return replace(self, told="DSTREAM")

    def rstream(self) -> Select:
        """Tell the whole answer in place of changes, whenever a row comes or goes."""
        return replace(self, told="RSTREAM")

    def emit_changes(
        self,
        into: str | None = None,
        *,
        on_window_close: bool = False,
        format: Format | None = None,  # noqa: A002
        encoding: Encoding | None = None,
        snapshot: bool | None = None,
    ) -> Select:
        """Its changes are written to a topic: one of this name among the results, or one that all share.

        on_window_close: the broker refuses it unless rows come as windows close, once and for good. snapshot:
        whether the answer as it is at first is written, too. What is left out is as the broker has it.

        >>> counts = stream("orders").tumble("1 hour").group_by("window_end", "city").agg(n="COUNT(*)")
        >>> print(counts.emit_changes("hourly", on_window_close=True).sql().partition(" BY ")[2])
        window_end, city EMIT CHANGES INTO hourly ON WINDOW CLOSE
        >>> print(stream("orders").window(rows=9).emit_changes(format="diff", snapshot=False).sql())
        SELECT * FROM orders [ROWS 9] EMIT CHANGES WITH (format = 'diff', snapshot = FALSE)
        """
        said = " EMIT CHANGES" if into is None else f" EMIT CHANGES INTO {name(into)}"
        if on_window_close:
            said += " ON WINDOW CLOSE"
        options = {"format": format, "encoding": encoding, "snapshot": snapshot}
        given = [f"{key} = {literal(value)}" for key, value in options.items() if value is not None]
        return replace(self, emitted=said + (f" WITH ({', '.join(given)})" if given else ""))

    # --- the text -----------------------------------------------------------------------------------

    def sql(self) -> str:
        """The text, on one line."""
        text = self._select()
        return (f"{self.told} ({text})" if self.told else text) + self.preferred + self.emitted

    def __str__(self) -> str:
        return self.sql()

    def __repr__(self) -> str:
        return f"<{self.sql()}>"

    # --- within -----------------------------------------------------------------------------------

    def _select(self) -> str:
        """The text, without what is wanted first of it and what becomes of its changes."""
        selected = (*(said for _, said in self.groups), *self.aggregates) or self.columns or ("*",)
        text = f"SELECT {'DISTINCT ' if self.only_once else ''}{', '.join(selected)} FROM {self._source()}"
        text += "".join(f" {said}" for said, _ in self.joins)
        if self.conditions:
            text += f" WHERE {_all(self.conditions)}"
        if self.groups:
            text += f" GROUP BY {', '.join(expression for expression, _ in self.groups)}"
        if self.having_:
            text += f" HAVING {_all(self.having_)}"
        if self.orders:
            text += f" ORDER BY {', '.join(self.orders)}"
        return text + self.bound

    def _within(self) -> Select:
        """Itself, to stand inside another query. Raises NotSupported where its changes are to be told, or it
        has a preference.
        """
        if self.preferred:
            raise NotSupported(
                "an inner query has no preference", hint="call prefer() for the query around it"
            )
        if self.told or self.emitted:
            raise NotSupported(
                "the changes of an inner query are not emitted",
                hint="call istream(), emit_changes() and the like for the query around it",
            )
        return self

    @property
    def _shaped(self) -> bool:
        """Whether its rows are no longer those that FROM and WHERE give."""
        return bool(
            self.columns or self.groups or self.aggregates or self.only_once or self.orders or self.bound
        )

    def _around(self) -> Select:
        """A query of all that this one gives, under the same name."""
        return self._of_all(f"({self._select()})")

    def _of_all(self, origin: str) -> Select:
        """All rows of this, with what is said of the whole query."""
        return Select(origin, self.known_as, told=self.told, preferred=self.preferred, emitted=self.emitted)

    def _source(self) -> str:
        same = self.origin == self.known_as
        return f"{self.origin}{self.scope}" + ("" if same else f" AS {self.known_as}")

    def _cut(self, function: str, lengths: str, key: str = "") -> Select:
        if self.scope or self.joins or self.conditions or self._shaped or "(" in self.origin:
            raise NotSupported(
                f"{function} cuts the time of a stream",
                hint="call it right after stream(); window(), where() and join() may follow",
            )
        return replace(self, origin=f"{function}({self.origin}{key}, {lengths})")


def _on(on: str | list[str] | tuple[str, ...] | None) -> str:
    if on is None:
        return ""
    if isinstance(on, str) and not _WORD.fullmatch(on):
        return f" ON {filled(on)}"
    columns = [on] if isinstance(on, str) else on
    return f" USING ({', '.join(name(column) for column in columns)})"


def _items(expressions: tuple[str, ...], named: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """(expression, the same as it is selected) for each. Raises SyntaxRefused where there is none."""
    found = [(text, text) for text in map(filled, expressions)]
    found += [
        (text, f"{text} AS {name(key)}") for key, text in zip(named, map(filled, named.values()), strict=True)
    ]
    if not found:
        raise SyntaxRefused("there is nothing to select, group or order by")
    return tuple(found)


def _all(conditions: tuple[str, ...]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return " AND ".join(f"({one})" for one in conditions)


def _equals(column: str, value: Any) -> str:
    if value is None:
        return f"{name(column)} IS NULL"
    if isinstance(value, list | tuple):
        return f"{name(column)} IN {literal(value)}"
    return f"{name(column)} = {literal(value)}"


def _filled(condition: str, values: tuple[Any, ...]) -> str:
    """A condition with its values, queries among them in brackets."""
    return filled(
        condition,
        [Piece(f"({one._within().sql()})") if isinstance(one, Select) else one for one in values],
    )


def _count(given: int | None) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ParametersRefused(f"{given!r} is not a number of rows", hint="give a whole number from 0 on")
    return given
