"""What Kubernetes itself runs pods with: ReplicaSet and batch/v1 Job, as two more languages of the engine.

Only a cluster of our own needs them; on Kubernetes its own controllers do this work, and nobody should do it twice.

* `pods`: a pod made from the one template such an object has, and recognised again;
* `replicasets`: the whole of ReplicaSet, which remembers next to nothing;
* `jobs`: the language of Job in one value; `failing` and `job_reading` say what it asks for, `job_status` what became
  of it.
"""
