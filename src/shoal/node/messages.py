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
        "FailedCreatePodSandBox": "the pod's sandbox could not be made: {cause}",
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
        "Rejected.Devices": "Pod was rejected: the node's free devices do not suffice for its {resource}",
        "Rejected.Addresses": "Pod was rejected: all {count} addresses of {range} are in use",
        # containers whose end was not observed
        "Lost.Starting": "the pod's shim died while this container was being started",
        "Lost.Running": "the pod's shim died, and with it this container; how it ended is unknown",
        "Lost.Signalled": "the pod's shim died",
        "Lost.AgentAway": "the pod's shim died while the node agent was away; how the container ended is unknown",
        "Lost.NoRecord": "the node lost its record of this container; it may have been killed",
        "Lost.Unobserved": "the end of the container was not observed",
        "Lost.BeforeStart": ("the pod's shim died while the process was being started; whether it ran is not known"),
        "Lost.Killed": "the pod's shim died and the process was killed with it; how far it came is not known",
        # sandboxes
        "Sandbox.ShimLost": "the pod's shim died",
        "Sandbox.ShimDied": "the pod's shim died twice at its start",
        "Sandbox.NotMade": "{error}",
        "Sandbox.ZygoteFailed": "{python} could not start the process that forks pods",
        "Sandbox.FolderInUse": "{folder} is in use by another agent. Stop it, or choose another data folder.",
        "Network.ForkFailed": "the process that forks the pods' network died twice",
        "Network.NotMade": "the pods' network could not be made: {error}",
        "Network.Died": "the process that holds the pods' network died at its start",
        "Network.Unavailable": "{reason}. {advice}",
        "Network.NotAllowed": "pods cannot have networks of their own here: {error}",
        "Network.OtherKind": "pods of this cluster still run on the {network} network",
        "Advice.Loopback": "Choose the loopback network; `shoal doctor` shows what that costs.",
        "Advice.StopPods": "Stop them, or leave the choice as it was.",
        # the Node
        "NodeReady": "the node agent is running pods",
        "NodeStopped": "the node agent was stopped",
        "NodeHasSufficientMemory": "the node does not watch for memory pressure",
        "NodeHasNoDiskPressure": "the node does not watch for disk pressure",
        "NodeHasSufficientPID": "the node does not watch for PID pressure",
        "NodeRefused.Rejected": (
            "the API does not take node {node}: {error}. "
            "A node's resources are declared in --capacity, --label and --taint, and in `capacity:` of shoal.yaml."
        ),
        "NodeRefused.Held": (
            "another agent is node {node} and is alive: it holds the Lease as {holder}. Stop it (the name is free when "
            "the Lease has run out, 40 seconds later), start in its data folder, or choose another name."
        ),
        # objects that a pod refers to
        "Object.NotFound": '{kind} "{name}" not found',
        "Object.NoSuchKey": '{kind} "{name}" references non-existent key: {key}',
        "Object.KeyNotFound": "couldn't find key {key} in {kind} {namespace}/{name}",
        "Project.NotStored": "annotation {annotation}: this cluster has not stored the project {name!r}; {retry}",
        "Token.NotIssued": "this node issues no service account tokens; set automountServiceAccountToken: false",
        "Token.Refused": 'no token for the service account "{account}": {error}',
        "Token.NotRequested": "the token of its service account has not been asked for yet",
        # volumes
        "Volume.UnknownKind": 'volume "{volume}" is of a kind this node does not offer: {kinds}',
        "Volume.UnknownMedium": 'volume "{volume}": this node offers the media "" and "Memory", not "{medium}"',
        "Volume.UnknownSource": "this node cannot project {sources} into a volume",
        "Volume.InvalidPath": "a volume of the pod names a path that no file system takes: {error}",
        "SharedMemory.Unusable": "cannot use {path} for memory that containers share: {error}",
        "SharedMemory.NotOurs": "cannot use {path} for memory that containers share: it belongs to user {owner}",
        "Claim.NotBound": 'persistentvolumeclaim "{claim}" is {phase}: it has no volume yet',
        "Claim.NoVolume": 'persistentvolume "{volume}" of claim "{claim}" not found',
        "Claim.NotMountable": (
            'persistentvolume "{volume}" is neither a hostPath nor a local volume: this node cannot mount it'
        ),
        "HostPath.Missing": "hostPath {path} does not exist, and this node does not create it for pods",
        "HostPath.WrongType": "hostPath type check failed: {path} is not {type}",
        "HostPath.FolderNotMade": "cannot make the folder {path}: {error}",
        "HostPath.FileNotMade": "cannot make the file {path}: {error}",
        "Mount.NoVolume": 'container {container} mounts the volume "{volume}", which the pod lacks',
        "Mount.NulByte": "{field} {path!r} holds a NUL byte, which no path can have",
        "Mount.NodePath": "{path} belongs to the node and cannot be mounted",
        "SubPath.UnknownVariable": 'subPathExpr of volume mount "{mount}": no variable {variables}',
        "SubPath.NotRelative": "subPath {path} must stay inside its volume",
        "SubPath.Escapes": "subPath {path} leads out of its volume",
        "SubPath.Missing": "subPath {path} does not exist in its volume",
        "SubPath.NotOpened": "cannot open subPath {path} in its volume: {error}",
        # a container's process
        "Container.InvalidPath": "the container names a path that no file system takes: {error}",
        "Environment.UnknownSource": ("the variable {variable} comes from a source this node does not know: {sources}"),
        "Environment.LongText": (
            "a text with $(VAR) in it expands to more than {limit} characters, and no argument "
            "and no variable of a process can be longer"
        ),
        "Environment.ManyArguments": (
            "the arguments of the container have more than {limit} characters, and no process can have more"
        ),
        "Environment.ManyVariables": (
            "the variables of the container have more than {limit} characters, and no process can have more"
        ),
        "FieldRef.Unknown": "unsupported fieldPath: {path}",
        "ResourceFieldRef.NoContainer": "container {container} not found",
        "ResourceFieldRef.Unknown": "unsupported container resource: {resource}",
        "Image.NoCommand": (
            'container {container} names no command and image "{image}" has none here. '
            'Set `command` in the pod, or add an entry "{image}" with `command:` under `images:` in {file}, '
            "for example: images: {{{image!r}: {{command: [python, main.py]}}}}; then {retry}"
        ),
        "Image.NoCommandInEntry": (
            'container {container} names no command and image "{image}" has none here. '
            'Set `command` in the pod, or add `command:` to the entry that matches "{image}" under `images:` in '
            "{file}, for example: images: {{{image!r}: {{command: [python, main.py]}}}}; then {retry}"
        ),
        "Image.NoPython": (
            'image "{image}" is mapped to the Python environment {python}, which is not there: it has no folder bin. '
            "Make it, for example with `python3 -m venv {python}`, and the container starts; "
            "or correct `python:` under `images:` in {file} and {retry}"
        ),
        "Retry.Resubmit": "delete the job and submit it again",
        "Retry.Submit": "submit the job again",
        "Retry.Start": "start the cluster again",
        "Retry.Restart": "stop the cluster and start it again",
        "User.OfNamespace": (
            "{field} {number} is kept for the pods of one namespace, and not of {namespace}: leave {field} out, "
            "or choose a number below {first}"
        ),
        "User.Account": (
            "{field} {number} is a user of this machine, which pods of this node may not be: leave {field} out, "
            "choose a number without an account here, or start the node with --allow-root"
        ),
        "User.Group": (
            "{field} {number} is a group of this machine, which pods of this node may not be: leave {field} out, "
            "choose a number without an account here, or start the node with --allow-root"
        ),
        "User.Root": "container has runAsNonRoot and would run as root: set runAsUser, or start the node as a user",
        # probes and hooks
        "Probe.GrpcNotSupported": "{probe}: this node has no gRPC probes; use httpGet, tcpSocket or exec instead",
        "Handler.GrpcNotSupported": "this node has no gRPC probes: use httpGet, tcpSocket or exec instead",
        "Handler.Unknown": "this node does not know how to do this: {handlers}",
        "Handler.Empty": "no command and no request is given",
        "Handler.ContainerGone": "the container is gone",
        "Handler.NoSuchPort": 'the container has no port named "{port}"',
        "Handler.TimedOut": "timed out after {seconds:g}s",
        "Handler.CommandTimedOut": 'command "{command}" timed out after {seconds:g}s',
        "Handler.NoAnswer": "no answer within {seconds:g}s",
        "Handler.NotConnected": "dial tcp {address}: {cause}",
        "Handler.NotRequested": 'Get "{url}": dial tcp {address}: {cause}',
        "Handler.NotHttp": 'Get "{url}": the answer is not HTTP',
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
            "this node speaks websockets only, and the API server turned yours into SPDY. "
            "Kubernetes 1.36 passes them through; before that, use a client that speaks {protocol}."
        ),
        "Unauthenticated": "show a client certificate of the cluster, or a token of it",
        "Forbidden": "{user} may not {verb} nodes/proxy of {node}; a ClusterRole can allow it",
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
