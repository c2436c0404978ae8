"""What one run of the job is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_jobs.settings import StreamSettings
from storage.archive.layout import PartitionBy
from topics.registry import RegistrySettings
from tureen.errors import SettingsError

RECORDS_AT_ONCE = 1_000_000
RECORDS_AT_ONCE_MAX = 100_000_000


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Checked when it is made. Raises SettingsError.

    root: of the archive, on any file system that Spark writes.
    streams: by name; all_streams: all that read a topic, as of the start of the run.
    results: topics; all_results: all topics of results that there are at the start of the run.
    records_at_once: a micro-batch has no more of them.
    partition_by: what a partition of a stream's table holds, where the table is made by this run.
    registry: where the schemas of results in Avro are.
    """

    root: str
    kafka: Mapping[str, str] = field(repr=False)  # it may hold passwords
    stream: StreamSettings
    service_id: str = "tureen"
    streams: tuple[str, ...] = ()
    all_streams: bool = False
    results: tuple[str, ...] = ()
    all_results: bool = False
    records_at_once: int = RECORDS_AT_ONCE
    partition_by: PartitionBy = "hour"
    registry: RegistrySettings | None = None

    def __post_init__(self) -> None:
        if not self.root:
            raise SettingsError("no archive is named", hint="give --archive DIRECTORY")
        if not (self.streams or self.all_streams or self.results or self.all_results):
            raise SettingsError(
                "nothing to archive is named",
                hint="give --stream NAME, --all-streams, --results TOPIC or --all-results",
            )
        if (self.all_streams and self.streams) or (self.all_results and self.results):
            raise SettingsError("all are named, and some by name as well", hint="give one or the other")
        if not 1 <= self.records_at_once <= RECORDS_AT_ONCE_MAX:
            raise SettingsError(
                f"{self.records_at_once:,} records at once are not within 1 and {RECORDS_AT_ONCE_MAX:,}"
            )
        if "bootstrap.servers" not in self.kafka:
            raise SettingsError(
                "no Kafka is named",
                hint="give --kafka bootstrap.servers=HOST:PORT or TUREEN_KAFKA__BOOTSTRAP_SERVERS",
            )
