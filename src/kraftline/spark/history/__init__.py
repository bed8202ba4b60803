"""History as tables: what was true from when to when, what changed, what was unhealthy.

`write_history` makes them of staged records: metadata's own replay, done by Spark's tasks.
"""

from kraftline.spark.history.exchange import OpenFile, RecordFile
from kraftline.spark.history.write import write_history

__all__ = ["OpenFile", "RecordFile", "write_history"]
