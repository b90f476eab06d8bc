"""ReplicaSet, Deployment and Job: pods that are kept at a number, their rollouts, and pods that run to their end."""

from __future__ import annotations

APPS = """
ReplicaSet: As many equal pods as are wished for, at any time.
  apiVersion  string            API group and version this object is written in.
  kind        string            Kind of the object.
  metadata    ObjectMeta        Name, labels and what the server keeps about the object.
  spec        ReplicaSetSpec    How many pods, and what they look like.
  status      ReplicaSetStatus  How many there are. Written by the controller.

ReplicaSetSpec: How many pods, which ones count, and what new ones look like.
  minReadySeconds  int32            Seconds a pod must be ready before it counts as available; 0 at once.
  replicas         int32            How many pods there should be; 1 where nothing is said.
  selector!        LabelSelector    Which pods count. It must match the labels of the template.
  template         PodTemplateSpec  What new pods look like.

ReplicaSetStatus: How many pods there are.
  availableReplicas     int32                                             Pods that have been ready long enough.
  conditions            []ReplicaSetCondition @map(type) +merge(type)     What stands in the way, if anything.
  fullyLabeledReplicas  int32                                             Pods that carry all labels of the template.
  observedGeneration    int64                                             The generation the rest of it speaks of.
  readyReplicas         int32                                             Pods that are ready.
  replicas!             int32                                             Pods that count.
  terminatingReplicas   int32                                             Pods that are told to go and still there.

ReplicaSetCondition: One thing that is or is not so.
  lastTransitionTime  Time                     When it last changed.
  message             string                   Why, in a sentence.
  reason              string                   Why, in a word.
  status!             ConditionStatus          True, False or Unknown.
  type!               ReplicaSetConditionType  What is meant.

ReplicaSetConditionType = string

Deployment: Pods kept at a number by ReplicaSets, one for each version of the pod template.
  apiVersion  string            API group and version this object is written in.
  kind        string            Kind of the object.
  metadata    ObjectMeta        Name, labels and what the server keeps about the object.
  spec        DeploymentSpec    How many pods, what they look like, and how a new version is rolled out.
  status      DeploymentStatus  How far the rollout is. Written by the controller.

DeploymentSpec: How many pods, what they look like, and how a new version replaces the old one.
  minReadySeconds          int32               Seconds a pod must be ready before it counts as available; default 0.
  paused                   bool                Whether changes of the template are not rolled out for now.
  progressDeadlineSeconds  int32               Seconds without progress after which a rollout has failed; default 600.
  replicas                 int32               Number of pods; default 1.
  revisionHistoryLimit     int32               Old ReplicaSets kept for a rollback; default 10.
  selector!                LabelSelector       Which pods count. It must match the labels of the template.
  strategy                 DeploymentStrategy  How new pods replace old ones.
  template!                PodTemplateSpec     What the pods look like.

DeploymentStrategy: How new pods replace old ones.
  rollingUpdate  RollingUpdateDeployment  Limits of a rolling update.
  type           DeploymentStrategyType   Recreate or RollingUpdate; default RollingUpdate.

RollingUpdateDeployment: Limits of a rolling update, each a number or a percentage of replicas.
  maxSurge        IntOrString  Pods above replicas, rounded up; default 25%.
  maxUnavailable  IntOrString  Pods below replicas that may be unavailable, rounded down; default 25%.

DeploymentStatus: How far the rollout is.
  availableReplicas    int32                                            Pods that have been ready for minReadySeconds.
  collisionCount       int32                                            Collisions of ReplicaSet names so far.
  conditions           []DeploymentCondition @map(type) +merge(type)    Available, Progressing and ReplicaFailure.
  observedGeneration   int64                                            The generation the status refers to.
  readyReplicas        int32                                            Pods that are ready.
  replicas             int32                                            Pods of all ReplicaSets.
  terminatingReplicas  int32                                            Pods that are being deleted.
  unavailableReplicas  int32                                            Pods still required for full availability.
  updatedReplicas      int32                                            Pods of the current template.

DeploymentCondition: One aspect of the state of a Deployment.
  lastTransitionTime  Time                     When the status last changed.
  lastUpdateTime      Time                     When the condition was last updated.
  message             string                   Details for people.
  reason              string                   Reason of the last transition, in one word.
  status!             ConditionStatus          True, False or Unknown.
  type!               DeploymentConditionType  Which aspect.

DeploymentConditionType = string
DeploymentStrategyType = string
"""

# The first version took a missing selector from the template.
EXTENSIONS = APPS.partition("\nDeployment: ")[0].replace(
    "  selector!        LabelSelector    Which", "  selector         LabelSelector    Which"
)

BATCH = """
Job: Pods that run until enough of them have succeeded.
  apiVersion  string      API group and version this object is written in.
  kind        string      Kind of the object.
  metadata    ObjectMeta  Name, labels and what the server keeps about the object.
  spec        JobSpec     How many successes, how many pods at once, and what they look like.
  status      JobStatus   What became of it. Written by the controller.

JobSpec: How many successes are wanted, how many pods run at once, and what counts as failed.
  activeDeadlineSeconds    int64                 Seconds it may be active before it fails.
  backoffLimit             int32                 Failed pods it bears before it fails; 6 where nothing is said.
  backoffLimitPerIndex     int32                 Failed pods each index bears. Only with completions by index.
  completionMode           CompletionMode        Whether each success belongs to an index of its own.
  completions              int32                 Successes that are wanted. Without it one success is enough.
  managedBy                string                The controller that takes care of it, where it is not the usual one.
  manualSelector           bool                  Whether the selector is the user's own.
  maxFailedIndexes         int32                 Failed indexes it bears before it fails as a whole.
  parallelism              int32                 The most pods at once; 1 where nothing is said.
  podFailurePolicy         PodFailurePolicy      What a failed pod means, by its exit codes and conditions.
  podReplacementPolicy     PodReplacementPolicy  Whether a pod is replaced while it is still ending.
  selector                 LabelSelector         Which pods are its own. Usually the server's to write.
  successPolicy            SuccessPolicy         Which successes are enough. Only with completions by index.
  suspend                  bool                  Whether it rests: no pods until this is false.
  template!                PodTemplateSpec       What its pods look like.
  ttlSecondsAfterFinished  int32                 Seconds after its end at which it is deleted.

JobStatus: What became of a job.
  active                   int32                                      Pods that have not ended and are not told to go.
  completedIndexes         string                                     Indexes that succeeded, as ranges: 1,3-5,7.
  completionTime           Time                                       When it was complete.
  conditions               []JobCondition @atomic +merge(type)        How it stands: Complete, Failed, Suspended.
  failed                   int32                                      Pods that failed.
  failedIndexes            string                                     Indexes that failed for good, as ranges.
  ready                    int32                                      Active pods that are ready.
  startTime                Time                                       When it was first looked at, or last resumed.
  succeeded                int32                                      Pods that succeeded.
  terminating              int32                                      Pods that are told to go and still there.
  uncountedTerminatedPods  UncountedTerminatedPods                    Pods that ended and are about to be counted.

UncountedTerminatedPods: Pods that ended and still hold their finalizer.
  failed     []UID @set  Those that failed.
  succeeded  []UID @set  Those that succeeded.

JobCondition: One thing that is or is not so.
  lastProbeTime       Time              When it was last looked at.
  lastTransitionTime  Time              When it last changed.
  message             string            Why, in a sentence.
  reason              string            Why, in a word.
  status!             ConditionStatus   True, False or Unknown.
  type!               JobConditionType  What is meant.

PodFailurePolicy: What a failed pod means; the first rule that matches is the one.
  rules!  []PodFailurePolicyRule @atomic  The rules, in order.

PodFailurePolicyRule: What to do about a failed pod that matches.
  action!          PodFailurePolicyAction                            What to do.
  onExitCodes      PodFailurePolicyOnExitCodesRequirement            Exit codes that match.
  onPodConditions  []PodFailurePolicyOnPodConditionsPattern @atomic  Conditions of the pod that match; one is enough.

PodFailurePolicyOnExitCodesRequirement: Exit codes of containers.
  containerName  string                               The container that is meant; all where nothing is said.
  operator!      PodFailurePolicyOnExitCodesOperator  Whether the code is among the values.
  values!        []int32 @set                         The codes.

PodFailurePolicyOnPodConditionsPattern: A condition of a pod.
  status  ConditionStatus   What it must be; True where nothing is said.
  type!   PodConditionType  Which condition.

SuccessPolicy: Which successes are enough; the first rule that holds ends the job.
  rules!  []SuccessPolicyRule @atomic  The rules.

SuccessPolicyRule: Successes that are enough.
  succeededCount    int32   How many, among the indexes named or among all.
  succeededIndexes  string  Which indexes, as ranges.

CompletionMode = string
JobConditionType = string
PodFailurePolicyAction = string
PodFailurePolicyOnExitCodesOperator = string
PodReplacementPolicy = string
"""
