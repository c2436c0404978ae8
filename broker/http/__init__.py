"""The public HTTP API (FastAPI) and the internal one on the unix socket."""
