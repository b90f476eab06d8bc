"""What operator, scheduler and controllers share: runnables, work queues, leader election, health pages and metrics."""
