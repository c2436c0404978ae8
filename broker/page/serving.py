"""``/`` and ``/page/...``: the page, of files that come with the package.

The files hold no data, so they are open; all that the page shows it asks of the public API, with the token of
whoever looks. The policy lets a browser load and ask nothing from anywhere else. Its nonce, another one for
each load, is for the rules that the editor writes for itself.
"""

from __future__ import annotations

import hashlib
import mimetypes
import secrets
from importlib import resources

from fastapi import FastAPI, Request
from fastapi.responses import Response

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NONCE = "{{nonce}}"
_HEADERS = {"Cache-Control": "no-cache", "Referrer-Policy": "no-referrer"}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".txt": "text/plain"}


class PageFiles:
    """The files by their paths below ``static``; read once."""

    def __init__(self) -> None:
        self._index = ""
        self._files: dict[str, tuple[bytes, str, str]] = {}
        root = resources.files("broker.page") / "static"

        def read(folder: resources.abc.Traversable, prefix: str) -> None:
            for one in folder.iterdir():
                if one.is_dir():
                    read(one, f"{prefix}{one.name}/")
                    continue
                data = one.read_bytes()
                if prefix == "" and one.name == "index.html":
                    self._index = data.decode()
                    continue
                ending = one.name[one.name.rfind(".") :]
                kind = _TYPES.get(ending) or mimetypes.guess_type(one.name)[0] or "application/octet-stream"
                self._files[prefix + one.name] = (data, kind, hashlib.sha256(data).hexdigest()[:20])

        read(root, "")

    def index(self) -> Response:
        """The page itself."""
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": _POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
        return Response(
            self._index.replace(_NONCE, nonce), headers=_HEADERS | headers, media_type="text/html"
        )

    def file(self, path: str, known: str | None) -> Response | None:
        """A file, or 304 where the browser has it already; None: there is none."""
        found = self._files.get(path)
        if found is None:
            return None
        data, kind, digest = found
        headers = _HEADERS | {"ETag": f'"{digest}"'}
        if known == f'"{digest}"':
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=kind)


def serve_page(app: FastAPI) -> None:
    """Add the page to the application, outside its description."""
    files = PageFiles()

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return files.index()

    @app.get("/page/{path:path}", include_in_schema=False)
    async def file(request: Request, path: str) -> Response:
        found = files.file(path, request.headers.get("if-none-match"))
        return Response(status_code=404) if found is None else found
