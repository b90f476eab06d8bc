"""What the cluster remembers: tables in memory, a journal on disk, and a stretch of recent history."""

from shoal.cluster.store.sqlite import Journal, MemoryJournal, Row, SqliteJournal, StoreBroken, StoreInUse
from shoal.cluster.store.tables import HistoryLimits, Store, Table
from shoal.cluster.store.watch_cache import Change

__all__ = [
    "Change",
    "HistoryLimits",
    "Journal",
    "MemoryJournal",
    "Row",
    "SqliteJournal",
    "Store",
    "StoreBroken",
    "StoreInUse",
    "Table",
]
