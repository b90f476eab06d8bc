"""What the cluster remembers: tables in memory, a journal on disk, and a stretch of recent history."""

from shoal.cluster.store.sqlite import Journal, MemoryJournal, Row, SqliteJournal, StoreBroken, StoreInUse
from shoal.cluster.store.tables import HistoryLimits, Store, Table
from shoal.cluster.store.watch_cache import StoredChange

__all__ = [
    "HistoryLimits",
    "Journal",
    "MemoryJournal",
    "Row",
    "SqliteJournal",
    "Store",
    "StoreBroken",
    "StoreInUse",
    "StoredChange",
    "Table",
]
