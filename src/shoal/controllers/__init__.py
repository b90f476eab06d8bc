"""What kube-controller-manager does, for the embedded cluster."""
