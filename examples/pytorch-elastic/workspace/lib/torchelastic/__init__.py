"""The old name of elastic PyTorch, for job files that still say it. What is here forwards to today's torchrun."""
