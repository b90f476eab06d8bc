"""The old name of elastic PyTorch, for job files that still use it. Forwards to torchrun."""
