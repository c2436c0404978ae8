"""The running service: a supervisor, a Faust control process, a worker with the engine and the HTTP API."""
