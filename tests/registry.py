"""A Schema Registry for the tests: that of one machine, which may fail.

Where a Docker engine answers, tests may have a real one beside their Kafka (:func:`container`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.kafka import docker_answers, free_ports, wait_until
from topics.registry_server import RegistryServer, Reply, told

IMAGE = "confluentinc/cp-schema-registry:7.9.0"


class TestRegistry(RegistryServer):
    """refused: subjects that take no schema any more. rubbish: what it answers instead. authorization: the
    header that calls have to have. asked: ids of schemas that were asked for, in order.
    """

    __test__ = False

    def __init__(self) -> None:
        super().__init__(*free_ports(1))
        self.refused: set[str] = set()
        self.rubbish: bytes | None = None
        self.authorization: str | None = None
        self.asked: list[int] = []

    @property
    def client(self) -> Any:
        """The client library's own, without HTTP."""
        return self._kept

    def reply(self, method: str, path: str, body: bytes, authorization: str | None) -> Reply:
        if self.authorization not in (None, authorization):
            return told(401, {"error_code": 401, "message": "not allowed"})
        if self.rubbish is not None:
            return 200, self.rubbish
        if method == "POST" and unquote(path.split("/")[2]) in self.refused:
            return told(409, {"error_code": 409, "message": "incompatible with an earlier schema"})
        if path.startswith("/schemas/ids/"):
            self.asked.append(int(urlsplit(path).path.rpartition("/")[2]))
        return super().reply(method, path, body, authorization)


@contextmanager
def registry() -> Iterator[TestRegistry]:
    """A started one."""
    one = TestRegistry()
    one.start()
    try:
        yield one
    finally:
        one.stop()


@contextmanager
def container(bootstrap: str) -> Iterator[str | None]:
    """The address of a real one beside a Kafka; None where no Docker engine answers."""
    if not docker_answers():
        yield None
        return
    import httpx
    from testcontainers.core.container import DockerContainer

    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    made = DockerContainer(IMAGE).with_kwargs(network_mode="host")
    made.with_env("SCHEMA_REGISTRY_HOST_NAME", "127.0.0.1")
    made.with_env("SCHEMA_REGISTRY_LISTENERS", url)
    made.with_env("SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS", f"PLAINTEXT://{bootstrap}")

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/subjects").status_code == 200
        except httpx.HTTPError:
            return False

    with made:
        wait_until(answers, what="the schema registry answers")
        yield url
