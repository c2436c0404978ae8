"""A little HTTP server that answers change feeds as a test tells it, for what a connection can do wrong."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOLD = None
"""Among the pieces of an answer: nothing more comes, the connection stays."""


class FeedServer:
    """Each connection is answered by the next of the answers, the last one again and again.

    An answer gives pieces of a body, from what was asked. Behind the last piece the connection is cut in the
    middle of the body, unless the piece says that the feed has ended.
    """

    def __init__(self, *answers: Callable[[dict[str, str]], Iterator[bytes | None]]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
                with outer._lock:
                    outer.asked.append(asked)
                    answer = outer.answers[0]
                    if len(outer.answers) > 1:
                        outer.answers.pop(0)
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.close_connection = True
                data = b""
                with contextlib.suppress(OSError):
                    for piece in answer(asked):
                        if piece is HOLD:
                            outer.over.wait()
                            return
                        data += piece
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    if b'"end"' in data:
                        self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FeedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
