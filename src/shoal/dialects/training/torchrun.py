"""How a pod joins the group of torchrun: arguments in front of the container's own, or PET_ variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The group of an elastic job."""

    backend: str
    endpoint: str
    rdzv_id: str
    processes_per_node: str
    least_nodes: int
    most_nodes: int
    max_restarts: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    is_standalone: bool = False

    @property
    def nodes(self) -> str:
        return f"{self.least_nodes}:{self.most_nodes}"

    def arguments(self) -> list[str]:
        return [
            f"--rdzv_backend={self.backend}",
            f"--rdzv_endpoint={self.endpoint}",
            f"--rdzv_id={self.rdzv_id}",
            f"--nproc_per_node={self.processes_per_node}",
            f"--nnodes={self.nodes}",
        ]

    def variables(self) -> dict[str, str]:
        """Without what torchrun derives itself."""
        found = {
            "PET_RDZV_ENDPOINT": self.endpoint,
            "PET_RDZV_BACKEND": self.backend,
            "PET_NNODES": self.nodes,
        }
        if self.max_restarts is not None:
            found["PET_MAX_RESTARTS"] = str(self.max_restarts)
        if self.rdzv_id:
            found["PET_RDZV_ID"] = self.rdzv_id
        if self.conf:
            found["PET_RDZV_CONF"] = ",".join(f"{key}={value}" for key, value in self.conf.items())
        if self.is_standalone:
            found["PET_STANDALONE"] = ""
        return found
