"""PyTorchJob of kubeflow.org/v1."""

from shoal.dialects.kubeflow.dialect import DIALECT

__all__ = ["DIALECT"]
