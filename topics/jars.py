"""Apache Kafka's jars, fetched once from Maven Central by jgo and kept in the user's cache directory.

Resolution and download are pure Python: no ``mvn`` is needed. A file that was being written when its process
died has a marker beside it and is fetched again; a listing is written only when every jar is whole, and later
starts read that listing alone. Processes that fetch at the same time wait for each other.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from topics.private import check_code
from tureen.errors import EmbeddedKafkaError

KAFKA_VERSION = "4.1.1"
COORDINATE = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"
# Kafka logs through slf4j; its own package brings this binding, its pom does not.
LOG_BINDING = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3")
DOWNLOADS_AT_ONCE = 6
LINE_EVERY = 10
"""Files from one line of progress to the next, where the console is no terminal."""


def cache_directory() -> Path:
    """``TUREEN_CACHE_DIR``, else the user's cache directory."""
    return Path(os.environ.get("TUREEN_CACHE_DIR") or user_cache_path("tureen", appauthor=False))


def kafka_jars(cache: Path | None = None, console: Console | None = None) -> list[Path]:
    """The class path of Kafka; what is missing is fetched, with progress on ``console``: bars or lines.

    Raises EmbeddedKafkaError: no network, no space, no right to write. DirectoryNotPrivate: everybody can
    write the directory.
    """
    root = (cache or cache_directory()) / "jars"
    if root.is_dir():
        check_code(root)
    listing = root / f"kafka-{KAFKA_VERSION}.json"
    if (jars := _listed(root, listing)) is not None:
        return jars
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / "fetch.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (jars := _listed(root, listing)) is not None:  # another process fetched them meanwhile
                return jars
            jars = _fetch(root, console)
            sizes = {str(jar.relative_to(root)): jar.stat().st_size for jar in jars}
            partial = listing.with_suffix(".new")
            partial.write_text(json.dumps(sizes, indent=1), encoding="utf-8")
            partial.replace(listing)
            return jars
    except OSError as error:  # requests' errors are OSErrors too
        raise EmbeddedKafkaError(
            f"Kafka {KAFKA_VERSION} could not be fetched into {root}: {error}",
            hint="check the network and the space there; run again to continue, "
            "or use another Kafka with the setting bootstrap.servers",
        ) from error


def _listed(root: Path, listing: Path) -> list[Path] | None:
    """The jars of a finished fetch, None when one is missing or not of its size any more."""
    try:
        sizes: dict[str, int] = json.loads(listing.read_text(encoding="utf-8"))
        jars = [root / name for name in sizes]
        whole = all(jar.stat().st_size == size for jar, size in zip(jars, sizes.values(), strict=True))
    except (OSError, ValueError):
        return None
    return jars if whole and jars else None


def _fetch(root: Path, console: Console | None) -> list[Path]:
    from jgo.maven import MavenContext, PythonResolver

    class Resolver(PythonResolver):
        """Leaves no half-written file that a later run would take for a whole one."""

        def download(self, artifact: Any) -> Any:
            target = Path(artifact.cached_path)
            target.parent.mkdir(parents=True, exist_ok=True)
            marker = target.with_name(target.name + ".part")
            marker.touch()
            try:
                path = super().download(artifact)
            except BaseException:
                target.unlink(missing_ok=True)
                marker.unlink(missing_ok=True)
                raise
            marker.unlink()
            return path

    for marker in root.rglob("*.part"):
        marker.with_suffix("").unlink(missing_ok=True)
        marker.unlink()

    logging.getLogger("jgo").setLevel(logging.ERROR)
    with _progress(console) as progress:
        looking = progress.add_task(f"Kafka {KAFKA_VERSION}: looking up what it needs", total=None)
        context = MavenContext(resolver=Resolver(progress_callback=_bar(progress)), repo_cache=root)
        try:
            asked, others = context.resolver.resolve([context.create_dependency(COORDINATE)])
            group, name, version = LOG_BINDING
            needed = {
                artifact.filename: artifact
                for artifact in (
                    *(d.artifact for d in (*asked, *others) if d.scope in ("compile", "runtime", None)),
                    context.project(group, name).at_version(version).artifact(),
                )
            }
            progress.update(looking, description=f"Kafka {KAFKA_VERSION}", total=len(needed))
            lines = console if console is not None and not console.is_terminal else None
            _tell(lines, f"fetching Kafka {KAFKA_VERSION} from Maven Central, about 45 MB, once, into {root}")
            with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
                jars: list[Path] = []
                for path in pool.map(_whole, needed.values()):
                    jars.append(path)
                    progress.advance(looking)
                    if len(jars) % LINE_EVERY == 0 or len(jars) == len(needed):
                        _tell(lines, f"  {len(jars)} of {len(needed)} files of Kafka are here")
        except (RuntimeError, ValueError) as error:  # what jgo raises where a repository has no such file
            raise OSError(str(error)) from error
    return jars


def _whole(artifact: Any) -> Path:
    """The jar of an artifact; one that does not open as an archive is fetched once more."""
    path = Path(artifact.resolve())
    if not zipfile.is_zipfile(path):
        path.unlink()
        path = Path(artifact.resolve())
        if not zipfile.is_zipfile(path):
            path.unlink()
            raise OSError(f"{path.name} arrived damaged")
    return path


def _tell(console: Console | None, line: str) -> None:
    if console is not None:
        console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)


def _progress(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=console,
        transient=True,
        disable=console is None or not console.is_terminal,
    )


def _bar(progress: Progress) -> Any:
    """jgo's callback: a bar for each file of some size, gone when the file is there."""

    @contextmanager
    def bar(name: str, size: int) -> Iterator[Any]:
        if size < 200_000:
            yield lambda _count: None
            return
        task = progress.add_task(name, total=size)
        try:
            yield lambda count: progress.advance(task, count)
        finally:
            progress.remove_task(task)

    return bar
