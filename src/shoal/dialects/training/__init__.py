"""What the languages for training jobs share. It names none of them.

replicas.py          the roles of a job, and what they have in common
restart_rules.py     restart policies and tables of exit codes as retries and failure rules
run_policy.py        deadline, TTL, backoff limit and clean-up as policies of the engine
torchrun.py          how a pod finds the group of torchrun: as arguments, or as PET_ variables
pod_environment.py   variables and ports of containers
owned_objects.py     a headless Service per replica, and the PodGroups
conditions.py        the list of conditions of a job
replica_status.py    counts of pods per role
training_dialect.py  the base of such a language
"""
