"""What one run of the job is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tureen.errors import SettingsError

Format = Literal["csv", "json", "parquet"]
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

    def __post_init__(self) -> None:
        if not self.inputs:
            raise SettingsError("no input is named", hint="give at least one --input")
        if self.format not in FORMATS:
            raise SettingsError(f"there is no format {self.format!r}", hint=f"there are {', '.join(FORMATS)}")
        if len(self.delimiter) != 1:
            raise SettingsError(f"the delimiter {self.delimiter!r} is not one character")
        if self.format != "csv" and (self.delimiter != "," or self.null_text or self.split):
            raise SettingsError("delimiter, null text and split are settings of CSV")
        if "bootstrap.servers" not in self.kafka:
            raise SettingsError(
                "no Kafka is named",
                hint="give --kafka bootstrap.servers=HOST:PORT or TUREEN_KAFKA__BOOTSTRAP_SERVERS",
            )
