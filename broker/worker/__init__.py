"""The worker process, put together from its parts (``python -m broker.worker``)."""

from broker.runtime.garbage import collect_seldom

collect_seldom()  # before the imports: looking for cycles would take a tenth of their time
