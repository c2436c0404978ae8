"""What FROM gives: a relation and what names mean in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.language.bind.environment import Environment
from engine.language.bind.from_names import FromNames, NamedItem
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scope import Scope
from engine.language.grammar import nodes, source_nodes
from engine.language.places import shown
from engine.language.render import render_name
from tureen.errors import SyntaxRefused


@dataclass(frozen=True, slots=True)
class From:
    """A relation and what names mean in it; numbers are places among its columns.

    names: of columns, for names without a dot; None: several have it. star: what ``*`` stands for. hidden:
    names of sources whose columns are not among them.
    """

    relation: BoundRelation
    parts: tuple[NamedItem, ...]
    names: Mapping[str, int | None]
    star: tuple[tuple[str, int], ...]
    hidden: tuple[str | None, ...] = ()

    def scope(self, env: Environment) -> Scope:
        """What expressions over it may name."""
        if len(self.parts) == 1:
            scope = env.scope(self.relation, self.parts[0].name)
            return replace(scope, names=replace(scope.names, hidden=self.hidden))
        outputs = self.relation.columns
        columns = {name: outputs[place] for name, place in self.names.items() if place is not None}
        scope = env.scope(self.relation, None)
        names = FromNames(self.relation.stream, columns, None, self.parts, outputs, self.star, self.hidden)
        return replace(scope, names=names)

    def place(self, name: exp.Expr, env: Environment) -> int:
        """The place of a column that USING names. Raises UnknownColumn, SyntaxRefused."""
        column = str(name.this)
        place = self.names.get(column, -1)
        if place is None:
            raise env.text.of_node(name).refuse(
                SyntaxRefused,
                f"several sources before have a column {shown(column)!r}",
                hint=f"write ON a.{shown(column)} = b.{shown(column)}",
            )
        if place < 0:
            raise env.text.of_node(name).unknown_column(column, self.names)
        return place


def both_sides(relation: BoundRelation, left: From, right: From, count: int) -> From:
    """The names of both sides; ``count``: columns of the left one."""
    names = dict(left.names)
    for name, place in right.names.items():
        names[name] = None if place is None or name in names else place + count
    parts = [
        replace(part, columns={name: place + count for name, place in part.columns.items()})
        for part in right.parts
    ]
    star = (*left.star, *((name, place + count) for name, place in right.star))
    return From(relation, (*left.parts, *parts), names, star, (*left.hidden, *right.hidden))


def check_names(
    left: From, right: From, join: exp.Expr, env: Environment, *, inputs: int | None = None
) -> None:
    """Raise LimitExceeded for too many sources, SyntaxRefused for two of one name. inputs: how many sources
    there are; None: those of both sides.
    """
    place, most = env.text.of_node(join.this), env.limits.joined_sources_max
    inputs = left.relation.inputs + right.relation.inputs if inputs is None else inputs
    if inputs > most:
        raise place.exceeded("joined_sources_max", most, inputs, hint="join fewer sources in one query")
    taken = {part.name for part in left.parts} | set(left.hidden)
    for part in right.parts:
        if part.name is not None and part.name in taken:
            other = _free_name(part.name, taken | {part.name for part in right.parts})
            before = "FROM ...," if join.args.get("comma") else "JOIN"
            raise place.refuse(
                SyntaxRefused,
                f"two sources in FROM are called {shown(part.name)!r}",
                hint=f"give one of them another name: {before} {_written(join.this.this)} {shown(other)}",
            )


def _free_name(name: str, taken: Collection[str | None]) -> str:
    """One like it that no source has, as SQL takes it."""
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return render_name(f"{name}_{number}")


def _written(item: exp.Expr) -> str:
    """What an item of FROM is about, shortened."""
    match item:
        case nodes.SelectQuery() | nodes.SetQuery():
            return "(SELECT ...)"
        case source_nodes.TableFunction():
            return f"{item.args['name']}({shown(render_name(str(item.this.this)))}, ...)"
        case nodes.FromList() | source_nodes.ValueRows():
            return "source"
        case source_nodes.Series():
            return f"{item.args['name']}(...)"
        case source_nodes.Unnest():
            return "UNNEST(...)"
        case _:
            return shown(render_name(str(item.this)))
