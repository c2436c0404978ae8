"""The checkpoint directory: micro-batches as they were decided, and what stands, on any file system.

    plans/<version>.json    what stands; written when that changes
    begun/<number>.json     which records and queries a micro-batch takes
    batches/<number>.json   the same with NOW of its streams, after its rows were looked at
    done.json               the last micro-batch of which everything is written, where rows above NOW are, and
                            which queries it could not tell of
    pending/, shards/       state of executors

Every file appears whole or not at all. Drivers and executors must see the same directory: on a cluster an
object store or a shared file system.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import fs

from spark_jobs.errors import CheckpointMismatch, CheckpointUnreadable, PathNotWritable
from spark_jobs.scale_out.micro_batch import VERSION, MicroBatch, Plan

KEPT = 3
"""Plans and micro-batches that stay behind the one at work."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows of a partition above NOW: the micro-batch that wrote them, how many, the first's instant."""

    source: str
    partition: int
    number: int
    rows: int
    first_ms: int

    @property
    def file(self) -> str:
        return f"pending/{self.source}/{self.partition}.{self.number}.arrow"


@dataclass(frozen=True, slots=True)
class LastDone:
    """The last micro-batch that is done, 0 before the first, the run that did it, what waits for NOW, and the
    queries whose changes it could not tell, with why: they end with the next.
    """

    number: int = 0
    epoch: int = 0
    pending: tuple[Pending, ...] = ()
    broken: Mapping[str, dict[str, Any]] = field(default_factory=dict)


class Directory:
    """A directory of whole files by their relative names. Raises PathNotWritable, CheckpointUnreadable."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        try:
            found: tuple[fs.FileSystem, str] = (
                fs.FileSystem.from_uri(_for_pyarrow(uri))
                if "://" in uri
                else (fs.LocalFileSystem(), str(Path(uri).absolute()))
            )
            self._files, self._root = found
        except (OSError, pa.ArrowInvalid) as error:
            raise PathNotWritable(uri, str(error), hint="a directory, or a URI of a file system") from error

    def read(self, name: str) -> bytes | None:
        """A file, None where it is not there."""
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointUnreadable(f"{self.uri}/{name}", str(error)) from error

    def write(self, name: str, data: bytes) -> None:
        """Put a file in the place of what was there."""
        path = f"{self._root}/{name}"
        new = f"{path}.{uuid.uuid4().hex}.new"
        try:
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
            with self._files.open_output_stream(new) as stream:
                stream.write(data)
            self._files.move(new, path)
        except OSError as error:
            hint = "is there space, and the right to write?"
            raise PathNotWritable(self.uri, f"{name}: {error}", hint=hint) from error

    def names(self, folder: str) -> list[str]:
        """Names of the files of a folder."""
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        try:
            found = self._files.get_file_info(selector)
        except OSError as error:
            raise CheckpointUnreadable(f"{self.uri}/{folder}", str(error)) from error
        return [one.base_name for one in found if one.type == fs.FileType.File]

    def remove(self, name: str) -> None:
        """A file that may be gone already."""
        try:
            self._files.delete_file(f"{self._root}/{name}")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise PathNotWritable(self.uri, f"{name}: {error}") from error


def _for_pyarrow(uri: str) -> str:
    """Hadoop has S3 under a name of its own."""
    return f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a://") else uri


class Journal:
    """Micro-batches and plans of a checkpoint."""

    def __init__(self, uri: str) -> None:
        self.directory = Directory(uri)

    def read(self, number: int) -> MicroBatch:
        """A micro-batch as it was decided. Raises CheckpointUnreadable where it is not there."""
        found = self.find("batches", number)
        if found is None:
            raise CheckpointUnreadable(self.directory.uri, f"micro-batch {number} is missing")
        return found

    def find(self, folder: str, number: int) -> MicroBatch | None:
        """folder: ``begun`` or ``batches``."""
        facts = self._facts(f"{folder}/{number}.json")
        return None if facts is None else MicroBatch.from_dict(facts)

    def write(self, folder: str, batch: MicroBatch) -> None:
        self.put(f"{folder}/{batch.number}.json", batch.as_dict())

    def read_plan(self, version: int) -> Plan:
        facts = self._facts(f"plans/{version}.json")
        if facts is None:
            raise CheckpointUnreadable(self.directory.uri, f"plan {version} is missing")
        return Plan.from_dict(facts)

    def write_plan(self, plan: Plan) -> None:
        self.put(f"plans/{plan.version}.json", plan.as_dict())

    def done(self) -> LastDone:
        """Where the run stands."""
        facts = self._facts("done.json")
        if facts is None:
            return LastDone()
        pending = tuple(Pending(*one) for one in facts["pending"])
        return LastDone(facts["number"], facts["epoch"], pending, facts["broken"])

    def put(self, name: str, facts: Mapping[str, Any]) -> None:
        self.directory.write(name, orjson.dumps(facts, option=orjson.OPT_NON_STR_KEYS))

    def finish(self, done: LastDone, plan: int, needed: int) -> None:
        """A micro-batch is done. plan: what stood. needed: the first that executors may ask for again."""
        places = [[one.source, one.partition, one.number, one.rows, one.first_ms] for one in done.pending]
        facts = {"v": VERSION, "number": done.number, "epoch": done.epoch, "pending": places}
        self.put("done.json", facts | {"broken": done.broken})
        below = min(done.number - KEPT, needed)
        for folder, last in (("begun", below), ("batches", below), ("plans", plan - KEPT)):
            for name in self.directory.names(folder):
                number = name.partition(".")[0]
                if number.isdecimal() and int(number) < last:
                    self.directory.remove(f"{folder}/{name}")

    def _facts(self, name: str) -> dict[str, Any] | None:
        data = self.directory.read(name)
        if data is None:
            return None
        try:
            facts = orjson.loads(data)
            version = facts["v"]
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointUnreadable(f"{self.directory.uri}/{name}", repr(error)) from error
        if version != VERSION:
            raise CheckpointMismatch(
                self.directory.uri,
                f"is of version {version}, this program reads version {VERSION}",
                hint="run the version that wrote it, or start with an empty directory",
            )
        return dict(facts)
