"""Clusters: the port every program uses, and what stands behind it.

`port` is the promise. `embedded` keeps it in this process on SQLite; `simulated` is the same store on a
virtual clock with faults a test can inject; `kubernetes` speaks to a real API server over HTTP, by a way that
`connecting` finds.
"""
