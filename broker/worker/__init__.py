"""The worker process, put together from its parts (``python -m broker.worker``)."""
