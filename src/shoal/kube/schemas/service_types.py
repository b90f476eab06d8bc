"""Services and the addresses behind them."""

from __future__ import annotations

TEXT = """
Service: A name and an address for the pods a selector picks.
  apiVersion  string         API group and version this object is written in.
  kind        string         Kind of the object.
  metadata    ObjectMeta     Name, labels and what the server keeps about the object.
  spec        ServiceSpec    What is offered, and by which pods.
  status      ServiceStatus  What was last seen of it.

ServiceSpec: What a Service offers, and by which pods.
  allocateLoadBalancerNodePorts  bool                          Whether a load balancer gets node ports too.
  clusterIP                      string                        Its address within the cluster; None makes it headless.
  clusterIPs                     []string                      All its addresses within the cluster; the first is
      clusterIP.
  externalIPs                    []string                      Addresses outside the cluster that nodes accept traffic
      for.
  externalName                   string                        The name an ExternalName Service stands for.
  externalTrafficPolicy          ServiceExternalTrafficPolicy  Whether traffic from outside may go to pods of other
      nodes.
  healthCheckNodePort            int32                         Node port where a load balancer asks whether a node
      serves.
  internalTrafficPolicy          ServiceInternalTrafficPolicy  Whether traffic from inside may go to pods of other
      nodes.
  ipFamilies                     []IPFamily                    Which address families it has.
  ipFamilyPolicy                 IPFamilyPolicy                Whether it has one address family or two.
  loadBalancerClass              string                        The sort of load balancer to use.
  loadBalancerIP                 string                        Address wished for from the load balancer. Deprecated.
  loadBalancerSourceRanges       []string                      Address ranges the load balancer lets in.
  ports                          []ServicePort @map(port,protocol) +merge(port)  The ports offered.
  publishNotReadyAddresses       bool                          Whether pods that are not ready are named too.
  selector                       [string]string @atomic        Labels of the pods behind it; without one its endpoints
      are written by others.
  sessionAffinity                ServiceAffinity               Whether a client stays with one pod.
  sessionAffinityConfig          SessionAffinityConfig         For how long a client stays.
  trafficDistribution            string                        Which endpoints are preferred for a client.
  type                           ServiceType                   How it is offered: within the cluster, on nodes, by a
      load balancer, or as another name.

ServicePort: A port of a Service.
  appProtocol  string         What is spoken on it, as a hint.
  name         string         Its name; required where there are several.
  nodePort     int32          The port opened on every node.
  port!        int32          The port of the Service.
  protocol     Protocol =TCP  TCP, UDP or SCTP.
  targetPort   IntOrString    Number or name of the pods' port; the same as port where empty.

SessionAffinityConfig: For how long a client stays with one pod.
  clientIP  ClientIPConfig  For affinity by client address.

ClientIPConfig: For affinity by client address.
  timeoutSeconds  int32  Seconds a client stays.

ServiceStatus: What was last seen of a Service.
  conditions    []Condition @map(type) +merge(type)  Aspects of its state.
  loadBalancer  LoadBalancerStatus  Where the load balancer listens.

LoadBalancerStatus: Where a load balancer listens.
  ingress  []LoadBalancerIngress  Its points of entry.

LoadBalancerIngress: A point of entry.
  hostname  string              Its name, where it has one.
  ip        string              Its address, where it has one.
  ipMode    LoadBalancerIPMode  Whether traffic arrives with its address as destination.
  ports     []PortStatus        State of each port.

PortStatus: State of one port of a load balancer.
  error      string    What went wrong with it.
  port!      int32     Number of the port.
  protocol!  Protocol  Protocol of the port.

Endpoints: The addresses behind a Service, in one object. EndpointSlice is its successor.
  apiVersion  string            API group and version this object is written in.
  kind        string            Kind of the object.
  metadata    ObjectMeta        Name, labels and what the server keeps about the object.
  subsets     []EndpointSubset  Groups of addresses with the same ports.

EndpointSubset: Addresses that share a set of ports.
  addresses          []EndpointAddress  Addresses that are ready.
  notReadyAddresses  []EndpointAddress  Addresses that are not ready yet.
  ports              []EndpointPort     The ports of all of them.

EndpointAddress (atomic): One address behind a Service.
  hostname   string           Host name of this endpoint.
  ip!        string           The address; not a loopback one.
  nodeName   string           The node it is on.
  targetRef  ObjectReference  The object behind it.

EndpointPort (atomic): A port of endpoints.
  appProtocol  string    What is spoken on it, as a hint.
  name         string    Name of the port, as in the Service.
  port!        int32     Number of the port.
  protocol     Protocol  TCP, UDP or SCTP.

ServiceExternalTrafficPolicy = string of Cluster Local
ServiceInternalTrafficPolicy = string of Cluster Local
IPFamily = string of IPv4 IPv6 ""
IPFamilyPolicy = string of SingleStack PreferDualStack RequireDualStack
ServiceAffinity = string of ClientIP None
ServiceType = string of ClusterIP NodePort LoadBalancer ExternalName
LoadBalancerIPMode = string
"""

DISCOVERY = """
EndpointSlice: Some of the addresses behind a Service.
  addressType!  AddressType     What the addresses are. Cannot be changed.
  apiVersion    string          API group and version this object is written in.
  endpoints     []Endpoint      The endpoints, at most 1000.
  kind          string          Kind of the object.
  metadata      ObjectMeta      Name, labels and what the server keeps about the object.
  ports         []EndpointPort  The ports every endpoint has.

Endpoint: One endpoint of a Service.
  addresses!          []string @set       Its addresses; clients use the first.
  conditions          EndpointConditions  Its state.
  deprecatedTopology  [string]string      Older place for topology facts.
  hints               EndpointHints       Hints for those who send traffic.
  hostname            string              Host name of this endpoint.
  nodeName            string              The node it is on.
  targetRef           ObjectReference     The object behind it.
  zone                string              The zone it is in.

EndpointConditions: State of an endpoint; what is unset is unknown.
  ready        bool  Whether it takes traffic.
  serving      bool  Whether it could take traffic, even while it ends.
  terminating  bool  Whether it is about to end.

EndpointHints: Hints on who should use an endpoint.
  forNodes  []ForNode  Nodes it is meant for.
  forZones  []ForZone  Zones it is meant for.

ForNode: A node an endpoint is meant for.
  name!  string  Name of the node.

ForZone: A zone an endpoint is meant for.
  name!  string  Name of the zone.

EndpointPort (atomic): A port of endpoints.
  appProtocol  string    What is spoken on it, as a hint.
  name         string    Name of the port, as in the Service.
  port         int32     Number of the port; unset means all.
  protocol     Protocol  TCP, UDP or SCTP.

AddressType = string
"""
