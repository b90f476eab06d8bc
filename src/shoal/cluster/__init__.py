"""Clusters: the interface every program uses, and its implementations.

`client` is the interface. `embedded` implements it in this process on SQLite; `simulated` is the same store on a
virtual clock with faults a test can inject; `kubernetes` connects to a real API server over HTTP, by a way that
`kubeconfig` finds.
"""
