"""The control process: Faust agents on the queries, sources and snapshot-requests topics.

The only member of a consumer group in the broker. It keeps the registry, a table derived from ``.queries``
and ``.sources``, hands every change to the worker over a unix socket, and writes ``.status`` and replies.
Imports neither numpy nor pyarrow nor the engine.
"""

from broker.runtime.garbage import collect_seldom
from broker.runtime.heap import share_one_heap

collect_seldom()  # before the imports: looking for cycles would take a tenth of their time
share_one_heap()  # before there are threads
