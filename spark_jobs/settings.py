"""What every job is told about Spark and about its stream; importing this needs no PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tureen.errors import SettingsError

EVERY_S_MAX = 86_400.0
GIVE_UP_AFTER_S_MAX = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How a job gets its session; all but ``conf`` count only where the job starts its own driver.

    memory: of the driver, as Java writes it. conf: Spark settings that win over ours.
    packages: further jars by Maven coordinates, such as a JDBC driver. repositories: URLs of Maven
    repositories that are asked beside Maven Central.
    """

    master: str = "local[*]"
    memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for coordinate in self.packages:
            if coordinate.count(":") != 2 or not all(part.strip() for part in coordinate.split(":")):
                raise SettingsError(
                    f"{coordinate!r} is no Maven coordinate", hint="write group:artifact:version"
                )


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a job's stream runs. Raises SettingsError.

    checkpoint: directory that remembers what is done; on any file system that Spark writes.
    once: take what is there when the run begins, then end; else go on until told to stop.
    every_s: a micro-batch begins so long after the last one began, or when that ends.
    give_up_after_s: so long a Kafka that is away is waited for.
    accept_gap: go on where records of Kafka are gone that were never read; else they are an error.
    """

    checkpoint: str
    once: bool = False
    every_s: float = 1.0
    give_up_after_s: float = 86_400.0
    accept_gap: bool = False

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise SettingsError("no checkpoint directory is named", hint="give --checkpoint DIRECTORY")
        if not 0 <= self.every_s <= EVERY_S_MAX:
            raise SettingsError(f"a micro-batch every {self.every_s:g} s is not within 0 and {EVERY_S_MAX:g}")
        if not 0 <= self.give_up_after_s <= GIVE_UP_AFTER_S_MAX:
            raise SettingsError(
                f"to give up after {self.give_up_after_s:g} s is not within 0 and {GIVE_UP_AFTER_S_MAX:g}"
            )
