"""A Schema Registry for one machine, over HTTP: the client library's registry in memory, served.

For trying things and for tests; what is registered is gone with the process. It gives ids, takes any schema
as a next version, and has of Confluent's interface what serializers and readers of records ask for::

    POST /subjects/{subject}/versions              GET /schemas/ids/{id}
    POST /subjects/{subject}                       GET /subjects/{subject}/versions
    GET  /subjects/{subject}/versions/{version}    GET /subjects

A version is a number or ``latest``. With ``?format=serialized`` a schema of Protobuf is the base64 of its
descriptor, which the client library's deserializer of Protobuf asks for.

``python -m topics.registry_server 8081`` runs it until it is interrupted.
"""

from __future__ import annotations

import argparse
import base64
import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.common.schema_registry_client import RegisteredSchema
from confluent_kafka.schema_registry.error import SchemaRegistryError

from topics.formats.protobuf_schema import parse_schema
from topics.formats.unreadable import UnreadableSchema

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
        asked = urlsplit(path)
        steps = [unquote(one) for one in asked.path.strip("/").split("/")]
        serialized = parse_qs(asked.query).get("format") == ["serialized"]
        try:
            if method == "POST":
                given = json.loads(body)
                if not isinstance(given, dict):
                    raise ValueError("the body is no JSON object")
                return told(200, self._given(steps, given))
            return told(200, self._asked(steps, serialized=serialized))
        except SchemaRegistryError as missing:
            return told(404, {"error_code": missing.error_code, "message": missing.error_message})
        except (ValueError, KeyError, TypeError) as error:
            return told(422, {"error_code": 422, "message": f"this is no request: {error}"})

    def _given(self, steps: Sequence[str], given: Mapping[str, Any]) -> Any:
        """What comes of a schema: registered, or looked for among those of a subject."""
        references = [
            SchemaReference(one["name"], one["subject"], one["version"])
            for one in given.get("references") or ()
        ]
        schema = Schema(given["schema"], given.get("schemaType", "AVRO"), references)
        match steps:
            case ["subjects", subject, "versions"]:
                return {"id": self._kept.register_schema(subject, schema)}
            case ["subjects", subject]:
                return self._version(self._kept.lookup_schema(subject, schema), serialized=False)
        raise _not_served()

    def _asked(self, steps: Sequence[str], *, serialized: bool) -> Any:
        match steps:
            case ["subjects"]:
                return sorted(self.subjects())
            case ["schemas", "ids", number]:
                return self._schema(self._kept.get_schema(int(number)), serialized=serialized)
            case ["subjects", subject, "versions"]:
                versions = self._kept.get_versions(subject)
                if not versions:
                    raise SchemaRegistryError(404, 40401, f"there is no subject {subject!r}")
                return sorted(versions)
            case ["subjects", subject, "versions", "latest"]:
                return self._version(self._kept.get_latest_version(subject), serialized=serialized)
            case ["subjects", subject, "versions", version]:
                found = self._kept.get_version(subject, int(version))
                return self._version(found, serialized=serialized)
        raise _not_served()

    def _version(self, one: RegisteredSchema, *, serialized: bool) -> dict[str, Any]:
        told = {"subject": one.subject, "version": one.version, "id": one.schema_id}
        return told | self._schema(one.schema, serialized=serialized)

    def _schema(self, schema: Schema, *, serialized: bool) -> dict[str, Any]:
        text = schema.schema_str
        if serialized and schema.schema_type == "PROTOBUF":
            text = self._descriptor(schema)
        return {
            "schema": text,
            "schemaType": schema.schema_type,
            "references": [
                {"name": one.name, "subject": one.subject, "version": one.version}
                for one in schema.references or ()
            ],
        }

    def _descriptor(self, schema: Schema) -> str:
        """The base64 of the descriptor of a schema in Protobuf."""
        texts: dict[str, str] = {}
        waiting = list(schema.references or ())
        while waiting:
            one = waiting.pop()
            if str(one.name) not in texts:
                inner = self._kept.get_version(str(one.subject), int(one.version or 1)).schema
                texts[str(one.name)] = str(inner.schema_str)
                waiting += inner.references or ()
        try:
            return base64.b64encode(parse_schema(str(schema.schema_str), texts).serialized_pb).decode()
        except UnreadableSchema as unreadable:
            raise ValueError(str(unreadable)) from None


def told(status: int, body: Any) -> Reply:
    """A reply in JSON."""
    return status, json.dumps(body).encode()


def _not_served() -> SchemaRegistryError:
    return SchemaRegistryError(404, 404, "not served here")


def main() -> None:
    """Serve on the port that is given, until it is interrupted."""
    options = argparse.ArgumentParser(
        "python -m topics.registry_server",
        description="A schema registry in memory, for trying things: what is registered is gone with it.",
    )
    options.add_argument("port", type=int, nargs="?", default=PORT, help=f"default: {PORT}")
    served = RegistryServer(options.parse_args().port)
    try:
        served.start()
    except (OSError, OverflowError) as refused:
        options.exit(1, f"port {served.port} cannot be listened on: {refused}\n")
    print(f"schema registry at {served.url}", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        served.stop()


if __name__ == "__main__":
    main()
