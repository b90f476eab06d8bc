"""Nodes: their desired configuration and their reported status."""

from __future__ import annotations

TEXT = """
Node: A machine, or a share of one, that runs pods.
  apiVersion  string      API group and version this object is written in.
  kind        string      Kind of the object.
  metadata    ObjectMeta  Name, labels and what the server keeps about the object.
  spec        NodeSpec    What is wanted of it.
  status      NodeStatus  What was last seen of it. Written by the node.

NodeSpec: What is wanted of a node.
  configSource   NodeConfigSource      No longer used.
  externalID     string                No longer used.
  podCIDR        string                Range its pods' addresses come from.
  podCIDRs       []string @set +merge  Ranges its pods' addresses come from, one per family.
  providerID     string                Identity of the machine with its provider.
  taints         []Taint               Marks that keep pods away that do not tolerate them.
  unschedulable  bool                  Whether new pods are kept away.

Taint: A mark that keeps pods away from a node.
  effect!    TaintEffect  What happens to pods that do not tolerate it.
  key!       string       Key of the mark.
  timeAdded  Time         When it was put on.
  value      string       Value of the mark.

NodeConfigSource: No longer used.
  configMap  ConfigMapNodeConfigSource  No longer used.

ConfigMapNodeConfigSource: No longer used.
  kubeletConfigKey!  string  No longer used.
  name!              string  No longer used.
  namespace!         string  No longer used.
  resourceVersion    string  No longer used.
  uid                UID     No longer used.

NodeStatus: What was last seen of a node.
  addresses         []NodeAddress @map(type) +merge(type)  How it can be reached.
  allocatable       ResourceList          What pods may use of each resource.
  capacity          ResourceList          What there is of each resource.
  conditions        []NodeCondition @map(type) +merge(type)  Aspects of its state, such as Ready.
  config            NodeConfigStatus      No longer used.
  daemonEndpoints   NodeDaemonEndpoints   Ports of the node's own services.
  declaredFeatures  []string              Features the node says it supports.
  features          NodeFeatures          Features of the container runtime.
  images            []ContainerImage      Images kept on the node.
  nodeInfo          NodeSystemInfo        Facts about the machine and its software.
  phase             NodePhase             No longer used.
  runtimeHandlers   []NodeRuntimeHandler  Runtimes that can run pods.
  volumesAttached   []AttachedVolume      Volumes attached to the node.
  volumesInUse      []UniqueVolumeName    Attached volumes that are mounted.

NodeAddress: A way to reach a node.
  address!  string           The address or name.
  type!     NodeAddressType  What sort of address.

NodeCondition: One aspect of a node's state.
  lastHeartbeatTime   Time               When it was last confirmed.
  lastTransitionTime  Time               When the status last changed from one value to another.
  message             string             The details for people.
  reason              string             One word for programs: why it is so.
  status!             ConditionStatus    True, False or Unknown.
  type!               NodeConditionType  Name of the aspect.

NodeConfigStatus: No longer used.
  active         NodeConfigSource  No longer used.
  assigned       NodeConfigSource  No longer used.
  error          string            No longer used.
  lastKnownGood  NodeConfigSource  No longer used.

NodeDaemonEndpoints: Ports of a node's own services.
  kubeletEndpoint  DaemonEndpoint  Where the node agent listens.

DaemonEndpoint: A port of a service.
  Port!  int32  Number of the port.

NodeFeatures: Features of a container runtime.
  supplementalGroupsPolicy  bool  Whether supplementalGroupsPolicy is honoured.

ContainerImage: An image kept on a node.
  names      []string  Its names.
  sizeBytes  int64     Its size.

NodeSystemInfo: Facts about a machine and its software.
  architecture!             string          Processor architecture.
  bootID!                   string          Changes with every start of the machine.
  containerRuntimeVersion!  string          What runs the containers, and its version.
  kernelVersion!            string          Version of the kernel.
  kubeProxyVersion!         string          No longer used.
  kubeletVersion!           string          Version of the node agent.
  machineID!                string          Identity of the machine.
  operatingSystem!          string          Operating system.
  osImage!                  string          Operating system in words.
  swap                      NodeSwapStatus  Swap space.
  systemUUID!               string          Identity of the hardware.

NodeSwapStatus: Swap space of a node.
  capacity  int64  Its size in bytes.

NodeRuntimeHandler: A runtime that can run pods.
  features  NodeRuntimeHandlerFeatures  What it can do.
  name      string                      Its name; empty is the default one.

NodeRuntimeHandlerFeatures: What a runtime can do.
  recursiveReadOnlyMounts  bool  Whether it can make mounts read-only all the way down.
  userNamespaces           bool  Whether it can give pods their own user namespace.

AttachedVolume: A volume attached to a node.
  devicePath!  string            Path of the device.
  name!        UniqueVolumeName  Name of the volume.

NodePhase = string of Pending Running Terminated
UniqueVolumeName = string
NodeAddressType = string
NodeConditionType = string
"""
