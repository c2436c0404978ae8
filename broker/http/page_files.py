"""``/`` and ``/page/...``: the page, of files that come with the package.

The files hold no data, so they are open; all that the page shows it asks of the public API, with the token of
whoever looks. The policy lets a browser load and ask nothing from anywhere else. Its nonce, another one for
each load, is for the rules that the editor writes for itself.

Files are read once, at the start, and found by their whole path, so that no path leads out of the folder. A
file is compressed when it is first asked for. Browsers ask each time whether theirs is still the one (304),
since a broker may be replaced by another version at the same address.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import mimetypes
import secrets
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

import tureen
from broker.http.errors import plain

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
INDEX = "index.html"
METHODS = ["GET", "HEAD"]

COMPRESSED_FROM_BYTES = 1_024
"""Smaller files are one packet either way."""

PRELOADED = ("app.js", "lib/", "vendor/core.js", "views/")
"""Modules that every start of the page needs: the browser asks for all at once, and not for one after the
other finds an import."""

_NONCE = "{{nonce}}"
_PRELOAD = "{{preload}}"
_HEADERS = {"Cache-Control": "no-cache", "Referrer-Policy": "no-referrer"}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".txt": "text/plain"}


@dataclass
class _File:
    data: bytes
    media_type: str
    digest: str
    compressed: bytes | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def gzipped(self) -> bytes | None:
        """Return the file compressed with gzip; None: compression gains nothing."""
        if len(self.data) < COMPRESSED_FROM_BYTES:
            return None
        async with self.lock:
            if self.compressed is None:
                self.compressed = await asyncio.to_thread(gzip.compress, self.data, mtime=0)
        return self.compressed


class PageFiles:
    """The files by their paths below ``static``."""

    def __init__(self) -> None:
        found = dict(_read(resources.files("broker.page") / "static", ""))
        modules = sorted(path for path in found if path.endswith(".js") and path.startswith(PRELOADED))
        links = "\n".join(f'<link rel="modulepreload" href="page/{path}">' for path in modules)
        self._index = found.pop(INDEX).decode().replace(_PRELOAD, links)
        self._files = {path: _File(data, _media_type(path), _digest(data)) for path, data in found.items()}

    @property
    def paths(self) -> list[str]:
        """Paths of all files but the page itself."""
        return sorted(self._files)

    def index(self) -> Response:
        """The page itself."""
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": POLICY.format(nonce=nonce), "Cache-Control": "no-store"}
        text = self._index.replace(_NONCE, nonce)
        return Response(text, headers=_HEADERS | headers, media_type="text/html")

    async def file(self, path: str, known: str, encodings: str) -> Response | None:
        """A file, or 304 where the browser has it already; None: there is none.

        known: the header If-None-Match. encodings: the header Accept-Encoding.
        """
        found = self._files.get(path)
        if found is None:
            return None
        data = await found.gzipped() if _takes_gzip(encodings) else None
        tag = f'"{found.digest}"' if data is None else f'"{found.digest}-gzip"'
        headers = _HEADERS | {"ETag": tag, "Vary": "Accept-Encoding"}
        if tag in known:
            return Response(status_code=304, headers=headers)
        if data is not None:
            headers["Content-Encoding"] = "gzip"
        return Response(found.data if data is None else data, headers=headers, media_type=found.media_type)


def serve_page(app: FastAPI) -> None:
    """Add the page to the application, outside its description."""
    files = PageFiles()

    @app.api_route("/", methods=METHODS, include_in_schema=False)
    async def index(request: Request) -> Response:
        wanted = request.headers.get("accept", "")
        if "text/html" in wanted:
            return files.index()
        base = str(request.base_url)
        known = {
            "name": "Tureen", "version": tureen.__version__, "page": base, "docs": f"{base}docs",
            "api": f"{base}openapi.json", "status": f"{base}status",
        }  # fmt: skip
        if "application/json" in wanted:
            return Response(orjson.dumps(known), media_type="application/json")
        return PlainTextResponse(
            f"Tureen {tureen.__version__}\nThe page: {base} in a browser\n"
            f"The API:  {known['docs']} for people, {known['api']} for programs\n"
        )

    @app.api_route("/page/{path:path}", methods=METHODS, include_in_schema=False)
    async def file(request: Request, path: str) -> Response:
        headers = request.headers
        found = await files.file(path, headers.get("if-none-match", ""), headers.get("accept-encoding", ""))
        return plain(404, "not_found", "the page has no such file") if found is None else found


def _read(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    """Paths below a folder, with what the files hold."""
    found = []
    for one in folder.iterdir():
        path = prefix + one.name
        found += _read(one, f"{path}/") if one.is_dir() else [(path, one.read_bytes())]
    return found


def _takes_gzip(encodings: str) -> bool:
    """
    >>> _takes_gzip("gzip, deflate, br"), _takes_gzip("br, gzip;q=0"), _takes_gzip("")
    (True, False, False)
    """
    for one in encodings.split(","):
        name, _, weight = one.replace(" ", "").partition(";q=")
        if name.lower() == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


def _media_type(path: str) -> str:
    ending = path[path.rfind(".") :]
    return _TYPES.get(ending) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:20]
