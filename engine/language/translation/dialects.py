"""The systems whose statements are translated, and by which rewritings.

Each rewriting changes a form that this language writes otherwise and that means the same here, or tells what
differs. All else stays letter by letter, so the grammar refuses what no rewriting knows, with its place.
"""

from __future__ import annotations

from typing import Literal, get_args

from engine.language.translation.cut_texts import cut_texts
from engine.language.translation.edits import Rewriting
from engine.language.translation.intervals import intervals_of_bins
from engine.language.translation.ksqldb import (
    emitting_definitions,
    members,
    renamed_aggregates,
    window_columns,
)
from engine.language.translation.ksqldb_sources import sources
from engine.language.translation.quoted_names import quoted_names
from engine.language.translation.versions import joined_tables, versions_of_tables

DialectName = Literal["flink", "ksqldb", "materialize", "risingwave", "postgres"]
DIALECTS: tuple[DialectName, ...] = get_args(DialectName)

REWRITINGS: dict[DialectName, tuple[Rewriting, ...]] = {
    "flink": (quoted_names, cut_texts, versions_of_tables),
    "ksqldb": (
        quoted_names,
        sources,
        members,
        emitting_definitions,
        renamed_aggregates,
        window_columns,
        joined_tables,
    ),
    "materialize": (cut_texts, intervals_of_bins),
    "risingwave": (cut_texts, versions_of_tables),
    "postgres": (cut_texts, intervals_of_bins),
}
