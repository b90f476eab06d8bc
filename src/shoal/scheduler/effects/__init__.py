"""The requests of the scheduler: binds, evictions, volumes, and the status of pods, groups and queues."""
