"""Objects that are sent and answered but never stored: scaling, binding, eviction, questions about rights."""

from __future__ import annotations

TEXT = """
Binding: A decision on where a pod runs.
  apiVersion  string           API group and version this object is written in.
  kind        string           Kind of the object.
  metadata    ObjectMeta       Name, labels and what the server keeps about the object.
  target!     ObjectReference  The node.
"""

AUTOSCALING = """
Scale: How many replicas an object has and should have.
  apiVersion  string       API group and version this object is written in.
  kind        string       Kind of the object.
  metadata    ObjectMeta   Name, labels and what the server keeps about the object.
  spec        ScaleSpec    What is wished for.
  status      ScaleStatus  What was last seen.

ScaleSpec: How many replicas are wished for.
  replicas  int32  The number.

ScaleStatus: How many replicas were seen.
  replicas!  int32   The number.
  selector   string  Which pods are counted, as a label selector in query form.
"""

POLICY = """
Eviction: A request to remove a pod in good order.
  apiVersion     string         API group and version this object is written in.
  deleteOptions  DeleteOptions  How to delete it.
  kind           string         Kind of the object.
  metadata       ObjectMeta     Name and namespace of the pod.
"""

AUTHENTICATION = """
SelfSubjectReview: A question who the caller is, and its answer.
  apiVersion  string                   API group and version this object is written in.
  kind        string                   Kind of the object.
  metadata    ObjectMeta               Name, labels and what the server keeps about the object.
  status      SelfSubjectReviewStatus  The answer.

SelfSubjectReviewStatus: Who the caller is.
  userInfo  UserInfo  The user.

UserInfo: A user as authentication found it.
  groups    []string @atomic  Names of the groups the user belongs to.
  uid       string            Identity that stays when the name changes hands.
  username  string            Name of the user.
"""

AUTHORIZATION = """
SelfSubjectAccessReview: A question whether the caller may do something, and its answer.
  apiVersion  string                       API group and version this object is written in.
  kind        string                       Kind of the object.
  metadata    ObjectMeta                   Name, labels and what the server keeps about the object.
  spec!       SelfSubjectAccessReviewSpec  The question.
  status      SubjectAccessReviewStatus    The answer.

SelfSubjectAccessReviewSpec: What the caller wants to do; exactly one field is set.
  nonResourceAttributes  NonResourceAttributes  A request to a path that is no resource.
  resourceAttributes     ResourceAttributes     A request to a resource.

SubjectAccessReviewStatus: Whether a request is allowed.
  allowed!         bool    Whether it is allowed.
  denied           bool    Whether it is refused for good.
  evaluationError  string  What went wrong while deciding.
  reason           string  Why, for people.

NonResourceAttributes: A request to a path that is no resource.
  path  string  The path.
  verb  string  The HTTP verb.

ResourceAttributes: A request to a resource.
  fieldSelector  FieldSelectorAttributes  Fields the request is limited to.
  group          string                   API group; * is all.
  labelSelector  LabelSelectorAttributes  Labels the request is limited to.
  name           string                   Name of the object; empty is all.
  namespace      string                   Namespace; empty is all, or none for cluster-wide kinds.
  resource       string                   The resource; * is all.
  subresource    string                   The subresource.
  verb           string                   The verb, such as get or create; * is all.
  version        string                   API version; * is all.

FieldSelectorAttributes: Fields a request is limited to.
  rawSelector   string                      The selector as it was given.
  requirements  []FieldSelectorRequirement  The selector, parsed.

LabelSelectorAttributes: Labels a request is limited to.
  rawSelector   string                      The selector as it was given.
  requirements  []LabelSelectorRequirement  The selector, parsed.

SelfSubjectRulesReview: A question what the caller may do in a namespace, and its answer.
  apiVersion  string                      API group and version this object is written in.
  kind        string                      Kind of the object.
  metadata    ObjectMeta                  Name, labels and what the server keeps about the object.
  spec!       SelfSubjectRulesReviewSpec  The question.
  status      SubjectRulesReviewStatus    The answer.

SelfSubjectRulesReviewSpec: Which namespace is meant.
  namespace  string  The namespace.

SubjectRulesReviewStatus: What is allowed.
  evaluationError    string             What went wrong while deciding.
  incomplete!        bool               Whether there may be more.
  nonResourceRules!  []NonResourceRule  What is allowed on paths that are no resource.
  resourceRules!     []ResourceRule     What is allowed on resources.

NonResourceRule: What is allowed on certain paths.
  nonResourceURLs  []string  The paths.
  verbs!           []string  The verbs.

ResourceRule: What is allowed on certain resources.
  apiGroups      []string  The API groups.
  resourceNames  []string  The names; all where empty.
  resources      []string  The resources.
  verbs!         []string  The verbs.
"""
