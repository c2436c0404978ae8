"""CREATE, ALTER, DESCRIBE and DROP of summaries."""

from __future__ import annotations

from typing import cast, get_args

from sqlglot import exp

from engine.language import known_options
from engine.language.bind.environment import Environment
from engine.language.bind.options import WithOptions
from engine.language.places import Place, did_you_mean, shown
from engine.language.query import AlterSummary, CreateSummary, DescribeSummary, DropSummary
from engine.language.render import render_span
from engine.model.source import Derived, Stream
from engine.model.summary import BucketFunction, SummaryDefinition, SummaryKind, SummarySettings
from engine.model.types import Kind, Type
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch, UnknownSummary

ANY = "summary"
"""In the place of a summary's name: the only one of the column that is estimated."""

REACH_MS_MAX = 36_525 * 86_400_000
"""A hundred years."""
RATE_MAX = 1_000
DEPTH_MAX = 64
SKETCH_DEPTH_MAX = 63
SKETCH_WIDTH_MAX = 65_536
BUCKETS_MAX = 4_096
ZONE_ROWS_MAX = 100_000_000
BYTES_MAX = 256 * 2**20
"""The most bytes that the counters of a summary may take when it has as many zones as their length allows."""

_SETTINGS = tuple(known_options.SUMMARY)
_CHANGING = ("theta", "zone_rows_min")
_OF_OTHERS = {
    "maxlength": "write zone_length_max = '2 seconds'",
    "max_length": "write zone_length_max = '2 seconds'",
    "min_rows": "write zone_rows_min = 64",
    "depth": "write sketch_depth = 5",
    "width": "write sketch_width = 64",
}
_FOR_LIFE = dict.fromkeys(
    (name for name in _SETTINGS if name not in _CHANGING),
    "only theta and zone_rows_min can change: DROP SUMMARY, then CREATE SUMMARY",
)
_MEASURED = (Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP)


def bind_create_summary(tree: exp.Expr, env: Environment) -> CreateSummary:
    """Raises UnknownSource, UnknownColumn, SyntaxRefused, TypeMismatch, NotSupported, LimitExceeded."""
    text = env.text
    name = str(tree.this.this)
    if name == ANY:
        raise text.of_node(tree.this).refuse(
            SyntaxRefused,
            "no summary can be called SUMMARY, which stands for the only one of a column",
            hint="choose another name",
        )
    stream = _stream(tree.args["stream"], env)
    attribute = tree.args["attribute"]
    column = str(attribute.this)
    place = stream.schema.index(column)
    if place is None:
        raise text.of_node(attribute).unknown_column(column, (field.name for field in stream.schema))
    definition = SummaryDefinition(
        name,
        stream.name,
        column,
        int(tree.args["granularity"].this),
        int(tree.args["rate"].this),
        int(tree.args["depth"].this),
    )
    _check_lengths(definition, tree, env)
    type_ = stream.schema.fields[place].type
    settings = _settings(definition, type_, tree, env)
    return CreateSummary(
        SummaryDefinition(
            definition.name,
            definition.stream,
            definition.attribute,
            definition.granularity_ms,
            definition.rate,
            definition.depth,
            settings,
        ),
        text.sql,
        bool(tree.args.get("if_not_exists")),
    )


def _stream(name: exp.Expr, env: Environment) -> Stream:
    """What is summarised. Raises UnknownSource, NotSupported."""
    place, found = env.text.of_node(name), env.catalogue.get(str(name.this))
    if found is None:
        raise place.unknown_source(str(name.this), env.catalogue)
    if isinstance(found, Derived):
        raise place.refuse(
            NotSupported,
            f"{shown(found.name)} selects from other sources; a summary is of a stream with a topic",
            hint="summarise the stream that it selects from",
        )
    if found.is_table:
        raise place.refuse(
            NotSupported,
            f"{shown(found.name)} is a table: its rows change, and a summary is of rows that only come",
            hint="name a stream",
        )
    return found


def _check_lengths(definition: SummaryDefinition, tree: exp.Expr, env: Environment) -> None:
    """Raise SyntaxRefused for lengths that are none, LimitExceeded for a reach that is too long."""
    text = env.text
    if definition.granularity_ms < 1:
        raise text.of_node(tree.args["granularity"]).refuse(
            SyntaxRefused, "a granularity is at least one millisecond", hint="write a longer time"
        )
    if definition.rate < 2:
        raise text.of_node(tree.args["rate"]).refuse(
            SyntaxRefused,
            "each granularity is at least twice as long as the one before",
            hint="write a rate from 2, as in COLLAPSE(4, 3)",
        )
    if definition.depth < 1:
        raise text.of_node(tree.args["depth"]).refuse(
            SyntaxRefused,
            "a summary has at least one granularity",
            hint="write a depth from 1, as in COLLAPSE(4, 3)",
        )
    for part, most in (("rate", RATE_MAX), ("depth", DEPTH_MAX)):
        number = getattr(definition, part)
        if number > most:
            raise text.of_node(tree.args[part]).exceeded(
                f"summary_{part}_max", most, None if number > 10**18 else number
            )
    if definition.granularity_ms > REACH_MS_MAX or definition.reach_ms > REACH_MS_MAX:
        too_long = definition.granularity_ms > REACH_MS_MAX
        node = tree.args["granularity"] if too_long else tree.args["depth"]
        raise text.of_node(node).exceeded(
            "summary_reach_ms_max",
            REACH_MS_MAX,
            hint="all granularities together are at most a hundred years: write a shorter one, "
            "a lower rate or a lower depth",
        )


def _settings(
    definition: SummaryDefinition, type_: Type, tree: exp.Expr, env: Environment
) -> SummarySettings:
    """What SETTINGS gives. Raises SyntaxRefused, TypeMismatch, LimitExceeded."""
    options = WithOptions(tree.args.get("settings") or (), _SETTINGS, env.text, _OF_OTHERS)
    plain = SummarySettings()
    settings = SummarySettings(
        kind=cast("SummaryKind", options.choice("kind", get_args(SummaryKind), plain.kind)),
        sketch_depth=options.number("sketch_depth", plain.sketch_depth, SKETCH_DEPTH_MAX),
        sketch_width=options.number("sketch_width", plain.sketch_width, SKETCH_WIDTH_MAX),
        buckets=options.number("buckets", plain.buckets, BUCKETS_MAX),
        bucket_function=cast(
            "BucketFunction",
            options.choice("bucket_function", get_args(BucketFunction), plain.bucket_function),
        ),
        theta=options.share("theta", plain.theta),
        zone_length_max_ms=_zone_length_ms(options, definition),
        zone_rows_min=options.number("zone_rows_min", plain.zone_rows_min, ZONE_ROWS_MAX),
    )
    attribute = env.text.of_node(tree.args["attribute"])
    if type_.is_nested:
        raise attribute.refuse(
            TypeMismatch, f"a column of type {type_} cannot be summarised", hint="name another column"
        )
    for name, value, needs in (
        ("kind", settings.kind == "histogram", _MEASURED),
        ("bucket_function", settings.bucket_function == "range", (*_MEASURED, Kind.STRING)),
    ):
        if value and type_.kind not in needs:
            raise options.place(name).refuse(
                TypeMismatch,
                f"{shown(definition.attribute)} is {type_}, which this {name.replace('_', ' ')} "
                "cannot divide into ranges",
                hint="leave it out",
            )
    _check_bytes(definition, settings, attribute)
    return settings


def _zone_length_ms(options: WithOptions, definition: SummaryDefinition) -> int | None:
    if "zone_length_max" not in options:
        return None
    length_ms = options.duration("zone_length_max", 0)
    if not 1 <= length_ms <= definition.granularity_ms:
        raise options.wrong(
            "zone_length_max",
            f"a zone has from 1 ms to the whole granularity, {render_span(definition.granularity_ms)}",
        )
    return length_ms


def _check_bytes(definition: SummaryDefinition, settings: SummarySettings, place: Place) -> None:
    """Raise LimitExceeded for a summary whose counters would not fit."""
    length_ms = settings.zone_length_max_ms or max(1, definition.granularity_ms // 4)
    zones = -(-definition.granularity_ms // length_ms) + definition.rate * (definition.depth - 1)
    needed = zones * settings.buckets * settings.sketch_depth * settings.sketch_width * 4
    if needed > BYTES_MAX:
        raise place.exceeded(
            "summary_bytes_max",
            BYTES_MAX,
            needed,
            hint="write fewer buckets, a narrower sketch, longer zones, a lower rate or a lower depth",
        )


def bind_alter_summary(tree: exp.Expr, env: Environment) -> AlterSummary:
    """Raises UnknownSummary, SyntaxRefused, TypeMismatch."""
    definition = _named(tree.this, env)
    options = WithOptions(tree.args["settings"], _CHANGING, env.text, _FOR_LIFE | _OF_OTHERS)
    settings = definition.settings
    return AlterSummary(
        definition.name,
        options.share("theta", settings.theta) if "theta" in options else None,
        options.number("zone_rows_min", 1, ZONE_ROWS_MAX) if "zone_rows_min" in options else None,
    )


def bind_describe_summary(tree: exp.Expr, env: Environment) -> DescribeSummary:
    """Raises UnknownSummary."""
    return DescribeSummary(_named(tree.this, env))


def bind_drop_summary(tree: exp.Expr) -> DropSummary:
    """DROP SUMMARY; whether there is one is for the catalogue to say."""
    return DropSummary(str(tree.this.this), bool(tree.args.get("if_exists")))


def _named(name: exp.Expr, env: Environment) -> SummaryDefinition:
    found = env.summaries.get(str(name.this))
    if found is None:
        raise unknown_summary(str(name.this), env, env.text.of_node(name))
    return found


def unknown_summary(name: str, env: Environment, place: Place) -> UnknownSummary:
    """The refusal of a name that is no summary's."""
    hint = did_you_mean(name, env.summaries) or "make it with CREATE SUMMARY first; SHOW SUMMARIES lists them"
    return UnknownSummary(
        shown(name),
        f"there is no summary named {shown(name)!r}",
        hint=hint,
        line=place.line,
        column=place.column,
    )
