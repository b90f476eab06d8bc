"""The store: tables in memory, a journal on disk, and the recent history that watches read."""

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
