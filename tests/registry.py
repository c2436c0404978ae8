"""A Schema Registry for the tests: its HTTP interface over the client library's registry in memory.

Where a Docker engine answers, tests may have a real one beside their Kafka (:func:`container`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from tests.kafka import docker_answers, free_ports, wait_until

IMAGE = "confluentinc/cp-schema-registry:7.9.0"


class TestRegistry:
    """May be stopped and started again on its port; what was put in stays. refused: subjects that take no
    schema any more. rubbish: what it answers instead. authorization: the header that calls have to have.
    asked: ids of schemas that were asked for, in order.
    """

    __test__ = False

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.refused: set[str] = set()
        self.rubbish: bytes | None = None
        self.authorization: str | None = None
        self.asked: list[int] = []
        self._kept = SchemaRegistryClient.new_client({"url": "mock://kept"})
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> TestRegistry:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def parse_request(self) -> bool:
                if not super().parse_request():
                    return False
                if registry.authorization not in (None, self.headers.get("Authorization")):
                    self._tell(401, {"error_code": 401, "message": "not allowed"})
                    return False
                return True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                subject = unquote(urlsplit(self.path).path.split("/")[2])
                if registry.rubbish is not None:
                    self._answer(200, registry.rubbish)
                    return
                if subject in registry.refused:
                    self._tell(409, {"error_code": 409, "message": "incompatible with an earlier schema"})
                    return
                references = [
                    SchemaReference(one["name"], one["subject"], one["version"])
                    for one in body.get("references", ())
                ]
                schema = Schema(body["schema"], body.get("schemaType", "AVRO"), references)
                self._tell(200, {"id": registry._kept.register_schema(subject, schema)})

            def do_GET(self) -> None:
                if registry.rubbish is not None:
                    self._answer(200, registry.rubbish)
                    return
                kind, _, number = urlsplit(self.path).path.rpartition("/")
                try:
                    if kind == "/schemas/ids":
                        registry.asked.append(int(number))
                        schema = registry._kept.get_schema(int(number))
                    elif kind.startswith("/subjects/") and kind.endswith("/versions"):
                        subject = unquote(kind.split("/")[2])
                        schema = registry._kept.get_version(subject, int(number)).schema
                    else:
                        raise SchemaRegistryError(404, 404, "not served here")
                except SchemaRegistryError as missing:
                    self._tell(404, {"error_code": missing.error_code, "message": missing.error_message})
                    return
                self._tell(
                    200,
                    {
                        "schema": schema.schema_str,
                        "schemaType": schema.schema_type,
                        "references": [
                            {"name": one.name, "subject": one.subject, "version": one.version}
                            for one in schema.references or ()
                        ],
                    },
                )

            def _tell(self, status: int, body: dict[str, object]) -> None:
                self._answer(status, json.dumps(body).encode())

            def _answer(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def put(self, subject: str, schema: str, kind: str = "AVRO", references: Sequence[str] = ()) -> int:
        """The id of a schema, which may name types of the first versions of other subjects."""
        named = [SchemaReference(one, one, 1) for one in references]
        return int(self._kept.register_schema(subject, Schema(schema, kind, named)))

    def subjects(self) -> set[str]:
        return set(self._kept.get_subjects())


@contextmanager
def registry() -> Iterator[TestRegistry]:
    """A started one."""
    one = TestRegistry().start()
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
