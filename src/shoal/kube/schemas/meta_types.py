"""What all kinds share: object metadata, selectors, conditions, and the answers that are no stored object."""

from __future__ import annotations

from shoal.kube.schema import Schema

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"

# Types with a form of their own on the wire, which no list of fields can say.
SPECIAL = {
    "Time": Schema("string", "date-time", go_type="v1.Time", component=f"{_META}.Time", about="A moment, in RFC 3339."),
    "MicroTime": Schema(
        "string",
        "micro-time",
        go_type="v1.MicroTime",
        component=f"{_META}.MicroTime",
        about="A moment, in RFC 3339 with microseconds.",
    ),
    "Quantity": Schema(
        "string",
        "quantity",
        go_type="resource.Quantity",
        component="io.k8s.apimachinery.pkg.api.resource.Quantity",
        about="An amount, such as 500m, 2 or 16Gi.",
    ),
    "IntOrString": Schema(
        "string",
        "int-or-string",
        go_type="intstr.IntOrString",
        component="io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        about="A whole number or a text.",
    ),
    "FieldsV1": Schema(
        "object",
        preserve_unknown=True,
        go_type="v1.FieldsV1",
        component=f"{_META}.FieldsV1",
        about="A set of fields as a tree of JSON keys.",
    ),
    "UID": Schema("string", go_type="types.UID"),
}

TEXT = """
ObjectMeta: What every stored object carries: its name, its labels and what the server keeps about it.
  annotations                 [string]string        Notes for programs, by key; not searchable.
  creationTimestamp           Time                  When the server stored the object. Set by the server.
  deletionGracePeriodSeconds  int64                 Seconds the object is given to end in good order. Set once deletion
      was asked for.
  deletionTimestamp           Time                  When deletion was asked for, or when the grace period ends. Set by
      the server.
  finalizers                  []string @set +merge  Work that must be done before the object may go; each finisher
      takes its own name out.
  generateName                string                Beginning of a name the server completes, used where name is empty.
  generation                  int64                 Counts the changes of the desired state. Set by the server.
  labels                      [string]string        Searchable facts about the object, by key.
  managedFields               []ManagedFieldsEntry  Who set which fields and when. Kept by the server for server-side
      apply.
  name                        string                Name, unique within the kind and namespace. Cannot be changed.
  namespace                   string                The namespace it lives in; empty for cluster-wide kinds. Cannot be
      changed.
  ownerReferences             []OwnerReference @map(uid) +merge(uid)  Objects this one depends on: when all are gone,
      so is this one.
  resourceVersion             string                The version stored; changes with every write. Compare for equality
      only.
  selfLink                    string                No longer set.
  uid                         UID                   Identity of this very object in time and space. Set by the server.

OwnerReference (atomic): A pointer to an object that this one depends on, in the same namespace or cluster-wide.
  apiVersion!         string  API group and version of the owner.
  blockOwnerDeletion  bool    Whether the owner, deleted in the foreground, waits until this object is gone.
  controller          bool    Whether this owner is the one that manages the object; at most one is.
  kind!               string  Kind of the owner.
  name!               string  Name of the owner.
  uid!                UID     UID of the owner.

ManagedFieldsEntry: The fields one manager set through one version of the API.
  apiVersion   string                      Version of the API the fields are written in.
  fieldsType   string                      Format of the field set; always FieldsV1.
  fieldsV1     FieldsV1                    The set of fields.
  manager      string                      Name of the program that manages the fields.
  operation    ManagedFieldsOperationType  How the fields came to be managed: Apply or Update.
  subresource  string                      The subresource the write went through; empty for the object itself.
  time         Time                        When the set of fields last changed.

LabelSelector (atomic): A condition on labels; all parts must hold. An empty one matches everything.
  matchExpressions  []LabelSelectorRequirement  Requirements on single labels.
  matchLabels       [string]string              Labels that must have exactly these values.

LabelSelectorRequirement: A condition on one label.
  key!       string                 The label's key.
  operator!  LabelSelectorOperator  How the label relates to the values.
  values     []string               The values for In and NotIn; must be empty for Exists and DoesNotExist.

Condition: One aspect of an object's state, as last observed.
  lastTransitionTime!  Time             When the status last changed from one value to another.
  message!             string           The details for people.
  observedGeneration   int64            The generation of the object this was observed at.
  reason!              string           One word for programs: why the condition is what it is.
  status!              ConditionStatus  True, False or Unknown.
  type!                string           Name of the aspect.

ListMeta: What a list carries about itself.
  continue            string     Token for the next page; empty on the last.
  remainingItemCount  int64      How many more items follow on later pages, where known.
  resourceVersion     string     The version the list shows; a watch can start from it.
  selfLink            string     No longer set.
  shardInfo           ShardInfo  Which part of the collection this list is, where only a part was asked for.

ShardInfo: Which part of a collection a list shows.
  selector!  string  The selector of the part, as it was given.

Status: The outcome of a request that returns no other object.
  apiVersion  string         API group and version this object is written in.
  code        int32          HTTP status code.
  details     StatusDetails  More about the reason, by its kind.
  kind        string         Kind of the object.
  message     string         What happened, for people.
  metadata    ListMeta       Metadata of the answer.
  reason      StatusReason   One word for programs: why the request failed.
  status      string         Success or Failure.

StatusDetails: What a failed request was about.
  causes             []StatusCause  Every single mistake found.
  group              string         API group of the object.
  kind               string         Kind or resource of the object.
  name               string         Name of the object.
  retryAfterSeconds  int32          Seconds to wait before trying again.
  uid                UID            UID of the object.

StatusCause: One mistake in a request.
  field    string     Path of the field it is about.
  message  string     What is wrong, for people.
  reason   CauseType  One word for programs: the sort of mistake.

DeleteOptions: How an object is to be deleted.
  apiVersion                                        string               API group and version this object is written
      in.
  dryRun                                            []string             Stages to only pretend; All is the one value
      there is.
  gracePeriodSeconds                                int64                Seconds the object is given to end in good
      order; 0 ends it at once.
  ignoreStoreReadErrorWithClusterBreakingPotential  bool                 Delete even where the stored object cannot be
      read.
  kind                                              string               Kind of the object.
  orphanDependents                                  bool                 Older form of propagationPolicy: whether
      dependents stay behind.
  preconditions                                     Preconditions        What must be true of the object for it to be
      deleted.
  propagationPolicy                                 DeletionPropagation  What happens to dependents: Orphan, Background
      or Foreground.

Preconditions: What must be true of an object for a request to go ahead.
  resourceVersion  string  The version it must have.
  uid              UID     The UID it must have.

FieldSelectorRequirement: A condition on one field.
  key!       string                 The field's path.
  operator!  FieldSelectorOperator  How the field relates to the values.
  values     []string               The values for In and NotIn.

ManagedFieldsOperationType = string
LabelSelectorOperator = string
ConditionStatus = string
StatusReason = string
CauseType = string
DeletionPropagation = string
FieldSelectorOperator = string
"""
