"""The requests of the scheduler: binds, evictions, volumes, and the status and Events of pods, groups and queues.

`effects.Effects` is the interface: it carries out decisions and reports what became of them as events for the cache.
Nothing here decides, and nothing here writes the cache.
"""
