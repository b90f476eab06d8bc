"""A node: turns bound pods into processes on this machine, keeps their logs, reports their status.

`agent` decides and reports, through the cluster port alone. `sandbox` is where processes live: it outlives
the agent, so that an agent killed at any moment finds its pods again.
"""
