"""Programs that run inside a job's containers."""
