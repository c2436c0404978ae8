"""The jars of Esper, and the compiler for its harness, from Maven Central by jgo into the broker's cache.

The Eclipse compiler is a jar as well, so that a Java without `javac` does. What is in the cache is not
fetched again.
"""

from __future__ import annotations

import logging
from pathlib import Path

from benchmarks.peers.missing import PeerMissing
from topics.jars import cache_directory

ESPER_VERSION = "9.0.0"
COMPILER_VERSION = "3.40.0"
COORDINATES = (
    f"com.espertech:esper-compiler:{ESPER_VERSION}",
    f"com.espertech:esper-runtime:{ESPER_VERSION}",
    f"org.eclipse.jdt:ecj:{COMPILER_VERSION}",
)


def esper_jars() -> tuple[list[Path], Path]:
    """(class path of Esper, the compiler's jar). Raises PeerMissing where Maven Central is out of reach."""
    try:
        from jgo.maven import MavenContext, PythonResolver

        logging.getLogger("jgo").setLevel(logging.ERROR)
        context = MavenContext(resolver=PythonResolver(), repo_cache=cache_directory() / "jars")
        asked, others = context.resolver.resolve([context.create_dependency(one) for one in COORDINATES])
        needed = [d.artifact for d in (*asked, *others) if d.scope in ("compile", "runtime", None)]
        jars = [Path(artifact.resolve()) for artifact in needed]
    except (ImportError, OSError, RuntimeError, ValueError) as error:  # what jgo raises
        raise PeerMissing(f"the jars of Esper {ESPER_VERSION} cannot be fetched: {error}") from error
    compiler = next(jar for jar in jars if jar.name.startswith("ecj-"))
    return [jar for jar in jars if jar != compiler], compiler
