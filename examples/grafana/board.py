"""Make the board of a broker for Grafana: what comes, what waits, what it costs, and what was refused.

    $ python examples/grafana/board.py > examples/grafana/board.json

Needs `pip install grafana-foundation-sdk`. The panels are the table below; Grafana's own builders write them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders import dashboard, prometheus, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.dashboard import Dashboard, DataSourceRef, VariableRefresh

SOURCE = DataSourceRef(type_val="prometheus", uid="${prometheus}")
DOOR = DataSourceRef(type_val="grafana-postgresql-datasource", uid="${postgresql}")
"""The broker's own port for PostgreSQL's clients."""
REFRESH = "10s"


class Panel(NamedTuple):
    """unit: as Grafana names it. lines: expressions with the name of each line."""

    title: str
    text: str
    unit: str
    lines: tuple[tuple[str, str], ...]


def rate(metric: str, by: str) -> str:
    """The rate of a counter, summed by a label."""
    return f"sum by ({by}) (rate({metric}[$__rate_interval]))"


def quantile(share: float, histogram: str) -> str:
    """A quantile of a histogram, over all shards and formats."""
    return f"histogram_quantile({share}, sum by (le) (rate({histogram}_bucket[$__rate_interval])))"


ROWS: dict[str, tuple[Panel, ...]] = {
    "What comes": (
        Panel(
            "Records", "Read from Kafka.", "cps", ((rate("tureen_records_total", "stream"), "{{stream}}"),)
        ),
        Panel(
            "Waiting",
            "How long the oldest record has waited that was fetched and is not taken up: the lag.",
            "s",
            (("tureen_queue_oldest_seconds", "{{stream}}"),),
        ),
        Panel(
            "NOW behind the clock",
            "Event time. It grows while a stream is quiet, unless heartbeats come.",
            "s",
            (("tureen_now_lag_seconds", "{{stream}}"),),
        ),
        Panel(
            "Not taken as rows",
            "Late records, dead letters, and records that were shed.",
            "cps",
            (
                (rate("tureen_late_records_total", "stream"), "{{stream}} late"),
                (rate("tureen_dead_letters_total", "stream"), "{{stream}} dead letters"),
                (rate("tureen_shed_records_total", "stream"), "{{stream}} shed"),
            ),
        ),
    ),
    "What it takes": (
        Panel(
            "Time of steps",
            "Share of a core, by stream.",
            "percentunit",
            ((rate("tureen_step_time_seconds_total", "stream"), "{{stream}}"),),
        ),
        Panel(
            "Steps and transactions",
            "The 99th percentile.",
            "s",
            (
                (quantile(0.99, "tureen_step_seconds"), "step"),
                (quantile(0.99, "tureen_transaction_seconds"), "transaction"),
            ),
        ),
        Panel(
            "Memory",
            "Used, and the budget.",
            "bytes",
            (("tureen_memory_used_bytes", "used"), ("tureen_memory_budget_bytes", "budget")),
        ),
        Panel(
            "Memory by structure",
            "What is counted.",
            "bytes",
            (("topk(10, tureen_memory_counted_bytes)", "{{structure}}"),),
        ),
    ),
    "What is answered": (
        Panel("Queries", "By state.", "short", (("tureen_queries", "{{state}}"),)),
        Panel(
            "Answers",
            "Time of a snapshot: the median and the 99th percentile.",
            "s",
            (
                (quantile(0.5, "tureen_snapshot_seconds"), "median"),
                (quantile(0.99, "tureen_snapshot_seconds"), "99%"),
            ),
        ),
        Panel(
            "Changes written",
            "To result topics.",
            "cps",
            ((rate("tureen_result_deltas_total", "topic"), "{{topic}}"),),
        ),
        Panel(
            "Changes told",
            "To followers of feeds, and how many are open.",
            "short",
            (
                ("rate(tureen_feeds_changes_total[$__rate_interval])", "changes/s"),
                ("tureen_feeds_open", "open"),
            ),
        ),
    ),
    "Whether all is well": (
        Panel(
            "Shards that make progress",
            "1: it does; 0: it stalls, and readiness says why.",
            "short",
            (("tureen_shard_live", "shard {{shard}}"),),
        ),
        Panel(
            "Level of memory",
            "0 normal, 1 refuse, 2 relieve, 3 hold, 4 shed.",
            "short",
            (("tureen_memory_level", "level"),),
        ),
        Panel(
            "Changes that wait to be written",
            "At changes_max records are held.",
            "short",
            (("tureen_changes_waiting", "shard {{shard}}"),),
        ),
        Panel(
            "Refused and cut off",
            "Requests and connections beyond a limit, by its name; readers of feeds that took nothing.",
            "cps",
            (
                (rate("tureen_http_refused_total", "reason"), "{{reason}}"),
                ("rate(tureen_feeds_cut_total[$__rate_interval])", "feeds cut"),
            ),
        ),
    ),
}


class TablePanel(NamedTuple):
    """span: its width, of 24. sql: as the broker's port for PostgreSQL's clients takes it."""

    title: str
    text: str
    span: int
    sql: str


QUERIES = "SELECT matviewname FROM pg_matviews ORDER BY 1"
"""The names of registered queries: those to choose from."""
ASKED = (
    TablePanel("Answer of ${query}", "The first 1,000 rows.", 24, 'SELECT * FROM "${query}" LIMIT 1000'),
    TablePanel(
        "Registered queries", "Their state, and what they are not exact in.", 24, "SHOW QUERIES EXTENDED"
    ),
    TablePanel("Streams, tables and views", "Where their NOW is, and the rows held.", 24, "SHOW SOURCES"),
)


def board() -> Dashboard:
    """The board: a row of panels for each part of :data:`ROWS`, and tables of what is asked."""
    made = (
        dashboard.Dashboard("Tureen")
        .uid("tureen")
        .tags(["tureen"])
        .refresh(REFRESH)
        .time("now-30m", "now")
        .readonly()
        .with_variable(dashboard.DatasourceVariable("prometheus").type("prometheus").label("Prometheus"))
        .with_variable(
            dashboard.DatasourceVariable("postgresql")
            .type("grafana-postgresql-datasource")
            .label("The broker, as PostgreSQL")
        )
        .with_variable(
            dashboard.QueryVariable("query")
            .label("Query")
            .datasource(DOOR)
            .query(QUERIES)
            .refresh(VariableRefresh.ON_DASHBOARD_LOAD)
        )
    )
    for title, panels in ROWS.items():
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(_panel(panel))
    made = made.with_row(dashboard.Row("What is asked"))
    for asked in ASKED:
        made = made.with_panel(_table(asked))
    return made.build()


def _panel(panel: Panel) -> timeseries.Panel:
    made = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.text)
        .unit(panel.unit)
        .min(0)
        .span(6)
        .height(7)
        .datasource(SOURCE)
    )
    for letter, (expression, name) in zip("ABCDEFGH", panel.lines, strict=False):
        made = made.with_target(prometheus.Dataquery().expr(expression).legend_format(name).ref_id(letter))
    return made


@dataclass(frozen=True)
class Sql(Builder[Dataquery], Dataquery):
    """A target of PostgreSQL's source, for which the kit has no builder: it builds itself."""

    sql: str

    def build(self) -> Dataquery:
        """Itself."""
        return self

    def to_json(self) -> dict[str, Any]:
        """As Grafana's source for PostgreSQL reads it."""
        return {"refId": "A", "format": "table", "editorMode": "code", "rawQuery": True, "rawSql": self.sql}


def _table(panel: TablePanel) -> table.Panel:
    return (
        table.Panel()
        .title(panel.title)
        .description(panel.text)
        .span(panel.span)
        .height(8)
        .datasource(DOOR)
        .with_target(Sql(panel.sql))
    )


def text() -> str:
    """The board as Grafana imports it."""
    return JSONEncoder(sort_keys=True, indent=2).encode(board()) + "\n"


if __name__ == "__main__":
    print(text(), end="")
