"""What `shoal install` applies to a cluster, and how it is applied."""
