"""What the scheduler knows of the cluster: informer events as the planner's types."""
