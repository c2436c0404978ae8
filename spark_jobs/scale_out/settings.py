"""What a run of the scale-out is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.model.limits import Limits
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.settings import StreamSettings
from topics.outputs import OutputSettings
from tureen.errors import SettingsError

ROWS_MAX = 100_000_000
NAME_MAX = 100


@dataclass(frozen=True, slots=True)
class ScaleOutSettings:
    """Checked when it is made. Raises SettingsError.

    kafka: librdkafka's names, as everywhere in Tureen. service_id: whose registry it serves, instead of a
    broker. name: of the run, in transactional ids and groups. layout: how rows are spread over shards.
    rows_max: records of one micro-batch, over all streams. first_record_wait_ms: how long NOW waits for the
    first record of a partition, at most.
    """

    kafka: Mapping[str, str] = field(repr=False)  # it may hold passwords
    service_id: str
    name: str
    stream: StreamSettings
    layout: Layout
    rows_max: int = 500_000
    first_record_wait_ms: int = 5_000
    outputs: OutputSettings = field(default_factory=OutputSettings)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if "bootstrap.servers" not in self.kafka:
            raise SettingsError("no Kafka is named", hint="give --kafka bootstrap.servers=HOST:PORT")
        allowed = self.name and len(self.name) <= NAME_MAX and self.name.replace("-", "").isalnum()
        if not allowed or not self.name.isascii():
            raise SettingsError(
                f"{self.name!r} cannot be the name of a run",
                hint=f"letters, digits and dashes, {NAME_MAX} at most",
            )
        if not 1 <= self.rows_max <= ROWS_MAX:
            raise SettingsError(f"rows_max = {self.rows_max} is not within 1 to {ROWS_MAX:,}")
        if self.first_record_wait_ms < 0:
            raise SettingsError("first_record_wait_ms cannot be below 0")

    @property
    def state(self) -> str:
        """The directory of the micro-batches and of the executors' state."""
        return f"{self.stream.checkpoint.rstrip('/')}/scale-out"
