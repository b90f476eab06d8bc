"""Namespaces, settings, secrets and identities, and the pointers between objects."""

from __future__ import annotations

TEXT = """
Namespace: A room for names: objects in it need to differ in name only from each other.
  apiVersion  string           API group and version this object is written in.
  kind        string           Kind of the object.
  metadata    ObjectMeta       Name, labels and what the server keeps about the object.
  spec        NamespaceSpec    What is wanted of it.
  status      NamespaceStatus  What was last seen of it.

NamespaceSpec: What is wanted of a namespace.
  finalizers  []FinalizerName  Who must be done before the namespace is removed.

NamespaceStatus: What was last seen of a namespace.
  conditions  []NamespaceCondition @map(type) +merge(type)  Aspects of its state while it is removed.
  phase       NamespacePhase  Active or Terminating.

NamespaceCondition: One aspect of a namespace's state.
  lastTransitionTime  Time                    When the status last changed from one value to another.
  message             string                  The details for people.
  reason              string                  One word for programs: why it is so.
  status!             ConditionStatus         True, False or Unknown.
  type!               NamespaceConditionType  Name of the aspect.

ConfigMap: Settings for pods to read.
  apiVersion  string          API group and version this object is written in.
  binaryData  [string]bytes   Values that are not text, in base64.
  data        [string]string  Values that are text.
  immutable   bool            Whether the values can no longer be changed.
  kind        string          Kind of the object.
  metadata    ObjectMeta      Name, labels and what the server keeps about the object.

Secret: Values only certain readers should see.
  apiVersion  string          API group and version this object is written in.
  data        [string]bytes   The values, in base64.
  immutable   bool            Whether the values can no longer be changed.
  kind        string          Kind of the object.
  metadata    ObjectMeta      Name, labels and what the server keeps about the object.
  stringData  [string]string  Values as plain text, for writing only; they are moved to data.
  type        SecretType      What sort of secret, for programs.

ServiceAccount: An identity for pods.
  apiVersion                    string                  API group and version this object is written in.
  automountServiceAccountToken  bool                    Whether pods get a token of it by default.
  imagePullSecrets              []LocalObjectReference  Secrets pods of this account use for fetching images.
  kind                          string                  Kind of the object.
  metadata                      ObjectMeta              Name, labels and what the server keeps about the object.
  secrets                       []ObjectReference @map(name) +merge(name)  Secrets pods of this account may use.

ObjectReference (atomic): A pointer to an object.
  apiVersion       string  API group and version of the object.
  fieldPath        string  The part of the object that is meant.
  kind             string  Kind of the object.
  name             string  Name of the object.
  namespace        string  Namespace of the object.
  resourceVersion  string  The version that was meant.
  uid              UID     UID of the object.

FinalizerName = string
NamespacePhase = string of Active Terminating
NamespaceConditionType = string
SecretType = string
"""
