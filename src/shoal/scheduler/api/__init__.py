"""The scheduler's API: PodGroup, Queue, Command and HyperNode, as definitions and as readers. Pure."""
