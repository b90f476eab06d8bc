"""Pods: what is to run, where it may run, and what was seen of it."""

from __future__ import annotations

TEXT = """
Pod: A group of containers that run together on one node and share addresses and volumes.
  apiVersion  string      API group and version this object is written in.
  kind        string      Kind of the object.
  metadata    ObjectMeta  Name, labels and what the server keeps about the object.
  spec        PodSpec     What is to run, and how.
  status      PodStatus   What was last seen of it. Written by the node that runs it.

PodSpec: What a pod is to run, and where it may run.
  activeDeadlineSeconds          int64                   Seconds the pod may run before it is ended and counted as
      failed.
  affinity                       Affinity                Rules that draw the pod to nodes or push it away.
  automountServiceAccountToken   bool                    Whether a token of the service account is mounted.
  containers!                    []Container @map(name) +merge(name)  The containers. At least one; their names cannot
      be changed.
  dnsConfig                      PodDNSConfig            Settings added to those that follow from dnsPolicy.
  dnsPolicy                      DNSPolicy               Where the pod's name resolution comes from.
  enableServiceLinks             bool                    Whether each Service of the namespace is described by
      environment variables.
  ephemeralContainers            []EphemeralContainer @map(name) +merge(name)  Containers added to a running pod for
      looking into it.
  hostAliases                    []HostAlias @map(ip) +merge(ip)  Extra lines for the pod's hosts file.
  hostIPC                        bool                    Whether the pod shares the node's IPC namespace.
  hostNetwork                    bool                    Whether the pod uses the node's own network and addresses.
  hostPID                        bool                    Whether the pod sees the node's processes.
  hostUsers                      bool                    Whether the pod uses the node's user namespace; false gives it
      its own.
  hostname                       string                  The pod's host name; its own name where empty.
  hostnameOverride               string                  The exact host name seen inside the pod, whatever else is set.
  imagePullSecrets               []LocalObjectReference @map(name) +merge(name)  Secrets with credentials for fetching
      images.
  initContainers                 []Container @map(name) +merge(name)  Containers that run one after the other, each to
      success, before the others start.
  nodeName                       string                  The node the pod is placed on. Set by a scheduler.
  nodeSelector                   [string]string @atomic  Labels a node must have for the pod to run there.
  os                             PodOS                   The operating system the containers are made for.
  overhead                       ResourceList            Resources running the pod costs beside its containers.
  preemptionPolicy               PreemptionPolicy        Whether pods of lower priority may be removed to make room for
      this one.
  priority                       int32                   The pod's importance; higher is scheduled first. Follows from
      priorityClassName.
  priorityClassName              string                  Name of the PriorityClass that sets the priority.
  readinessGates                 []PodReadinessGate      Further conditions that must be true for the pod to count as
      ready.
  resourceClaims                 []PodResourceClaim @map(name) +merge(name) +retainKeys  Claims on devices that must be
      met before the pod starts.
  resources                      ResourceRequirements    Resources the containers may use together.
  restartPolicy                  RestartPolicy           When containers that ended are started again.
  runtimeClassName               string                  Name of the RuntimeClass that runs the pod.
  schedulerName                  string                  The scheduler that is to place the pod.
  schedulingGates                []PodSchedulingGate @map(name) +merge(name)  While any is left, schedulers pass the
      pod by.
  schedulingGroup                PodSchedulingGroup      The group of pods it is to be scheduled with.
  securityContext                PodSecurityContext      Security settings for all containers.
  serviceAccount                 string                  Older name of serviceAccountName.
  serviceAccountName             string                  The service account the pod acts as.
  setHostnameAsFQDN              bool                    Whether the host name is the full domain name.
  shareProcessNamespace          bool                    Whether the containers see each other's processes.
  subdomain                      string                  With it the pod is known as hostname.subdomain.namespace.svc.
  terminationGracePeriodSeconds  int64                   Seconds between the request to end and the kill.
  tolerations                    []Toleration            Node taints the pod puts up with.
  topologySpreadConstraints  []TopologySpreadConstraint @map(topologyKey,whenUnsatisfiable) +merge(topologyKey)  How
      evenly pods must be spread over parts of the cluster.
  volumes                        []Volume @map(name) +merge(name) +retainKeys  The volumes its containers can mount.

PodStatus: What was last seen of a pod.
  allocatedResources                    ResourceList                 Resources set aside for the pod.
  conditions                            []PodCondition @map(type) +merge(type)  Aspects of the pod's state: scheduled,
      initialised, ready.
  containerStatuses                     []ContainerStatus            State of each container.
  ephemeralContainerStatuses            []ContainerStatus            State of each ephemeral container.
  extendedResourceClaimStatus           PodExtendedResourceClaimStatus  The claim that stands in for extended resources
      the containers ask for.
  hostIP                                string                       Address of the node.
  hostIPs                               []HostIP +merge(ip)          All addresses of the node.
  initContainerStatuses                 []ContainerStatus            State of each init container.
  message                               string                       Why the pod is in this state, for people.
  nodeAllocatableResourceClaimStatuses  []NodeAllocatableResourceClaimStatus  What claims take from the node's
      allocatable resources.
  nominatedNodeName                     string                       The node where room is being made for the pod.
  observedGeneration                    int64                        The generation of the pod this status is about.
  phase                                 PodPhase                     Where the pod is in its life.
  podIP                                 string                       The pod's address.
  podIPs                                []PodIP @map(ip) +merge(ip)  All addresses of the pod.
  qosClass                              PodQOSClass                  How sure the pod is of its resources, by its
      requests and limits.
  reason                                string                       One word: why the pod is in this state.
  resize                                PodResizeStatus              Older report on a change of resources under way.
  resourceClaimStatuses                 []PodResourceClaimStatus @map(name) +merge(name) +retainKeys  The claim made
      for each entry of resourceClaims.
  resources                             ResourceRequirements         Resources in force for the whole pod.
  startTime                             Time                         When the node took the pod on.

PodCondition: One aspect of a pod's state.
  lastProbeTime       Time              When it was last looked at.
  lastTransitionTime  Time              When the status last changed from one value to another.
  message             string            The details for people.
  observedGeneration  int64             The generation of the pod this was observed at.
  reason              string            One word for programs: why it is so.
  status!             ConditionStatus   True, False or Unknown.
  type!               PodConditionType  Name of the aspect.

PodOS: The operating system of a pod's containers.
  name!  OSName  linux or windows.

PodReadinessGate: A condition that must be true for the pod to be ready.
  conditionType!  PodConditionType  The type of the condition.

PodResourceClaim: A claim on devices, under a name containers can refer to.
  name!                      string  Name of the claim within the pod.
  resourceClaimName          string  An existing ResourceClaim of the namespace.
  resourceClaimTemplateName  string  Template to make a ResourceClaim from, for this pod alone.

PodSchedulingGate: A reason not to schedule a pod yet.
  name!  string  Name of the gate, unique within the pod.

PodSchedulingGroup: The group of pods a pod is scheduled with; exactly one field is set.
  podGroupName  string  Name of the PodGroup in the pod's namespace.

PodSecurityContext: Security settings for all containers of a pod.
  appArmorProfile           AppArmorProfile                The AppArmor profile.
  fsGroup                   int64                          Group that owns the files of volumes that support it.
  fsGroupChangePolicy       PodFSGroupChangePolicy         When the ownership of a volume's files is changed.
  runAsGroup                int64                          Group id the processes run with.
  runAsNonRoot              bool                           Refuse to start as root.
  runAsUser                 int64                          User id the processes run with.
  seLinuxChangePolicy       PodSELinuxChangePolicy         How SELinux labels get onto volumes.
  seLinuxOptions            SELinuxOptions                 The SELinux label.
  seccompProfile            SeccompProfile                 The seccomp profile.
  supplementalGroups        []int64                        Further group ids of the processes.
  supplementalGroupsPolicy  SupplementalGroupsPolicy       Whether groups from the image count too.
  sysctls                   []Sysctl                       Kernel settings of the pod's own namespaces.
  windowsOptions            WindowsSecurityContextOptions  Settings for Windows containers.

Toleration: A taint the pod puts up with.
  effect             TaintEffect         The effect it tolerates; empty means all.
  key                string              The taint's key; empty with Exists means all.
  operator           TolerationOperator  How the value relates to the taint's; Equal where empty.
  tolerationSeconds  int64               Seconds a NoExecute taint is tolerated; without it, for good.
  value              string              The taint's value, for Equal.

TopologySpreadConstraint: How evenly matching pods are spread over the parts of a topology.
  labelSelector       LabelSelector                  Which pods are counted.
  matchLabelKeys      []string                       Labels of the new pod whose values join the selector.
  maxSkew!            int32                          By how many pods two parts may differ at most.
  minDomains          int32                          How many parts there must be at least.
  nodeAffinityPolicy  NodeInclusionPolicy            Whether nodes the pod's affinity rules out are counted.
  nodeTaintsPolicy    NodeInclusionPolicy            Whether nodes whose taints the pod does not tolerate are counted.
  topologyKey!        string                         The node label whose values are the parts.
  whenUnsatisfiable!  UnsatisfiableConstraintAction  What to do with a pod that would break the rule.

Affinity: Rules that draw a pod to nodes or push it away.
  nodeAffinity     NodeAffinity     By labels of nodes.
  podAffinity      PodAffinity      Towards nodes near certain pods.
  podAntiAffinity  PodAntiAffinity  Away from nodes near certain pods.

NodeAffinity: Rules by labels of nodes.
  preferredDuringSchedulingIgnoredDuringExecution  []PreferredSchedulingTerm  Wishes, each with a weight.
  requiredDuringSchedulingIgnoredDuringExecution   NodeSelector               What must hold when the pod is placed.

PodAffinity: Rules towards nodes near certain pods.
  preferredDuringSchedulingIgnoredDuringExecution  []WeightedPodAffinityTerm  Wishes, each with a weight.
  requiredDuringSchedulingIgnoredDuringExecution   []PodAffinityTerm          What must hold when the pod is placed;
      all of it.

PodAntiAffinity: Rules away from nodes near certain pods.
  preferredDuringSchedulingIgnoredDuringExecution  []WeightedPodAffinityTerm  Wishes, each with a weight.
  requiredDuringSchedulingIgnoredDuringExecution   []PodAffinityTerm          What must hold when the pod is placed;
      all of it.

PreferredSchedulingTerm: A wish about nodes.
  preference!  NodeSelectorTerm  What is wished for.
  weight!      int32             How strongly, 1 to 100.

NodeSelector (atomic): A choice of nodes: one of the terms must hold.
  nodeSelectorTerms!  []NodeSelectorTerm  The terms, of which one suffices.

NodeSelectorTerm (atomic): Requirements on a node that must all hold. An empty term matches nothing.
  matchExpressions  []NodeSelectorRequirement  Requirements on labels.
  matchFields       []NodeSelectorRequirement  Requirements on fields, such as metadata.name.

NodeSelectorRequirement: A condition on one label or field of a node.
  key!       string                The label or field.
  operator!  NodeSelectorOperator  How it relates to the values.
  values     []string              The values for In, NotIn, Gt and Lt; must be empty for Exists and DoesNotExist.

WeightedPodAffinityTerm: A wish about the neighbourhood of pods.
  podAffinityTerm!  PodAffinityTerm  What is wished for.
  weight!           int32            How strongly, 1 to 100.

PodAffinityTerm: Which pods are meant, and what near means.
  labelSelector      LabelSelector  Which pods are meant.
  matchLabelKeys     []string       Labels of the new pod whose values must match too.
  mismatchLabelKeys  []string       Labels of the new pod whose values must differ.
  namespaceSelector  LabelSelector  Namespaces to look in, by their labels.
  namespaces         []string       Namespaces to look in, by name.
  topologyKey!       string         Nodes with the same value of this label are near each other.

HostAlias: Names for an address in the pod's hosts file.
  hostnames  []string  The names.
  ip!        string    The address.

PodDNSConfig: Settings of the pod's name resolution.
  nameservers  []string              Addresses of name servers.
  options      []PodDNSConfigOption  Options of the resolver.
  searches     []string              Domains names are looked up in.

PodDNSConfigOption: One option of the resolver.
  name   string  Name of the option.
  value  string  Its value, if it has one.

Sysctl: A kernel setting.
  name!   string  Name of the setting.
  value!  string  Its value.

HostIP: An address of a node.
  ip!  string  The address.

PodIP: An address of a pod.
  ip!  string  The address.

PodResourceClaimStatus: The claim made for an entry of resourceClaims.
  name!              string  Name of the entry.
  resourceClaimName  string  The ResourceClaim made; empty where none was needed.

PodExtendedResourceClaimStatus: The claim that stands in for extended resources.
  requestMappings!    []ContainerExtendedResourceRequest  Which container's resource is which request of the claim.
  resourceClaimName!  string  Name of the claim.

ContainerExtendedResourceRequest: A container's extended resource and the request that covers it.
  containerName!  string  The container.
  requestName!    string  The request in the claim.
  resourceName!   string  The extended resource.

NodeAllocatableResourceClaimStatus: What one claim takes from the node's allocatable resources.
  containers          []string @set     Containers that use the claim.
  resourceClaimName!  string            The claim.
  resources!          [string]Quantity  How much of each resource.

PodTemplateSpec: What the pods made from a template look like.
  metadata  ObjectMeta  Labels and annotations for the pods.
  spec      PodSpec     What the pods run.

DNSPolicy = string of ClusterFirstWithHostNet ClusterFirst Default None
ResourceList = [string]Quantity
PreemptionPolicy = string of PreemptLowerPriority Never
RestartPolicy = string of Always OnFailure Never
PodPhase = string of Pending Running Succeeded Failed Unknown
PodQOSClass = string of Guaranteed Burstable BestEffort
PodResizeStatus = string
PodConditionType = string
OSName = string
PodFSGroupChangePolicy = string of OnRootMismatch Always
PodSELinuxChangePolicy = string
SupplementalGroupsPolicy = string of Merge Strict
TaintEffect = string of NoSchedule PreferNoSchedule NoExecute
TolerationOperator = string of Exists Equal Lt Gt
NodeInclusionPolicy = string of Ignore Honor
UnsatisfiableConstraintAction = string of DoNotSchedule ScheduleAnyway
NodeSelectorOperator = string of In NotIn Exists DoesNotExist Gt Lt
"""
