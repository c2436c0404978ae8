"""What CREATE and DROP make of what stands: one table, against which whoever decides so is tested.

``{s}``, ``{t}``, ``{v}`` and ``{w}`` stand for names, ``{p}`` for that of a summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter

NAMES = ("s", "t", "v", "w", "p")
S = "CREATE STREAM {s} (a INT)"
T = "CREATE TABLE {t} (k INT PRIMARY KEY, a INT)"
V = "CREATE VIEW {v} AS SELECT a FROM {s}"
W = "CREATE VIEW {w} AS SELECT a FROM {v}"
OTHER_V = "CREATE OR REPLACE VIEW {v} AS SELECT a + 1 AS a FROM {s}"
P = "CREATE SUMMARY {p} ON {s} (a) WITH GRANULARITY 1 MINUTE AND COLLAPSE(2, 2)"


@dataclass(frozen=True)
class Case:
    """becomes: a decision by its value, or the code of a refusal. reads: a query that stands.

    step: what an engine makes of the step, where that differs: whoever makes a step has decided before. None:
    there is no such step.
    """

    stands: tuple[str, ...]
    statement: str
    becomes: str
    reads: str | None = None
    step: str | None = "as decided"

    @property
    def of_step(self) -> str | None:
        return self.becomes if self.step == "as decided" else self.step

    @property
    def of_summary(self) -> bool:
        """Whether summaries are in it, which a scale-out has none of."""
        return "{p}" in " ".join((*self.stands, self.statement))

    @property
    def about(self) -> str:
        """The letter of the name that the statement is about."""
        return next(letter for _, letter, _, _ in Formatter().parse(self.statement) if letter)


CASES = {
    "a stream": Case((), S, "create"),
    "the same stream": Case((S,), S, "same"),
    "the same stream in other words": Case((S,), "create stream {s}(a INTEGER)", "same"),
    "a stream that exists if not exists": Case((S,), "CREATE STREAM IF NOT EXISTS {s} (a INT)", "same"),
    "another stream": Case((S,), "CREATE STREAM {s} (b INT)", "source_conflict"),
    "a table for a stream": Case((S,), "CREATE TABLE {s} (a INT PRIMARY KEY)", "source_conflict"),
    "a stream for a table": Case((T,), "CREATE STREAM {t} (a INT)", "source_conflict"),
    "a stream for a view": Case((S, V), "CREATE STREAM {v} (a INT)", "source_conflict"),
    "a view for a stream": Case((S, T), "CREATE OR REPLACE VIEW {s} AS SELECT a FROM {t}", "source_conflict"),
    "a view": Case((S,), V, "create"),
    "the same view": Case((S, V), V, "same"),
    "the same view, which a query reads": Case((S, V), V, "same", reads="SELECT a FROM {v} EMIT CHANGES"),
    "another view": Case(
        (S, V), "CREATE VIEW {v} AS SELECT a + 1 AS a FROM {s}", "source_conflict", step="replace"
    ),
    "another view in its place": Case((S, V), OTHER_V, "replace"),
    "in place of a view that a query reads": Case(
        (S, V), OTHER_V, "source_conflict", reads="SELECT a FROM {v} EMIT CHANGES"
    ),
    "in place of a view that a view reads": Case((S, V, W), OTHER_V, "source_conflict"),
    "a view of nothing": Case((), V, "waits", step=None),
    "nothing in place of a view": Case(
        (S, V), "CREATE OR REPLACE VIEW {v} AS SELECT a FROM {t}", "unknown_source", step=None
    ),
    "drop a stream": Case((S,), "DROP STREAM {s}", "drop"),
    "drop a view": Case((S, V), "DROP VIEW {v}", "drop"),
    "drop nothing": Case((), "DROP STREAM {s}", "absent", step="unknown_source"),
    "drop what a query reads": Case(
        (S,), "DROP STREAM {s}", "source_conflict", reads="SELECT a FROM {s} EMIT CHANGES"
    ),
    "drop what a query reads through a view": Case(
        (S, V), "DROP VIEW {v}", "source_conflict", reads="SELECT a FROM {v} EMIT CHANGES"
    ),
    "drop what a view reads": Case((S, V), "DROP STREAM {s}", "source_conflict"),
    "drop what a constraint refers to": Case(
        (
            "CREATE STREAM {s} (a INT, CONSTRAINT UNIQUE (a))",
            "CREATE STREAM {t} (b INT NOT NULL, CONSTRAINT REFERENCES (b) TO {s} (a))",
        ),
        "DROP STREAM {s}",
        "source_conflict",
        step="drop",
    ),
    "a summary": Case((S,), P, "create"),
    "the same summary": Case((S, P), P, "same"),
    "another summary": Case((S, P), P.replace("1 MINUTE", "2 MINUTES"), "summary_conflict"),
    "a summary with other settings": Case((S, P), P + " SETTINGS (theta = 0.1)", "summary_conflict"),
    "drop a summary": Case((S, P), "DROP SUMMARY {p}", "drop"),
    "drop no summary": Case((S,), "DROP SUMMARY {p}", "absent", step="unknown_summary"),
    "drop what a summary is of": Case((S, P), "DROP STREAM {s}", "summary_conflict"),
    "drop a summary that a query uses": Case(
        (S, P),
        "DROP SUMMARY {p}",
        "summary_conflict",
        reads="SELECT a FROM {s} WITH PREFERENCE desc {p}.Estimate.Count(a)",
    ),
}
