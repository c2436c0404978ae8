"""A Schema Registry for one machine, over HTTP: the client library's registry in memory, served.

For trying things and for tests; what is registered is gone with the process. It gives ids, takes any schema
as a next version, and has of Confluent's interface what serializers and readers of records ask for::

    POST /subjects/{subject}/versions              GET /schemas/ids/{id}
    GET  /subjects/{subject}/versions/{version}    GET /subjects

``python -m topics.registry_server 8081`` runs it until it is interrupted.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

PORT = 8081
BODY_BYTES_MAX = 16 * 1024 * 1024
POLL_S = 0.02

Reply = tuple[int, bytes]
"""A status and a body."""


class RegistryServer:
    """Listens on the loopback address. May be stopped and started again; what was registered stays."""

    def __init__(self, port: int = PORT) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._kept = SchemaRegistryClient.new_client({"url": "mock://kept"})
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Serve from a thread. Raises OSError where the port is taken."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answered(b"")

            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                self._answered(self.rfile.read(min(size, BODY_BYTES_MAX)))

            def _answered(self, body: bytes) -> None:
                status, data = registry.reply(
                    self.command, self.path, body, self.headers.get("Authorization")
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def put(self, subject: str, schema: str, kind: str = "AVRO", references: Sequence[str] = ()) -> int:
        """The id of a schema, which may name types of the first versions of other subjects."""
        named = [SchemaReference(one, one, 1) for one in references]
        return int(self._kept.register_schema(subject, Schema(schema, kind, named)))

    def subjects(self) -> set[str]:
        """Under which schemas stand."""
        return set(self._kept.get_subjects())

    def reply(self, method: str, path: str, body: bytes, authorization: str | None) -> Reply:
        """What a request is answered with. authorization: its header."""
        steps = [unquote(one) for one in urlsplit(path).path.strip("/").split("/")]
        try:
            return told(200, self._registered(steps, body) if method == "POST" else self._asked(steps))
        except SchemaRegistryError as missing:
            return told(404, {"error_code": missing.error_code, "message": missing.error_message})
        except (ValueError, KeyError, TypeError) as error:
            return told(422, {"error_code": 422, "message": f"this is no request: {error}"})

    def _registered(self, steps: Sequence[str], body: bytes) -> Any:
        match steps:
            case ["subjects", subject, "versions"]:
                given: Mapping[str, Any] = json.loads(body)
                references = [
                    SchemaReference(one["name"], one["subject"], one["version"])
                    for one in given.get("references") or ()
                ]
                schema = Schema(given["schema"], given.get("schemaType", "AVRO"), references)
                return {"id": self._kept.register_schema(subject, schema)}
        raise _not_served()

    def _asked(self, steps: Sequence[str]) -> Any:
        match steps:
            case ["subjects"]:
                return sorted(self.subjects())
            case ["schemas", "ids", number]:
                return _schema(self._kept.get_schema(int(number)))
            case ["subjects", subject, "versions", version]:
                return _schema(self._kept.get_version(subject, int(version)).schema)
        raise _not_served()


def told(status: int, body: Any) -> Reply:
    """A reply in JSON."""
    return status, json.dumps(body).encode()


def _not_served() -> SchemaRegistryError:
    return SchemaRegistryError(404, 404, "not served here")


def _schema(schema: Schema) -> dict[str, Any]:
    return {
        "schema": schema.schema_str,
        "schemaType": schema.schema_type,
        "references": [
            {"name": one.name, "subject": one.subject, "version": one.version}
            for one in schema.references or ()
        ],
    }


def main() -> None:
    """Serve on the port that is given, until it is interrupted."""
    served = RegistryServer(int(sys.argv[1]) if len(sys.argv) > 1 else PORT)
    served.start()
    print(f"schema registry at {served.url}", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        served.stop()


if __name__ == "__main__":
    main()
