"""The worker process, put together from its parts (``python -m broker.worker``)."""

from broker.runtime.garbage import collect_seldom
from broker.runtime.heap import share_one_heap

collect_seldom()  # before the imports: looking for cycles would take a tenth of their time
share_one_heap()  # before numpy is imported, which begins threads
