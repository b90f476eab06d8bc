"""Where pods live: one keeper process per pod, its addresses and names, its processes and their logs.

A keeper is to a pod what a container shim is elsewhere. It is not a child that dies with the agent: it goes
on holding the pod's processes, writing their logs and noting how they ended, and an agent that starts later
finds it by its socket.
"""
