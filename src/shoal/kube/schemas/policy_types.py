"""What limits others: quotas of namespaces, budgets for disruptions, classes of storage."""

from __future__ import annotations

TEXT = """
ResourceQuota: What all objects of a namespace may ask for together.
  apiVersion  string               API group and version this object is written in.
  kind        string               Kind of the object.
  metadata    ObjectMeta           Name, labels and what the server keeps about the object.
  spec        ResourceQuotaSpec    The limits.
  status      ResourceQuotaStatus  The limits in force, and how much of them is taken.

ResourceQuotaSpec: Limits for a namespace, and which of its objects they are for.
  hard           ResourceList                 The most of each resource, or number of objects, in all.
  scopeSelector  ScopeSelector                Which objects it is for, by expressions; all must hold.
  scopes         []ResourceQuotaScope         Which objects it is for, by name; all must hold.

ResourceQuotaStatus: The limits in force, and how much of them is taken.
  hard  ResourceList  The limits in force.
  used  ResourceList  How much of each is taken.

ScopeSelector (atomic): A choice of objects by their scopes.
  matchExpressions  []ScopedResourceSelectorRequirement  Requirements on scopes; all must hold.

ScopedResourceSelectorRequirement: A condition on one scope.
  operator!   ScopeSelectorOperator  How the scope relates to the values.
  scopeName!  ResourceQuotaScope     The scope.
  values      []string               The values for In and NotIn; empty for Exists and DoesNotExist.

TopologySelectorTerm (atomic): A choice of places by labels of their nodes.
  matchLabelExpressions  []TopologySelectorLabelRequirement  Labels and their values; all must hold.

TopologySelectorLabelRequirement: A label and the values it may have.
  key!     string    The label.
  values!  []string  One of these.

ResourceQuotaScope = string
ScopeSelectorOperator = string of In NotIn Exists DoesNotExist
"""

POLICY = """
PodDisruptionBudget: How many pods of a kind may be sent away at a time.
  apiVersion  string                     API group and version this object is written in.
  kind        string                     Kind of the object.
  metadata    ObjectMeta                 Name, labels and what the server keeps about the object.
  spec        PodDisruptionBudgetSpec    Which pods, and how many have to stay.
  status      PodDisruptionBudgetStatus  How many may go now.

PodDisruptionBudgetSpec: Which pods it is about, and how many of them have to stay; one of the two numbers is set.
  maxUnavailable              IntOrString                     How many, or which part, may be away.
  minAvailable                IntOrString                     How many, or which part, have to stay.
  selector                    LabelSelector                   The pods it is about; an empty one: all of the namespace.
  unhealthyPodEvictionPolicy  UnhealthyPodEvictionPolicyType  When pods may go that are not healthy.

PodDisruptionBudgetStatus: How many pods may go now, and why.
  conditions           []Condition @map(type) +merge(type)  Aspects of its state.
  currentHealthy!      int32                  Healthy pods there are.
  desiredHealthy!      int32                  Healthy pods there have to be.
  disruptedPods        [string]Time           Pods that were told to go and are still there, and when that was.
  disruptionsAllowed!  int32                  Pods that may go now.
  expectedPods!        int32                  Pods it counts in all.
  observedGeneration   int64                  The generation this was worked out for.

UnhealthyPodEvictionPolicyType = string of IfHealthyBudget AlwaysAllow
"""

STORAGE = """
StorageClass: A kind of storage, and how volumes of it are made.
  allowVolumeExpansion  bool                           Whether volumes may grow.
  allowedTopologies     []TopologySelectorTerm @atomic  Where volumes may be made; everywhere where empty.
  apiVersion            string                         API group and version this object is written in.
  kind                  string                         Kind of the object.
  metadata              ObjectMeta                     Name, labels and what the server keeps about the object.
  mountOptions          []string                       Options for mounting its volumes.
  parameters            [string]string                 Settings for whoever makes its volumes.
  provisioner!          string                         Who makes its volumes.
  reclaimPolicy         PersistentVolumeReclaimPolicy  What happens to a volume once its claim is gone.
  volumeBindingMode     VolumeBindingMode              When a claim gets its volume: at once, or with its first pod.

VolumeBindingMode = string of Immediate WaitForFirstConsumer
"""
