"""Elastic distributed training from the job files people already have."""

__version__ = "0.1.0"
