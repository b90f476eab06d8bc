"""The workload APIs of Kubernetes itself, ReplicaSet and batch/v1 Job, as two more dialects of the engine.

Served by the embedded cluster only: on Kubernetes, kube-controller-manager runs these kinds.

    pod_builder         a pod from the one template of such an object, and how it is matched again
    template_dialect    what the two have in common
    adoption            orphaned pods that match a selector
    replica_sets        ReplicaSet
    batch_job           batch/v1 Job; uses batch_job_spec, pod_failure_policy and batch_job_status
"""
