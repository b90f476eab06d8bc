"""The text of every message of the operator and the engine, by code."""

from __future__ import annotations

from shoal.engine.messages import CATALOG as ENGINE
from shoal.kube.messages import Catalog

CATALOG = ENGINE | Catalog(
    {
        "CreatesWithheld": "Pods not created, because the API server rejected {target}: {tasks}. {cause}",
        "InvalidManifest": "{cause}",
        "LedgerUnreadable": "{cause}",
        "OwnedObjectUnavailable": "{kind} {name} could not be created: {cause}",
        "OwnedObjectUnavailable.Rejected": "{kind} {name} is rejected: {cause}",
        "GateClosed": "{cause}",
        "StateTooLarge": "{text}: {cause}. Use fewer tasks, or split the job.",
    }
)
