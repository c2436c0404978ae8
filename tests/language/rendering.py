"""Statements as stable text, as the golden files have them."""

from __future__ import annotations

from engine.language.query import (
    AlterQuery,
    AlterSummary,
    Control,
    CreateFromQuery,
    CreateFromTopic,
    CreateQuery,
    CreateStream,
    CreateSummary,
    Describe,
    DescribeSummary,
    DropStream,
    DropSummary,
    Explain,
    Insert,
    Query,
    RenameQuery,
    Show,
    Statement,
)
from engine.language.render import render_name, render_names, render_query, render_span
from engine.model.constraint import text_of
from engine.model.paths import path_text
from engine.model.summary import SummaryDefinition


def render_statement(statement: Statement) -> str:
    """The whole statement, several lines."""
    match statement:
        case Query():
            return render_query(statement)
        case CreateStream():
            return _create(statement)
        case CreateFromTopic():
            return _create_from_topic(statement)
        case CreateFromQuery():
            return _create_derived(statement)
        case DropStream(name, if_exists, view, table, cascade, materialized):
            what = "materialized view" if materialized else "view" if view else "table" if table else "stream"
            missing = " if it exists" if if_exists else ""
            return f"drop {what} {render_name(name)}{missing}" + (" and what reads it" if cascade else "")
        case CreateSummary(definition, _, if_not_exists):
            missing = " if it does not exist" if if_not_exists else ""
            return "\n".join([f"create summary{missing}", *_summary(definition)])
        case AlterSummary(name, theta, zone_rows_min):
            return f"alter summary {render_name(name)}: theta {theta}, zone rows min {zone_rows_min}"
        case DescribeSummary(definition):
            return "\n".join(["describe summary", *_summary(definition)])
        case DropSummary(name, if_exists):
            return f"drop summary {render_name(name)}" + (" if it exists" if if_exists else "")
        case Show(what, extended):
            return f"show {what}" + (" with all that is known" if extended else "")
        case Describe(name, columns):
            return "\n".join(
                [f"describe {render_name(name)}", *(f"  {render_name(n)} {t}" for n, t in columns)]
            )
        case Explain(query, _, analyze):
            what = "a standing query" if query is None else "\n" + _indented(render_query(query))
            return ("explain and run " if analyze else "explain ") + what
        case CreateQuery(name, query, if_not_exists):
            missing = " if it does not exist" if if_not_exists else ""
            return f"create query {render_name(name)}{missing}\n" + _indented(render_query(query))
        case Insert(stream, rows):
            keys = ["" if row.key is None else f"{row.key!r}: " for row in rows]
            told = [
                f"  {row.line}:{row.column} {key}{dict(row.members)}"
                for key, row in zip(keys, rows, strict=True)
            ]
            return "\n".join([f"insert into {render_name(stream.name)}", *told])
        case RenameQuery(_, name):
            return f"rename a standing query to {render_name(name)}"
        case Control(action, _, release, if_exists):
            more = (" and release its rows" if release else "") + (" if it exists" if if_exists else "")
            return f"{action} a standing query{more}"
        case AlterQuery(_, query):
            return "alter a standing query\n" + _indented(render_query(query))


def _summary(definition: SummaryDefinition) -> list[str]:
    settings = definition.settings
    lengths = ", ".join(map(render_span, definition.lengths_ms))
    sketch = f"{settings.kind} {settings.sketch_depth} x {settings.sketch_width}"
    longest = render_span(definition.zone_length_max_ms)
    return [
        f"  {render_name(definition.name)} of {definition.stream} ({render_name(definition.attribute)})",
        f"  granularities {lengths}, reach {render_span(definition.reach_ms)}",
        f"  {sketch}, {settings.buckets} buckets by {settings.bucket_function}",
        f"  theta {settings.theta:g} from {settings.zone_rows_min} rows, zones of at most {longest}",
    ]


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _create_derived(create: CreateFromQuery) -> str:
    derived = create.derived
    what = "view" if create.materialized is None else "materialized view"
    what = derived.kind if derived.kind != "view" else what
    replacing = ", in place of one of this name" if create.replace else ""
    missing = " if it does not exist" if create.if_not_exists else ""
    emits = f"\n  its query: {create.materialized}" if create.materialized else ""
    return (
        f"create {what} {render_name(derived.name)}{missing}{replacing}\n"
        + _indented(render_query(create.query))
        + emits
    )


def _create_from_topic(create: CreateFromTopic) -> str:
    missing = " if it does not exist" if create.if_not_exists else ""
    given = [f"  {name} = {value}" for name, value in create.given.items()]
    return "\n".join([f"infer {create.kind} {render_name(create.name)} from {create.topic}{missing}", *given])


def _create(create: CreateStream) -> str:
    stream = create.stream
    what = "table" if stream.is_table else "stream"
    lines = [
        f"create {what} {render_name(stream.name)}"
        + (" if it does not exist" if create.if_not_exists else "")
    ]
    lines += [
        f"  {render_name(f.name)} {f.type}{'' if f.nullable else ' not null'}"
        f"{'' if f.path is None else f' path {path_text(f.path)}'}"
        f"{' from the key' if f.from_key else ''}"
        for f in stream.schema
    ]
    if stream.is_table:
        lines.append(f"  key {render_names(stream.key)}{'' if stream.retroactive else ', non retroactive'}")
    lines += [f"  {text_of(one)}" for one in stream.constraints]
    missing = "" if create.create_topic else ", which must exist"
    lines.append(f"  topic {stream.topic}, {create.partitions} partitions{missing}")
    if stream.timestamp_column is None:
        lines.append("  arrival time")
    else:
        lines.append(
            f"  event time {render_name(stream.timestamp_column)}, "
            f"lateness {render_span(stream.lateness_ms)}, "
            f"at most {render_span(stream.future_max_ms)} ahead"
            + ("" if stream.past_max_ms is None else f" and {render_span(stream.past_max_ms)} behind")
        )
    advances = ", then NOW advances" if stream.idle_advances else ""
    lines.append(f"  idle after {render_span(stream.idle_timeout_ms)}{advances}")
    lines.append(f"  retain {render_span(stream.retain_ms)}")
    return "\n".join(lines)
