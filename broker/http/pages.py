"""``/docs``: the API's description as a page, of files that are all served from here.

Swagger UI comes from the package fastapi-offline, which carries it for this purpose. The page's policy lets a
browser load and ask nothing from anywhere else.
"""

from __future__ import annotations

from importlib import resources

from fastapi import FastAPI
from fastapi.responses import Response

from tureen.errors import PackageMissing

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Swagger UI writes styles into its elements, and draws its icons from data: addresses."""

HEADERS = [
    ("X-Content-Type-Options", "nosniff"),  # what says it is JSON is never run as a script
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]
"""Headers that every answer has."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tureen: HTTP API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""
_FILE = {"Cache-Control": "no-cache"}
_ASSETS = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


def serve_pages(app: FastAPI) -> None:
    """Add the page and its files to the application, outside its description."""

    @app.get("/docs", include_in_schema=False)
    async def page() -> Response:
        return Response(_PAGE, headers={"Content-Security-Policy": POLICY}, media_type="text/html")

    @app.get("/docs/start.js", include_in_schema=False)
    async def start() -> Response:
        return Response(_START, headers=_FILE, media_type="text/javascript")

    def add(name: str, media_type: str) -> None:
        @app.get(f"/docs/{name}", include_in_schema=False)
        def asset() -> Response:  # a thread reads it
            return Response(_asset(name), headers=_FILE, media_type=media_type)

    for name, media_type in _ASSETS.items():
        add(name, media_type)


def _asset(name: str) -> bytes:
    """Raises PackageMissing."""
    try:
        return (resources.files("fastapi_offline") / "static" / name).read_bytes()
    except ModuleNotFoundError:
        raise PackageMissing(
            "fastapi-offline", hint="pip install 'tureen[server]'; /openapi.json needs none"
        ) from None
