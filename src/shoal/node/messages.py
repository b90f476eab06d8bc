"""The text of every message of the node, by code. The one place to change it.

Codes of Events and conditions are their reasons, and such a text is the kubelet's wherever programs match it. All other
codes are parts of messages or answers to requests, grouped by their first word.
"""

from __future__ import annotations

from shoal.kube.messages import Catalog, Message

CATALOG = Catalog(
    {
        # Events of a pod
        "Started": "Started container {container}",
        "Killing": "Stopping container {container}",
        "Killing.Probe": "Container {container} failed {probe} probe, will be restarted",
        "Killing.PostStartHook": "Container {container} failed its postStart hook",
        "BackOff": "Back-off restarting failed container {container} in pod {pod}",
        "Failed": "Error: {cause}",
        "FailedMount": "{cause}",
        "FailedCreatePodSandBox": "Failed to create pod sandbox: {cause}",
        "FailedPostStartHook": "PostStartHook failed: {output}",
        "FailedPreStopHook": "PreStopHook failed: {output}",
        "Unhealthy": "{probe} probe failed: {output}",
        "DeadlineExceeded": "Pod was active on the node longer than the specified deadline",
        # conditions and waiting containers of a pod
        "PodCompleted": "",
        "PodFailed": "",
        "ContainersNotInitialized": "containers with incomplete status: [{containers: }]",
        "ContainersNotReady": "containers with unready status: [{containers: }]",
        "ReadinessGatesNotReady": 'corresponding condition of pod readiness gate "{gate}" does not exist.',
        "ReadinessGatesNotReady.Status": 'the status of pod readiness gate "{gate}" is not "True", but {status}',
        "CrashLoopBackOff": "back-off {pause} restarting failed container={container} pod={pod}_{namespace}({uid})",
        # a pod that the node does not take
        "Rejected.Namespace": "Pod was rejected: this node runs pods of {allowed} only, not of {namespace}",
        "Rejected.Resource": (
            "Pod was rejected: Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
            "capacity: {capacity}"
        ),
        "Rejected.Devices": "Pod was rejected: the node has too few free devices for the requested {resource}",
        "Rejected.Addresses": "Pod was rejected: all {count} addresses of {range} are in use",
        # containers whose end was not observed
        "Lost.Starting": "the pod's shim died while this container was being started",
        "Lost.Running": "the pod's shim died, and with it this container; how it ended is unknown",
        "Lost.Signalled": "the pod's shim died",
        "Lost.AgentAway": (
            "the pod's shim died while the node agent was not running; how the container ended is unknown"
        ),
        "Lost.NoRecord": "the node lost its record of this container; it may have been killed",
        "Lost.Unobserved": "the end of the container was not observed",
        "Lost.BeforeStart": ("the pod's shim died while the process was being started; whether it ran is unknown"),
        "Lost.Killed": (
            "the pod's shim died and the process was killed with it; how much of its work it completed is unknown"
        ),
        # sandboxes
        "Sandbox.ShimLost": "the pod's shim died",
        "Sandbox.ShimDied": "the pod's shim died twice at its start",
        "Sandbox.NotMade": "{error}",
        "Sandbox.ZygoteFailed": "{python} could not start the process that forks pods",
        "Sandbox.FolderInUse": "{folder} is in use by another agent. Stop it, or choose another data folder.",
        "Network.ForkFailed": "the process that forks the pods' network died twice",
        "Network.NotMade": "the pods' network could not be created: {error}",
        "Network.Died": "the process that holds the pods' network died at its start",
        "Network.Unavailable": "{reason}. {advice}",
        "Network.NotAllowed": "pods cannot have networks of their own here: {error}",
        "Network.OtherKind": "pods of this cluster still run on the {network} network",
        "Advice.Loopback": "Choose the loopback network; `shoal doctor` shows its limitations.",
        "Advice.StopPods": "Delete these pods, or keep the previous network setting.",
        # the Node
        "NodeReady": "the node agent is running pods",
        "NodeStopped": "the node agent was stopped",
        "NodeHasSufficientMemory": "the node does not monitor memory pressure",
        "NodeHasNoDiskPressure": "the node does not monitor disk pressure",
        "NodeHasSufficientPID": "the node does not monitor PID pressure",
        "NodeRefused.Rejected": (
            "the API server rejected node {node}: {error}. "
            "A node's resources are declared in --capacity, --label and --taint, and in `capacity:` of shoal.yaml."
        ),
        "NodeRefused.Held": (
            "another agent runs as node {node} and holds its Lease as {holder}. Stop that agent (the name is free when "
            "the Lease has expired, 40 seconds later), start with its data folder, or choose another name."
        ),
        # objects that a pod refers to
        "Object.NotFound": '{kind} "{name}" not found',
        "Object.NoSuchKey": '{kind} "{name}" references non-existent key: {key}',
        "Object.KeyNotFound": "couldn't find key {key} in {kind} {namespace}/{name}",
        "Project.NotStored": "annotation {annotation}: this cluster has not stored the project {name!r}; {retry}",
        "Token.NotIssued": "this node issues no service account tokens; set automountServiceAccountToken: false",
        "Token.Refused": 'no token for the service account "{account}": {error}',
        "Token.NotRequested": "the token of its service account has not been requested yet",
        # volumes
        "Volume.UnknownKind": 'volume "{volume}" is of a type that this node does not support: {kinds}',
        "Volume.UnknownMedium": 'volume "{volume}": this node supports the media "" and "Memory", not "{medium}"',
        "Volume.UnknownSource": "this node cannot project {sources} into a volume",
        "Volume.InvalidPath": "a volume of the pod has a path that no file system accepts: {error}",
        "SharedMemory.Unusable": "cannot use {path} for memory that containers share: {error}",
        "SharedMemory.NotOurs": "cannot use {path} for memory that containers share: it belongs to user {owner}",
        "Claim.NotBound": 'persistentvolumeclaim "{claim}" is {phase}: it has no volume yet',
        "Claim.NoVolume": 'persistentvolume "{volume}" of claim "{claim}" not found',
        "Claim.NotMountable": (
            'persistentvolume "{volume}" is neither a hostPath nor a local volume: this node cannot mount it'
        ),
        "HostPath.Missing": "hostPath {path} does not exist, and this node does not create it for pods",
        "HostPath.WrongType": "hostPath type check failed: {path} is not {type}",
        "HostPath.FolderNotMade": "cannot create the folder {path}: {error}",
        "HostPath.FileNotMade": "cannot create the file {path}: {error}",
        "Mount.NoVolume": 'container {container} mounts the volume "{volume}", which the pod does not have',
        "Mount.NulByte": "{field} {path!r} contains a NUL byte, which a path cannot contain",
        "Mount.NodePath": "{path} belongs to the node and cannot be mounted",
        "SubPath.UnknownVariable": 'subPathExpr of volume mount "{mount}": no variable {variables}',
        "SubPath.NotRelative": "subPath {path} must stay inside its volume",
        "SubPath.Escapes": "subPath {path} points outside its volume",
        "SubPath.Missing": "subPath {path} does not exist in its volume",
        "SubPath.NotOpened": "cannot open subPath {path} in its volume: {error}",
        # a container's process
        "Container.InvalidPath": "the container has a path that no file system accepts: {error}",
        "Environment.UnknownSource": (
            "the variable {variable} has a source that this node does not support: {sources}"
        ),
        "Environment.LongText": (
            "a value with $(VAR) expands to more than {limit} characters, the maximum length of an argument "
            "or environment variable"
        ),
        "Environment.ManyArguments": (
            "the arguments of the container have more than {limit} characters in total, the maximum for a process"
        ),
        "Environment.ManyVariables": (
            "the environment variables of the container have more than {limit} characters in total, "
            "the maximum for a process"
        ),
        "FieldRef.Unknown": "unsupported fieldPath: {path}",
        "ResourceFieldRef.NoContainer": "container {container} not found",
        "ResourceFieldRef.Unknown": "unsupported container resource: {resource}",
        "Image.NoCommand": (
            'container {container} sets no command, and none is configured for image "{image}". '
            'Set `command` in the pod, or add an entry "{image}" with `command:` under `images:` in {file}, '
            "for example: images: {{{image!r}: {{command: [python, main.py]}}}}; then {retry}"
        ),
        "Image.NoCommandInEntry": (
            'container {container} sets no command, and none is configured for image "{image}". '
            'Set `command` in the pod, or add `command:` to the entry that matches "{image}" under `images:` in '
            "{file}, for example: images: {{{image!r}: {{command: [python, main.py]}}}}; then {retry}"
        ),
        "Image.NoPython": (
            'image "{image}" is mapped to the Python environment {python}, which does not exist: it has no folder bin. '
            "Create it, for example with `python3 -m venv {python}`, and the container starts; "
            "or correct `python:` under `images:` in {file} and {retry}"
        ),
        "Retry.Resubmit": "delete the job and submit it again",
        "Retry.Submit": "submit the job again",
        "Retry.Start": "start the cluster again",
        "Retry.Restart": "stop the cluster and start it again",
        "User.OfNamespace": (
            "{field} {number} is reserved for the pods of a namespace other than {namespace}: leave {field} out, "
            "or choose a number below {first}"
        ),
        "User.Account": (
            "{field} {number} is a user of this machine; pods of this node may not run as one: leave {field} out, "
            "choose a number without an account here, or start the node with --allow-root"
        ),
        "User.Group": (
            "{field} {number} is a group of this machine; pods of this node may not use one: leave {field} out, "
            "choose a number without an account here, or start the node with --allow-root"
        ),
        "User.Root": (
            "container has runAsNonRoot and would run as root: set runAsUser, or do not start the node as root"
        ),
        # probes and hooks
        "Probe.GrpcNotSupported": (
            "{probe}: this node does not support gRPC probes; use httpGet, tcpSocket or exec instead"
        ),
        "Handler.GrpcNotSupported": "this node does not support gRPC probes: use httpGet, tcpSocket or exec instead",
        "Handler.Unknown": "this node does not support this handler: {handlers}",
        "Handler.Empty": "neither a command nor a request is set",
        "Handler.ContainerGone": "the container is gone",
        "Handler.NoSuchPort": 'the container has no port named "{port}"',
        "Handler.TimedOut": "timed out after {seconds:g}s",
        "Handler.CommandTimedOut": 'command "{command}" timed out after {seconds:g}s',
        "Handler.NoAnswer": "no response within {seconds:g}s",
        "Handler.NotConnected": "dial tcp {address}: {cause}",
        "Handler.NotRequested": 'Get "{url}": dial tcp {address}: {cause}',
        "Handler.NotHttp": 'Get "{url}": the response is not HTTP',
        "Handler.StatusCode": "HTTP probe failed with statuscode: {code}",
        # requests to the node
        "Request.UnknownContainer": "container {container} is not valid for pod {pod}",
        "Request.NoContainer": "a container name must be specified for pod {pod}, choose one of: [{containers: }]",
        "Request.NoPreviousContainer": 'previous terminated container "{container}" in pod "{pod}" not found',
        "Request.WaitingContainer": 'container "{container}" in pod "{pod}" is waiting to start: {reason}',
        "Request.NotRunning": "container {container} of pod {pod} is not running: a command needs a running container",
        "Request.NoPod": 'pod "{pod}" is not on this node',
        "Request.NotANumber": "{parameter} is not a number: {value}",
        "Request.UpgradeRequired": "ports are forwarded over {protocol}: upgrade the connection to it",
        "Request.SpdyNotSupported": (
            "this node supports only WebSocket connections, and the API server converted this one to SPDY. "
            "Kubernetes 1.36 passes WebSockets through; with older versions, use a client that uses {protocol}."
        ),
        "Unauthenticated": "present a client certificate or a token of the cluster",
        "Forbidden": "user {user} may not {verb} nodes/proxy of {node}; a ClusterRole can grant it",
    }
)


class MessageError(Exception):
    """An exception with a message."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return CATALOG.text(self.message)


def text(fact: Message | str) -> str:
    """The text of a message. What a program, the machine or another component wrote is text already."""
    return fact if isinstance(fact, str) else CATALOG.text(fact)
