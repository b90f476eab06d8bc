"""A whole cluster on this machine, as a library: store, API server, controllers, scheduler and nodes."""
