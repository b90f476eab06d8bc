"""PyTorchJob of training.kubedl.io/v1alpha1."""

from shoal.dialects.kubedl.dialect import DIALECT

__all__ = ["DIALECT"]
