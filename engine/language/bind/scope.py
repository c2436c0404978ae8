"""What names mean in one place of a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.language.aggregates import aggregate_named
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.grammar.words import CLOCKS, COLUMNS_REFUSED, NOT_NESTED, ROW_TIMES
from engine.language.places import Place, Text, did_you_mean, shown
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Expression, children, columns_of
from engine.model.limits import Limits
from engine.model.source import Stream
from tureen.errors import NotSupported, SyntaxRefused, UnknownColumn

if TYPE_CHECKING:
    from engine.language.bind.grouping import Grouping
    from engine.language.bind.over import OverColumns
    from engine.language.bind.preferences import Estimates
    from engine.language.bind.subqueries.values import SubqueryValues

NODES_MAX = 50_000
OUTER = -2_000_000
"""Columns around a subquery count down from here in its conditions."""
_FIRST_UNNEST = "write the source before it: FROM s CROSS JOIN UNNEST(s.a) AS t(x)"
ESTIMATES = -1_000_000_000
"""Estimates in a priority count down from here while it is bound."""


@dataclass(slots=True)
class Sizes:
    """Nodes and heights of bound expressions, each computed once."""

    known: dict[int, tuple[Expression, int, int]] = field(default_factory=dict)

    def of(self, expression: Expression) -> tuple[int, int]:
        """(nodes, height). O(new nodes)."""
        found = self.known.get(id(expression))
        if found is not None:
            return found[1], found[2]
        nodes = height = 0
        for child in children(expression):
            more, high = self.of(child)
            nodes, height = nodes + more, max(height, high)
        self.known[id(expression)] = (expression, nodes + 1, height + 1)
        return nodes + 1, height + 1


@dataclass(frozen=True, slots=True)
class NamedItem:
    """One of several items in FROM: its name, None where it has none, and the places of its columns. unnamed:
    it is an UNNEST whose columns the text gives no names.
    """

    name: str | None
    columns: Mapping[str, int]
    unnamed: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a subquery; is_mixed: its columns may stand in it too, as those of OUTER. columns: of
    it, by their places, that are among the subquery's, as expressions over these.
    """

    scope: Scope
    is_mixed: bool = False
    columns: Mapping[int, Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that expressions may name, and what else may stand there.

    columns: what names stand for. name: what may stand before the dot; None: nothing. parts: the items of
    FROM where there are several: then columns are those whose name stands for one, outputs all of them, and
    star, by name and place, what ``*`` stands for. hidden: sources of SEMI and ANTI JOIN. clause: where this
    is, for refusals. aliases: outputs by name, for where columns have no such name. selected: names that only
    come later. grouping: set where aggregates may stand: columns are then those of its groups. numbering: set
    where ROW_NUMBER() may stand. outer: around a subquery. window: of GROUP BY, which TUMBLE_START(...) and
    the like are about. estimates: set where estimates of summaries may stand. values: set where a subquery
    may stand in the place of a value. memo: what nodes were bound to; set where they are bound again.
    """

    text: Text
    limits: Limits
    source: Stream
    columns: Mapping[str, Output]
    name: str | None
    parts: tuple[NamedItem, ...] = ()
    outputs: tuple[Output, ...] = ()
    star: tuple[tuple[str, int], ...] = ()
    hidden: tuple[str | None, ...] = ()
    clause: str = "this place"
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    selected: Collection[str] = ()
    grouping: Grouping | None = None
    over: OverColumns | None = None
    outer: Around | None = None
    window: exp.Expr | None = None
    memo: dict[int, Expression] | None = None
    functions: FunctionCatalogue = BUILT_IN
    sizes: Sizes = field(default_factory=Sizes)
    estimates: Estimates | None = None
    values: SubqueryValues | None = None

    def at(self, clause: str) -> Scope:
        """This scope in another clause."""
        return replace(self, clause=clause)

    def sized(self, expression: Expression, node: exp.Expr) -> Expression:
        """The expression, unless it is too large: BETWEEN, CASE x and the like repeat an operand, and nested
        they would double it at every level. Raises LimitExceeded. O(new nodes): sizes are kept.
        """
        if self.sizes.of(expression)[0] > NODES_MAX:
            raise self.place(node).exceeded(
                "expression_nodes_max", NODES_MAX, hint="nest BETWEEN, CASE and IS DISTINCT FROM less"
            )
        return expression

    def place(self, node: exp.Expr) -> Place:
        return self.text.of_node(node)

    def find(self, node: exp.Column) -> Expression | None:
        """What a column's name stands for here, None where there is no such column.

        Raises SyntaxRefused where several items of FROM have it.
        """
        found = self._find_own(node)
        if found is None and self.outer is not None and self.outer.columns:
            around, columns = self.outer.scope.find(node), self.outer.columns
            if around is not None and all(each.index in columns for each in columns_of(around)):
                return transform(
                    around, lambda each: columns[each.index] if isinstance(each, Column) else each
                )
        return found

    def _find_own(self, node: exp.Column) -> Expression | None:
        qualifier, name = node.args.get("table"), str(node.this.this)
        if self.parts:
            return self._find_in_parts(node, qualifier, name)
        if qualifier is not None and str(qualifier.this) != self.name:
            if name not in ("start", "end"):
                return None
            name = f"{qualifier.this}_{name}"  # a field of a window
        found = self.columns.get(name)
        return None if found is None else found.expression

    def _find_in_parts(self, node: exp.Column, qualifier: exp.Expr | None, name: str) -> Expression | None:
        if "place" in node.meta:
            place: int = node.meta["place"]
            return self.outputs[place].expression
        if qualifier is not None:
            for part in self.parts:
                if part.name == qualifier.this and name in part.columns:
                    return self.outputs[part.columns[name]].expression
            if name not in ("start", "end") or any(part.name == qualifier.this for part in self.parts):
                return None
            name = f"{qualifier.this}_{name}"  # a field of a window
        found = self.columns.get(name)
        if found is not None:
            return found.expression
        having = [part.name for part in self.parts if name in part.columns]
        if having:
            written = [f"{shown(part)}.{shown(name)}" for part in having if part is not None]
            raise self.place(node).refuse(
                SyntaxRefused,
                f"several sources have a column {shown(name)!r}",
                hint=f"write {' or '.join(written)}" if written else "name the subqueries: (SELECT ...) AS a",
            )
        return None

    def column(self, node: exp.Column) -> Expression:
        """Resolve a column. Raises SyntaxRefused, UnknownColumn, NotSupported."""
        found = self.find(node)
        if found is not None:
            return found
        around = None if self.outer is None else self.outer.scope.find(node)
        if around is not None and self.outer is not None and self.outer.is_mixed:
            return transform(around, of_outer)
        if around is not None:
            raise self.place(node).refuse(
                NotSupported,
                f"{shown(str(node.this.this))!r} is a column of groups, or of versions of a table, around "
                "this query, which may be used only in an equality of its WHERE",
                hint="write (SELECT MAX(b.v) FROM s b WHERE b.key = a.key), or this query around "
                "(SELECT ... GROUP BY ...) a",
            )
        qualifier = node.args.get("table")
        if qualifier is not None:
            self.check_qualifier(qualifier)
        name = str(node.this.this)
        if qualifier is None and not node.this.args.get("quoted") and name.upper() in CLOCKS:
            raise self.place(node).refuse(
                NotSupported,
                f"{name.upper()} without brackets is allowed in windows",
                hint="write NOW(), compared with a time: WHERE at > NOW() - INTERVAL '10' MINUTE",
            )
        if qualifier is None and name in self.selected:
            place = self.place(node.this)
            hint = (
                f"SELECT computes it after {self.clause}: write its expression here, or select in a subquery"
            )
            raise UnknownColumn(shown(name), hint=hint, line=place.line, column=place.column)
        known = self._known(qualifier) if self.parts else list(self.columns)
        perhaps_text = qualifier is None and self.clause not in ("GROUP BY", "ORDER BY")
        raise self.place(node.this).unknown_column(
            name, known, perhaps_text=perhaps_text, hint=self._instead(name, known, qualifier)
        )

    def _instead(self, name: str, known: Collection[str], qualifier: exp.Expr | None) -> str | None:
        """What to write for a name that is no column here and has a meaning in other systems, or may be meant
        as that of an element.
        """
        for part in self.parts:
            if part.unnamed and (qualifier is None or part.name == qualifier.this):
                columns = " and ".join(shown(column) for column in part.columns)
                are = "column of UNNEST is" if len(part.columns) == 1 else "columns of UNNEST are"
                return f"the {are} called {columns}: write UNNEST(...) AS t({shown(name)})"
        if not self.columns and not self.source.name:
            if self.clause in ("GENERATE_SERIES", "RANGE"):
                return f"{self.clause} takes constants: join it by ON, or write FROM HOP(stream, slide, size)"
            if self.clause == "UNNEST":
                return _FIRST_UNNEST
            if self.clause == "VALUES":
                return "VALUES takes constants: compute in SELECT"
            return "there is no FROM: write SELECT ... FROM the stream that has it"
        if name in ROW_TIMES:
            time = self.source.timestamp_column
            if time in known:
                return f"the time of a row is its column {shown(str(time))}"
            return "the time of a row is a column: declare a TIMESTAMP, and WITH (timestamp = 'column')"
        aggregate = aggregate_named(name.upper())
        if aggregate is not None and self.grouping is not None:
            return f"write the aggregate itself, as in {self.clause} {aggregate.usage.split(', ')[0]} > 5"
        return COLUMNS_REFUSED.get(name)

    def _known(self, qualifier: exp.Expr | None) -> list[str]:
        """The columns that FROM gives, or one item of it."""
        parts = [part for part in self.parts if qualifier is None or part.name == qualifier.this]
        return list(dict.fromkeys(column for part in parts for column in part.columns))

    def check_qualifier(self, qualifier: exp.Expr) -> None:
        """Raise SyntaxRefused or NotSupported unless this names what FROM names."""
        name = str(qualifier.this)
        names = [part.name for part in self.parts if part.name is not None]
        if name == self.name or name in names:
            return
        if name in self.columns:
            raise self.place(qualifier).refuse(
                NotSupported,
                f"the column {shown(name)!r} has no fields",
                hint=NOT_NESTED,
            )
        if name in self.hidden:
            raise self.place(qualifier).refuse(
                SyntaxRefused,
                f"{shown(name)!r} is joined by SEMI or ANTI JOIN: its columns can be used only in ON",
                hint=f"leave it out, or write JOIN {shown(name)}",
            )
        if not self.columns and not self.source.name:
            if self.clause == "UNNEST":
                raise self.place(qualifier).refuse(
                    NotSupported,
                    f"UNNEST that stands first in FROM takes constants, and {shown(name)!r} is not before it",
                    hint=_FIRST_UNNEST,
                )
            raise self.place(qualifier).refuse(
                SyntaxRefused,
                f"nothing is called {shown(name)!r} here: constants are made of no columns",
                hint="compute in SELECT, or write ON a condition",
            )
        if self.name is None and not names:
            raise self.place(qualifier).refuse(
                SyntaxRefused,
                f"nothing is called {shown(name)!r} here: the subquery in FROM has no name",
                hint=f"leave it out, or name the subquery: FROM (SELECT ...) AS {shown(name)}",
            )
        # no UnknownSource: no stream that is yet to come could mend it
        raise self.place(qualifier).refuse(
            SyntaxRefused,
            f"nothing in FROM is called {shown(name)!r}",
            hint=did_you_mean(name, names or [str(self.name)]),
        )


def of_outer(node: Expression) -> Expression:
    """A column around a subquery, as it stands in it; all else as it is."""
    return Column(OUTER - node.index, node.name, node.type) if isinstance(node, Column) else node


def column_at(name: str, node: exp.Expr) -> exp.Column:
    """A column of this name that stands where ``node`` does."""
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    for made in (column, column.this):
        made.meta.update(node.meta)
    return column
