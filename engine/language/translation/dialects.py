"""The systems whose statements are translated, and by which rewritings.

Each rewriting changes a form that this language writes otherwise and that means the same here, or tells what
differs. All else stays letter by letter, so the grammar refuses what no rewriting knows, with its place.
"""

from __future__ import annotations

from typing import Literal, get_args

from engine.language.translation.edits import Rewriting
from engine.language.translation.intervals import intervals_of_bins
from engine.language.translation.versions import joined_tables, versions_of_tables
from engine.language.translation.windowed_groups import (
    emitting_definitions,
    renamed_aggregates,
    windows_of_groups,
)

DialectName = Literal["flink", "ksqldb", "materialize", "risingwave", "postgres"]
DIALECTS: tuple[DialectName, ...] = get_args(DialectName)

REWRITINGS: dict[DialectName, tuple[Rewriting, ...]] = {
    "flink": (versions_of_tables,),
    "ksqldb": (emitting_definitions, renamed_aggregates, windows_of_groups, joined_tables),
    "materialize": (intervals_of_bins,),
    "risingwave": (versions_of_tables,),
    "postgres": (intervals_of_bins,),
}
