"""NON RETROACTIVE tables in joins: each row meets the version as of its own instant.

Such a join is an ASOF join with all versions of the table, those that delete among them: of the versions of
the row's key the latest that is not ahead of the row; if that one deletes, there is no partner. So the keys
of the join are the table's key, whole, and every other condition is asked of the version that was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.algebra.join.stage import Latest
from engine.language.bind.environment import Environment
from engine.language.bind.from_names import NamedItem
from engine.language.bind.joined import BoundJoin
from engine.language.bind.latest import Asked
from engine.language.bind.placing import conjuncts
from engine.language.bind.relation import BoundRelation
from engine.language.places import Place, shown
from engine.language.render import render_expression, render_name
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Compare, Expression, Function, Not, columns_of
from engine.model.source import Stream
from engine.model.types import BOOLEAN, TIMESTAMP
from tureen.errors import NotSupported


def is_versioned(relation: BoundRelation) -> bool:
    """Whether its rows are those of a NON RETROACTIVE table, as they are."""
    stream = relation.stream
    return stream.is_table and not stream.retroactive and not relation.stages and not relation.joins


@dataclass(frozen=True, slots=True)
class BoundVersions:
    """inner: the table's versions; its own conditions, which are not among inner's, must wait. parts: what
    the sources before are called, and at last the table. as_of: the instant that the text says.
    """

    inner: BoundRelation
    waiting: tuple[Expression, ...]
    times: tuple[Column, ...]
    place: Place
    parts: tuple[NamedItem, ...]
    as_of: Expression | None = None

    @property
    def _name(self) -> str:
        return shown(self.inner.stream.name)

    @staticmethod
    def of(
        left: BoundRelation,
        right: BoundRelation,
        join: exp.Expr,
        env: Environment,
        before: Sequence[NamedItem],
        behind: Sequence[NamedItem],
        as_of: Expression | None = None,
    ) -> BoundVersions | None:
        """None where the right side is no such table. Raises NotSupported."""
        place, kind = env.text.of_node(join.this), join.args["kind"]
        if not left.joins and is_versioned(left):
            raise env.text.of_node(join).refuse(
                NotSupported,
                f"{shown(left.stream.name)} is NON RETROACTIVE: rows meet the version as of their instant",
                hint=f"write the stream first: FROM s JOIN {shown(left.stream.name)} t ON s.key = t.key",
            )
        if not is_versioned(right):
            if as_of is not None:
                raise place.refuse(
                    NotSupported,
                    "FOR SYSTEM_TIME AS OF is about the versions of a table, and these rows have none",
                    hint="declare the table NON RETROACTIVE, with a timestamp; or leave it out, and rows are "
                    "joined as they are now",
                )
            return None
        name = shown(right.stream.name)
        hint = f"write JOIN {name} t ON s.key = t.key, or LEFT JOIN"
        if join.args.get("asof"):
            raise place.refuse(NotSupported, f"{name} is joined as of each row's instant anyhow", hint=hint)
        if kind not in ("inner", "left", "semi", "anti"):
            word = "a comma" if join.args.get("comma") else f"{kind.upper()} JOIN"
            raise place.refuse(
                NotSupported, f"{word} with a NON RETROACTIVE table is not supported", hint=hint
            )
        if right.scan.sample is not None:
            raise place.refuse(
                NotSupported,
                f"{name} is NON RETROACTIVE: the version as of a row's instant may be in no sample",
                hint="sample the stream that is joined with it",
            )
        if kind == "left" and not right.is_plain:
            raise place.refuse(
                NotSupported,
                f"expressions over {name} are not supported below LEFT JOIN",
                hint="join the table itself, and write them above",
            )
        times = _times(left)
        if not times:
            _refuse_what_has_no_instant(left, name, place)
            raise place.refuse(
                NotSupported,
                f"{name} is NON RETROACTIVE: what it is joined to must be a stream in event time",
                hint="let the stream have WITH (timestamp = 'column'), or the table not be NON RETROACTIVE",
            )
        versions = replace(right, scan=right.scan.versions())
        return BoundVersions(versions, right.scan.where, times, place, (*before, *behind), as_of)

    def joined(self, relation: BoundRelation, on: Sequence[Asked]) -> BoundRelation:
        """The relation, whose last join is with these versions. Raises NotSupported."""
        last, stream = relation.joins[-1], self.inner.stream
        schema = stream.schema
        key = tuple(place for name in stream.key if (place := schema.index(name)) is not None)
        last = replace(last, key=key)
        parts = [part for written, _ in on for part in conjuncts(written)]
        pairs = [pair for part in parts if (pair := last.pair(part)) is not None]
        equal = {inner.index for _, inner in pairs if isinstance(inner, Column)}
        equal |= {place for part in parts if (place := _constant(part, last)) is not None}
        if not equal.issuperset(key):
            raise self.place.refuse(
                NotSupported,
                f"{shown(stream.name)} is NON RETROACTIVE: it is joined by its key",
                hint=f"write ON {self._form(key)}",
            )
        time = schema.index(stream.timestamp_column or "")
        assert time is not None  # NON RETROACTIVE needs event time
        instant = self._time(relation, pairs)
        if self.as_of is not None and self.as_of != instant:
            raise self.place.refuse(
                NotSupported,
                "FOR SYSTEM_TIME AS OF takes the time of the row whose column equals the key",
                hint=f"write {render_expression(instant)}, or leave it out",
            )
        latest = Latest(instant, Column(time, schema.fields[time].name, TIMESTAMP))
        deleted = Column(last.offset + len(schema), "deleted", BOOLEAN)
        asked = (Not(deleted), *(_moved(condition, last) for condition in self.waiting))
        last = replace(last, latest=latest, asked=asked)
        return replace(relation, joins=(*relation.joins[:-1], last))

    def _form(self, key: Sequence[int]) -> str:
        """The key's columns by their names in the query, each equal to one of its name before, if any."""
        *before, table = self.parts
        names = {
            output.expression.index: output.name
            for output in reversed(self.inner.columns)
            if isinstance(output.expression, Column)
        }
        equal = []
        for place in key:
            name = names.get(place, self.inner.stream.schema.fields[place].name)
            same = next((_dotted(part, name) for part in before if name in part.columns), "...")
            equal.append(f"{same} = {_dotted(table, name)}")
        return " AND ".join(equal)

    def _time(self, relation: BoundRelation, pairs: Sequence[tuple[Expression, Expression]]) -> Expression:
        """The instant of a row: that of the stream whose columns equal the key, the latest of several, or of
        the one stream there is. It does not go by when rows meet, so that no order of joins changes it.
        """
        parts = _parts(relation)

        def source_of(column: Column) -> int:
            return max(begin for begin in parts if begin <= column.index)

        sources = {source_of(column) for left, _ in pairs for column in columns_of(left)}
        for source in sorted(sources):
            if parts[source].scan.assignment is not None and not parts[source].stages:
                _refuse_what_has_no_instant(replace(parts[source], joins=()), self._name, self.place)
        if len(self.times) == 1:
            return self.times[0]
        found = [time for time in self.times if source_of(time) in sources]
        if not found:
            raise self.place.refuse(
                NotSupported,
                "it is ambiguous of which row's instant the version is taken",
                hint="let the key equal columns of a stream in event time",
            )
        return found[0] if len(found) == 1 else Function("GREATEST", tuple(found), TIMESTAMP)


def _dotted(part: NamedItem, column: str) -> str:
    names = [column] if part.name is None else [part.name, column]
    return ".".join(shown(render_name(name)) for name in names)


def _refuse_what_has_no_instant(left: BoundRelation, table: str, place: Place) -> None:
    """Raise NotSupported where there is a stream in event time, but not its rows as they are."""
    for part in (left, *(join.inner for join in left.joins if join.gives)):
        if _time_of(part.stream) is None:
            continue
        if part.scan.assignment is not None and not part.stages:
            what, then = "a table function", "GROUP BY DATE_TRUNC(...)"
        elif any(stage.aggregate for stage in part.stages):
            what, then = "groups", "group"
        else:
            what, then = "a subquery that does more than select", "do the rest"
        stream = shown(part.stream.name)
        raise place.refuse(
            NotSupported,
            f"{table} is NON RETROACTIVE: it is joined at the instants of a stream's rows, not after {what}",
            hint=f"first join {stream} itself to {table}, then {then}, or let {table} not be NON RETROACTIVE",
        )


def _parts(relation: BoundRelation) -> dict[int, BoundRelation]:
    """What is joined in it, by the place of its first column."""
    return {0: relation} | {join.offset: join.inner for join in relation.joins if join.gives}


def _times(relation: BoundRelation) -> tuple[Column, ...]:
    """The instants of its streams' rows, as columns."""
    given = relation.given()
    found: list[Column] = []
    for offset, part in _parts(relation).items():
        place = _time_of(part.stream)
        if place is not None and not part.stages and part.scan.assignment is None:
            found.append(given[offset + place])
    return tuple(found)


def _time_of(stream: Stream) -> int | None:
    if stream.is_table or stream.timestamp_column is None:
        return None
    return stream.schema.index(stream.timestamp_column)


def _constant(condition: Expression, join: BoundJoin) -> int | None:
    """The column of inner's that equals a constant, None where it is something else."""
    if isinstance(condition, Compare) and condition.op == "=" and join.sides(condition) == (False, True):
        for column, other in (
            (condition.left, condition.right),
            (condition.right, condition.left),
        ):
            if isinstance(column, Column) and not any(columns_of(other)):
                return column.index - join.offset
    return None


def _moved(condition: Expression, join: BoundJoin) -> Expression:
    """A condition over inner's columns, numbered as the join's are."""

    def moved(node: Expression) -> Expression:
        return Column(join.offset + node.index, node.name, node.type) if isinstance(node, Column) else node

    return transform(condition, moved)
