"""What names of columns stand for, where FROM gives them: those of one item, or of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.language.bind.text_binding import TextBinding
from engine.language.grammar.words import NOT_NESTED
from engine.language.places import did_you_mean, shown
from engine.model.expressions import Expression
from engine.model.source import Stream
from tureen.errors import NotSupported, SyntaxRefused

FIRST_UNNEST = "write the source before it: FROM s CROSS JOIN UNNEST(s.a) AS t(x)"


@dataclass(frozen=True, slots=True)
class NamedItem:
    """One of several items in FROM: its name, None where it has none, and the places of its columns. unnamed:
    it is an UNNEST whose columns the text gives no names.
    """

    name: str | None
    columns: Mapping[str, int]
    unnamed: bool = False


@dataclass(frozen=True, slots=True)
class FromNames:
    """The names of FROM."""

    # The stream of its scan.
    source: Stream
    # What names without a dot stand for; of several items those that one alone has.
    columns: Mapping[str, Output]
    # What may stand before the dot where there is one item; None: nothing.
    name: str | None
    # The items, where there are several, and all columns of theirs.
    parts: tuple[NamedItem, ...] = ()
    outputs: tuple[Output, ...] = ()
    # What ``*`` stands for, by name and place, where there are several items.
    star: tuple[tuple[str, int], ...] = ()
    # Sources of SEMI and ANTI JOIN.
    hidden: tuple[str | None, ...] = ()

    @property
    def are_none(self) -> bool:
        """Whether there is no FROM."""
        return not self.columns and not self.source.name

    def find(self, node: exp.Column, binding: TextBinding) -> Expression | None:
        """What a column's name stands for; None where there is no such column.

        Raises SyntaxRefused where several items of FROM have it.
        """
        qualifier, name = node.args.get("table"), str(node.this.this)
        if self.parts:
            return self._find_in_parts(node, qualifier, name, binding)
        if qualifier is not None and str(qualifier.this) != self.name:
            if name not in ("start", "end"):
                return None
            name = f"{qualifier.this}_{name}"  # a field of a window
        found = self.columns.get(name)
        return None if found is None else found.expression

    def _find_in_parts(
        self, node: exp.Column, qualifier: exp.Expr | None, name: str, binding: TextBinding
    ) -> Expression | None:
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
            raise binding.place(node).refuse(
                SyntaxRefused,
                f"several sources have a column {shown(name)!r}",
                hint=f"write {' or '.join(written)}" if written else "name the subqueries: (SELECT ...) AS a",
            )
        return None

    def known(self, qualifier: exp.Expr | None) -> list[str]:
        """The columns that FROM gives, or one item of it."""
        if not self.parts:
            return list(self.columns)
        parts = [part for part in self.parts if qualifier is None or part.name == qualifier.this]
        return list(dict.fromkeys(column for part in parts for column in part.columns))

    def check_qualifier(self, qualifier: exp.Expr, clause: str, binding: TextBinding) -> None:
        """Raise SyntaxRefused or NotSupported unless this names what FROM names. clause: where it
        stands."""
        name = str(qualifier.this)
        names = [part.name for part in self.parts if part.name is not None]
        if name == self.name or name in names:
            return
        if name in self.columns:
            raise binding.place(qualifier).refuse(
                NotSupported,
                f"the column {shown(name)!r} has no fields",
                hint=NOT_NESTED,
            )
        if name in self.hidden:
            raise binding.place(qualifier).refuse(
                SyntaxRefused,
                f"{shown(name)!r} is joined by SEMI or ANTI JOIN: its columns can be used only in ON",
                hint=f"leave it out, or write JOIN {shown(name)}",
            )
        if self.are_none:
            if clause == "UNNEST":
                raise binding.place(qualifier).refuse(
                    NotSupported,
                    f"UNNEST that stands first in FROM takes constants, and {shown(name)!r} is not before it",
                    hint=FIRST_UNNEST,
                )
            raise binding.place(qualifier).refuse(
                SyntaxRefused,
                f"nothing is called {shown(name)!r} here: constants are made of no columns",
                hint="compute in SELECT, or write ON a condition",
            )
        if self.name is None and not names:
            raise binding.place(qualifier).refuse(
                SyntaxRefused,
                f"nothing is called {shown(name)!r} here: the subquery in FROM has no name",
                hint=f"leave it out, or name the subquery: FROM (SELECT ...) AS {shown(name)}",
            )
        # no UnknownSource: no stream that is yet to come could mend it
        raise binding.place(qualifier).refuse(
            SyntaxRefused,
            f"nothing in FROM is called {shown(name)!r}",
            hint=did_you_mean(name, names or [str(self.name)]),
        )
