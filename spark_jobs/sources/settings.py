"""What one run of the job is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from spark_jobs.settings import StreamSettings
from spark_jobs.sources.jdbc_settings import JdbcSettings
from spark_jobs.sources.pacing import Warp
from tureen.errors import SettingsError

Format = Literal["csv", "json", "parquet", "jdbc", "rate"]
FILES_MAX = 100_000
ROWS_PER_S_MAX = 10_000_000
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class SourcesSettings:
    """Checked when it is made. Raises SettingsError.

    sql: the CREATE STREAM statement; its columns are the declared types, its topic the one written.
    inputs: files, directories or globs, of any file system that Spark reads.
    key: column whose text becomes the records' key; None: no key.
    quarantine: directory that rows which do not fit are appended to, as Parquet; None: such a row refuses
        the run before anything is written.
    declare: publish ``sql`` on the topic of sources, so that the broker creates the stream.
    delimiter, null_text: of CSV. A cell with this text is NULL, as an empty one is.
    split: large CSV files are read in parallel, and a line break ends a row even in quotes.
    kafka: librdkafka's names, as everywhere in Tureen.
    stream: go on with what comes; None: one batch run. files_max: new files that a micro-batch takes.
    jdbc: the table to read, of the format jdbc. warp: pace of a batch, and where its timestamps are moved.
    select: SQL expressions over ``timestamp`` and ``value``, of the rate source. rows_per_s: of it as well.
    """

    sql: str
    inputs: tuple[str, ...]
    format: Format
    kafka: Mapping[str, str] = field(repr=False)  # it may hold passwords
    key: str | None = None
    quarantine: str | None = None
    declare: bool = True
    service_id: str = "tureen"
    delimiter: str = ","
    null_text: str = ""
    split: bool = False
    stream: StreamSettings | None = None
    files_max: int = 100
    select: str | None = None
    rows_per_s: int = 10
    jdbc: JdbcSettings | None = None
    warp: Warp = field(default_factory=Warp)

    def __post_init__(self) -> None:
        if self.format == "rate":
            self._check_rate()
        elif self.format == "jdbc":
            self._check_jdbc()
        elif not self.inputs:
            raise SettingsError("no input is named", hint="give at least one --input")
        if self.format not in FORMATS:
            raise SettingsError(f"there is no format {self.format!r}", hint=f"there are {', '.join(FORMATS)}")
        if len(self.delimiter) != 1:
            raise SettingsError(f"the delimiter {self.delimiter!r} is not one character")
        if self.format != "csv" and (self.delimiter != "," or self.null_text or self.split):
            raise SettingsError("delimiter, null text and split are settings of CSV")
        if self.format != "jdbc" and self.jdbc is not None:
            raise SettingsError("--url is a setting of the format jdbc")
        if self.stream is not None and self.warp != Warp():
            raise SettingsError(
                "a pace and moved timestamps are of a batch",
                hint="leave out --speed and --shift-to, or --stream",
            )
        if self.format != "rate" and self.select is not None:
            raise SettingsError("--select is a setting of the rate source")
        if not 1 <= self.files_max <= FILES_MAX:
            raise SettingsError(f"{self.files_max:,} files a micro-batch are not within 1 and {FILES_MAX:,}")
        if "bootstrap.servers" not in self.kafka:
            raise SettingsError(
                "no Kafka is named",
                hint="give --kafka bootstrap.servers=HOST:PORT or TUREEN_KAFKA__BOOTSTRAP_SERVERS",
            )

    @property
    def named(self) -> tuple[str, ...]:
        """What is read, for messages."""
        return self.inputs if self.jdbc is None else (self.jdbc.name,)

    def _check_jdbc(self) -> None:
        if self.inputs:
            raise SettingsError("a database is no --input", hint="give --url and --table")
        if self.jdbc is None:
            raise SettingsError("no database is named", hint="give --url jdbc:... and --table or --query")
        if (self.stream is not None) != (self.jdbc.increasing is not None):
            raise SettingsError(
                "--stream of a database and --increasing COLUMN go together",
                hint="rows beyond the largest value of it that was read are new",
            )

    def _check_rate(self) -> None:
        if self.inputs:
            raise SettingsError("the rate source reads no input", hint="leave --input out")
        if self.stream is None:
            raise SettingsError("the rate source has no end", hint="run it with --stream")
        if not self.select:
            raise SettingsError(
                "the rate source needs --select",
                hint="such as --select 'value AS id, timestamp AS at', of its columns timestamp and value",
            )
        if not 1 <= self.rows_per_s <= ROWS_PER_S_MAX:
            raise SettingsError(f"{self.rows_per_s:,} rows a second are not within 1 and {ROWS_PER_S_MAX:,}")
