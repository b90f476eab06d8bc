"""Containers: what a process of a pod is, how it is checked, and what was seen of it."""

from __future__ import annotations

TEXT = """
Container: One process of a pod, started from an image.
  args                      []string                  Arguments of the command; $(NAME) stands for a variable.
  command                   []string                  What to run instead of the image's entrypoint; $(NAME) stands for
      a variable.
  env                       []EnvVar @map(name) +merge(name)  Environment variables, in order; later ones may use
      earlier ones.
  envFrom                   []EnvFromSource           Sources whose every key becomes a variable; env wins over them.
  image                     string                    Name of the image.
  imagePullPolicy           PullPolicy                When the image is fetched anew.
  lifecycle                 Lifecycle                 What to do right after the start and right before the end.
  livenessProbe             Probe                     Tells whether the container is still alive; it is restarted when
      it is not.
  name!                     string                    Name, unique within the pod. Cannot be changed.
  ports                     []ContainerPort @map(containerPort,protocol) +merge(containerPort)  Ports it listens on; a
      statement only, unlisted ports are open too.
  readinessProbe            Probe                     Tells whether the container can serve; Services leave it out
      while it cannot.
  resizePolicy              []ContainerResizePolicy   Whether a change of its resources needs a restart.
  resources                 ResourceRequirements      What it needs and what it may use at most.
  restartPolicy             ContainerRestartPolicy    Its own restart rule in place of the pod's; Always makes an init
      container a sidecar.
  restartPolicyRules        []ContainerRestartRule    Rules tried in order before restartPolicy when it ends.
  securityContext           SecurityContext           Security settings; they win over the pod's.
  startupProbe              Probe                     Tells that the container has started; the other probes wait for
      it.
  stdin                     bool                      Whether its standard input is kept open.
  stdinOnce                 bool                      Whether standard input closes after the first client leaves.
  terminationMessagePath    string                    File whose content becomes the container's last message.
  terminationMessagePolicy  TerminationMessagePolicy  Where the last message comes from.
  tty                       bool                      Whether it gets a terminal.
  volumeDevices             []VolumeDevice @map(devicePath) +merge(devicePath)  Volumes it sees as block devices.
  volumeMounts              []VolumeMount @map(mountPath) +merge(mountPath)  Volumes it sees as folders.
  workingDir                string                    Folder it starts in; the image's where empty.

EphemeralContainer: A container added to a running pod for looking into it; it promises nothing.
  targetContainerName  string  The container whose processes it joins.
  ...Container as EphemeralContainerCommon

ContainerPort: A port a container listens on.
  containerPort!  int32          Number of the port inside the pod.
  hostIP          string         Address of the node to bind it to.
  hostPort        int32          Port of the node to open for it.
  name            string         Name that Services and probes can use.
  protocol        Protocol =TCP  UDP, TCP or SCTP.

EnvVar: One environment variable.
  name!      string        Name of the variable.
  value      string        Its value; $(NAME) stands for a variable defined before.
  valueFrom  EnvVarSource  Where the value is taken from; not together with value.

EnvVarSource: Where a variable's value is taken from; exactly one.
  configMapKeyRef   ConfigMapKeySelector   A key of a ConfigMap.
  fieldRef          ObjectFieldSelector    A field of the pod, such as metadata.name or status.podIP.
  fileKeyRef        FileKeySelector        A key of a file in a volume, written by an earlier container.
  resourceFieldRef  ResourceFieldSelector  A request or limit of a container.
  secretKeyRef      SecretKeySelector      A key of a Secret.

ConfigMapKeySelector (atomic): A key of a ConfigMap.
  key!      string  The key.
  optional  bool    Whether the ConfigMap or the key may be missing.
  ...LocalObjectReference

SecretKeySelector (atomic): A key of a Secret.
  key!      string  The key.
  optional  bool    Whether the Secret or the key may be missing.
  ...LocalObjectReference

FileKeySelector (atomic): A key of a file of variables in a volume.
  key!         string  The variable's name in the file.
  optional     bool    Whether the file or the key may be missing.
  path!        string  Path of the file within the volume.
  volumeName!  string  Name of the volume.

ObjectFieldSelector (atomic): A field of the pod.
  apiVersion  string  Version the path is written in; v1 where empty.
  fieldPath!  string  Path of the field.

ResourceFieldSelector (atomic): A request or limit of a container.
  containerName  string    The container; required in volumes.
  divisor        Quantity  Unit the amount is given in.
  resource!      string    Which one, such as limits.cpu.

EnvFromSource: A source whose every key becomes a variable.
  configMapRef  ConfigMapEnvSource  A ConfigMap.
  prefix        string              Put in front of every name.
  secretRef     SecretEnvSource     A Secret.

ConfigMapEnvSource: A ConfigMap whose keys become variables.
  optional  bool    Whether it may be missing.
  ...LocalObjectReference

SecretEnvSource: A Secret whose keys become variables.
  optional  bool    Whether it may be missing.
  ...LocalObjectReference

Lifecycle: What to do at the start and the end of a container.
  postStart   LifecycleHandler  Done right after the start; failing it ends the container.
  preStop     LifecycleHandler  Done before the container is asked to end, within the grace period.
  stopSignal  Signal            The signal that asks the container to end.

LifecycleHandler: One thing to do; exactly one field is set.
  exec       ExecAction       Run a command in the container.
  httpGet    HTTPGetAction    Make an HTTP request.
  sleep      SleepAction      Wait.
  tcpSocket  TCPSocketAction  No longer supported.

SleepAction: Wait a while.
  seconds!  int64  How long.

ExecAction: Run a command in the container.
  command  []string  The command and its arguments, without a shell; exit code 0 is success.

GRPCAction: Call the gRPC health service.
  port!    int32   Port of the service.
  service  string  Name passed in the health request.

HTTPGetAction: Make an HTTP GET request.
  host         string        Host to connect to; the pod's address where empty.
  httpHeaders  []HTTPHeader  Headers to send.
  path         string        Path to ask for.
  port!        IntOrString   Number or name of the port.
  scheme       URIScheme     HTTP or HTTPS.

HTTPHeader: A header of an HTTP request.
  name!   string  Name of the header.
  value!  string  Its value.

TCPSocketAction: Open a TCP connection.
  host   string       Host to connect to; the pod's address where empty.
  port!  IntOrString  Number or name of the port.

Probe: A check made again and again while a container runs.
  failureThreshold               int32            How many failures in a row make it count as failed.
  initialDelaySeconds            int32            Seconds after the start before the first check.
  periodSeconds                  int32            Seconds between checks.
  successThreshold               int32            How many successes in a row make it count as succeeded.
  terminationGracePeriodSeconds  int64            Grace period in place of the pod's when this check ends the container.
  timeoutSeconds                 int32            Seconds before a check without an answer counts as failed.
  ...ProbeHandler

ProbeHandler: What a probe does; exactly one field is set.
  exec                           ExecAction       Run a command in the container.
  grpc                           GRPCAction       Call the gRPC health service.
  httpGet                        HTTPGetAction    Make an HTTP request; codes 200 to 399 are success.
  tcpSocket                      TCPSocketAction  Open a TCP connection.

ResourceRequirements: What is needed and what may be used at most.
  claims    []ResourceClaim @map(name)  Claims of the pod that the container uses.
  limits    ResourceList                The most of each resource it may use.
  requests  ResourceList                What is set aside for it; the limits where nothing is said.

ResourceClaim: An entry of the pod's resourceClaims.
  name!    string  Name of the entry.
  request  string  One request of the claim; all of them where empty.

ContainerResizePolicy: Whether a change of a resource needs a restart.
  resourceName!   ResourceName                 The resource.
  restartPolicy!  ResourceResizeRestartPolicy  NotRequired or RestartContainer.

ContainerRestartRule: What to do when the container ends in a certain way.
  action!    ContainerRestartRuleAction  What to do.
  exitCodes  ContainerRestartRuleOnExitCodes  The exit codes it applies to.

ContainerRestartRuleOnExitCodes: Which exit codes are meant.
  operator!  ContainerRestartRuleOnExitCodesOperator  In or NotIn.
  values     []int32 @set  The exit codes.

SecurityContext: Security settings of a container; they win over the pod's.
  allowPrivilegeEscalation  bool                           Whether a process may gain more rights than its parent.
  appArmorProfile           AppArmorProfile                The AppArmor profile.
  capabilities              Capabilities                   Capabilities to add and to drop.
  privileged                bool                           Whether it runs with all rights of the node's root.
  procMount                 ProcMountType                  How /proc is mounted.
  readOnlyRootFilesystem    bool                           Whether its root file system is read-only.
  runAsGroup                int64                          Group id it runs with.
  runAsNonRoot              bool                           Refuse to start as root.
  runAsUser                 int64                          User id it runs with.
  seLinuxOptions            SELinuxOptions                 The SELinux label.
  seccompProfile            SeccompProfile                 The seccomp profile.
  windowsOptions            WindowsSecurityContextOptions  Settings for Windows containers.

Capabilities: POSIX capabilities to add and to drop.
  add   []Capability  Capabilities to add.
  drop  []Capability  Capabilities to drop.

AppArmorProfile: An AppArmor profile.
  localhostProfile  string               Profile on the node, for type Localhost.
  type!             AppArmorProfileType  Which sort of profile.

SELinuxOptions: An SELinux label.
  level  string  Level of the label.
  role   string  Role of the label.
  type   string  Type of the label.
  user   string  User of the label.

SeccompProfile: A seccomp profile.
  localhostProfile  string              Profile file on the node, for type Localhost.
  type!             SeccompProfileType  Which sort of profile.

WindowsSecurityContextOptions: Settings for Windows containers.
  gmsaCredentialSpec      string  Contents of the GMSA credential spec.
  gmsaCredentialSpecName  string  Name of the GMSA credential spec.
  hostProcess             bool    Whether it runs as a host process.
  runAsUserName           string  User name it runs as.

VolumeDevice: A volume seen as a block device.
  devicePath!  string  Path of the device inside the container.
  name!        string  Name of the pod's volume; it must be a claim.

VolumeMount: A volume seen as a folder.
  mountPath!         string                 Path inside the container; no colon.
  mountPropagation   MountPropagationMode   Whether mounts made later are seen on the other side.
  name!              string                 Name of the pod's volume.
  readOnly           bool                   Whether it is read-only here.
  recursiveReadOnly  RecursiveReadOnlyMode  Whether mounts below it are read-only too.
  subPath            string                 Path within the volume to mount; its root where empty.
  subPathExpr        string                 Like subPath, with $(NAME) for variables.

ContainerStatus: What was last seen of a container.
  allocatedResources        ResourceList          Resources set aside for it.
  allocatedResourcesStatus  []ResourceStatus @map(name) +merge(name)  Health of the devices given to it.
  containerID               string                Identity of the running container.
  image!                    string                The image it runs.
  imageID!                  string                Identity of that image.
  lastState                 ContainerState        How it ended the last time.
  name!                     string                Name of the container.
  ready!                    bool                  Whether it passes its readiness probe.
  resources                 ResourceRequirements  Resources in force.
  restartCount!             int32                 How often it was started again.
  started                   bool                  Whether it has started and passed its startup probe.
  state                     ContainerState        What it is doing now.
  stopSignal                Signal                The signal that asks it to end.
  user                      ContainerUser         The user it first ran as.
  volumeMounts              []VolumeMountStatus @map(mountPath) +merge(mountPath)  State of its mounts.

ContainerState: What a container is doing; exactly one field is set.
  running     ContainerStateRunning     It runs.
  terminated  ContainerStateTerminated  It has ended.
  waiting     ContainerStateWaiting     It is not running yet.

ContainerStateRunning: A running container.
  startedAt  Time  When it was started.

ContainerStateTerminated: A container that has ended.
  containerID  string  Identity of the container.
  exitCode!    int32   Its exit code.
  finishedAt   Time    When it ended.
  message      string  Its last words.
  reason       string  One word: why it ended.
  signal       int32   The signal that ended it.
  startedAt    Time    When it was started.

ContainerStateWaiting: A container that is not running yet.
  message  string  What it waits for, for people.
  reason   string  One word: what it waits for.

ContainerUser: The user a container first ran as.
  linux  LinuxContainerUser  On Linux.

LinuxContainerUser: User and groups on Linux.
  gid!                int64    Group id.
  supplementalGroups  []int64  Further group ids.
  uid!                int64    User id.

VolumeMountStatus: State of a mount.
  mountPath!         string                 Path inside the container.
  name!              string                 Name of the volume.
  readOnly           bool                   Whether it is read-only.
  recursiveReadOnly  RecursiveReadOnlyMode  Whether mounts below it are read-only too.
  volumeStatus       VolumeStatus           State of the volume behind it.

VolumeStatus: State of a volume.
  image  ImageVolumeStatus  State of an image volume.

ImageVolumeStatus: State of an image volume.
  imageRef!  string  Digest of the image.

ResourceStatus: Health of the devices behind a resource.
  name!      ResourceName  The resource.
  resources  []ResourceHealth @map(resourceID)  Health of each device.

ResourceHealth: Health of one device.
  health       ResourceHealthStatus  Healthy, Unhealthy or Unknown.
  message      string                More about the health, for people.
  resourceID!  ResourceID            Identity of the device.

PullPolicy = string of Always Never IfNotPresent
ContainerRestartPolicy = string
TerminationMessagePolicy = string of File FallbackToLogsOnError
Protocol = string of TCP UDP SCTP
Signal = string
URIScheme = string of HTTP HTTPS
ResourceName = string
ResourceResizeRestartPolicy = string
ContainerRestartRuleAction = string
ContainerRestartRuleOnExitCodesOperator = string
ProcMountType = string of Default Unmasked
Capability = string
AppArmorProfileType = string of Unconfined RuntimeDefault Localhost
SeccompProfileType = string of Unconfined RuntimeDefault Localhost
MountPropagationMode = string of None HostToContainer Bidirectional
RecursiveReadOnlyMode = string
ResourceHealthStatus = string
ResourceID = string
"""
