"""CustomResourceDefinition: the kind that defines kinds."""

from __future__ import annotations

TEXT = """
CustomResourceDefinition: A new kind for the API to serve.
  apiVersion  string                        API group and version this object is written in.
  kind        string                        Kind of the object.
  metadata    ObjectMeta                    Name, labels and what the server keeps about the object.
  spec!       CustomResourceDefinitionSpec  What the kind is.
  status      CustomResourceDefinitionStatus  What was last seen of it.

CustomResourceDefinitionSpec: What a new kind is.
  conversion             CustomResourceConversion       How objects are turned from one version into another.
  group!                 string                         API group of the kind.
  names!                 CustomResourceDefinitionNames  Names of the kind.
  preserveUnknownFields  bool                           Must be false: fields are declared by the schema.
  scope!                 ResourceScope                  Whether its objects live in namespaces or cluster-wide.
  versions!              []CustomResourceDefinitionVersion  Versions the kind is served in.

CustomResourceConversion: How objects are turned from one version into another.
  strategy!  ConversionStrategyType  None changes apiVersion alone; Webhook asks a service.
  webhook    WebhookConversion       The service to ask.

WebhookConversion: A service that converts objects.
  clientConfig               WebhookClientConfig  How to call it.
  conversionReviewVersions!  []string             Versions of the request it understands, best first.

WebhookClientConfig: How to call a webhook.
  caBundle  bytes             Certificates to trust, in base64 PEM.
  service   ServiceReference  A Service of the cluster.
  url       string            An address outside.

ServiceReference: A Service of the cluster.
  name!       string  Name of the Service.
  namespace!  string  Namespace of the Service.
  path        string  Path of the request.
  port        int32   Port of the Service.

CustomResourceDefinitionNames: Names of a kind.
  categories  []string  Groups it is listed with, such as all.
  kind!       string    Name of one object, in CamelCase.
  listKind    string    Name of a list of them.
  plural!     string    Name in paths, in lower case.
  shortNames  []string  Short names for the command line.
  singular    string    Name of one, in lower case.

CustomResourceDefinitionVersion: One version of a kind.
  additionalPrinterColumns  []CustomResourceColumnDefinition  Columns of the table people see.
  deprecated                bool                        Whether its use draws a warning.
  deprecationWarning        string                      The words of that warning.
  name!                     string                      Name of the version, such as v1.
  schema                    CustomResourceValidation    What its objects look like.
  selectableFields          []SelectableField           Fields a field selector may name.
  served!                   bool                        Whether it is served.
  storage!                  bool                        Whether objects are stored in it; exactly one version is.
  subresources              CustomResourceSubresources  Subresources it has.

CustomResourceColumnDefinition: A column of the table people see.
  description  string  What it shows.
  format       string  How the value is written.
  jsonPath!    string  Where the value is, as a JSON path.
  name!        string  Heading of the column.
  priority     int32   0 is always shown; above, only in wide output.
  type!        string  Type of the value.

CustomResourceValidation: What objects of a version look like.
  openAPIV3Schema  JSONSchemaProps  The schema.

SelectableField: A field a field selector may name.
  jsonPath!  string  The field, as a JSON path.

CustomResourceSubresources: Subresources of a version.
  scale   CustomResourceSubresourceScale  The scale subresource.
  status  CustomResourceSubresourceStatus  The status subresource.

CustomResourceSubresourceScale: Where the scale subresource finds its values.
  labelSelectorPath    string  JSON path of the selector, as text.
  specReplicasPath!    string  JSON path of the replicas wished for.
  statusReplicasPath!  string  JSON path of the replicas seen.

CustomResourceSubresourceStatus: The status subresource; it has no settings.

CustomResourceDefinitionStatus: What was last seen of a definition.
  acceptedNames       CustomResourceDefinitionNames  Names in force.
  conditions          []CustomResourceDefinitionCondition @map(type)  Aspects of its state: names accepted, established.
  observedGeneration  int64                          The generation of the definition this status is about.
  storedVersions      []string                       Versions objects may be stored in.

CustomResourceDefinitionCondition: One aspect of a definition's state.
  lastTransitionTime  Time             When the status last changed from one value to another.
  message             string           The details for people.
  observedGeneration  int64            The generation of the object this was observed at.
  reason              string           One word for programs: why it is so.
  status!             ConditionStatus  True, False or Unknown.
  type!               CustomResourceDefinitionConditionType  Name of the aspect.

JSONSchemaProps: What may stand at one place of an object.
  $ref                                  string                   Not allowed in a structural schema.
  $schema                               JSONSchemaURL            Which dialect of JSON schema.
  additionalItems                       JSONSchemaPropsOrBool    Not allowed in a structural schema.
  additionalProperties                  JSONSchemaPropsOrBool    What every value of a map looks like.
  allOf                                 []JSONSchemaProps        All of these must hold.
  anyOf                                 []JSONSchemaProps        At least one of these must hold.
  default                               JSON                     Value where none is given.
  definitions                           JSONSchemaDefinitions    Not allowed in a structural schema.
  dependencies                          JSONSchemaDependencies   Not allowed in a structural schema.
  description                           string                   What it is, for people.
  enum                                  []JSON                   The values allowed.
  example                               JSON                     A value to show.
  exclusiveMaximum                      bool                     Whether the maximum itself is too large.
  exclusiveMinimum                      bool                     Whether the minimum itself is too small.
  externalDocs                          ExternalDocumentation    Where to read more.
  format                                string                   What a text or a number stands for.
  id                                    string                   Not allowed in a structural schema.
  items                                 JSONSchemaPropsOrArray   What every item of a list looks like.
  maxItems                              int64                    The most items.
  maxLength                             int64                    The most characters.
  maxProperties                         int64                    The most fields.
  maximum                               float64                  The largest number.
  minItems                              int64                    The fewest items.
  minLength                             int64                    The fewest characters.
  minProperties                         int64                    The fewest fields.
  minimum                               float64                  The smallest number.
  multipleOf                            float64                  What a number must be a multiple of.
  not                                   JSONSchemaProps          This must not hold.
  nullable                              bool                     Whether null is allowed.
  oneOf                                 []JSONSchemaProps        Exactly one of these must hold.
  pattern                               string                   Regular expression a text must match.
  patternProperties                     [string]JSONSchemaProps  Not allowed in a structural schema.
  properties                            [string]JSONSchemaProps  What each field looks like.
  required                              []string                 Fields that must be there.
  title                                 string                   A heading, for people.
  type                                  string                   The JSON type.
  uniqueItems                           bool                     Must not be true: use x-kubernetes-list-type.
  x-kubernetes-embedded-resource        bool                     Whether an object of its own stands here, with kind
      and metadata.
  x-kubernetes-int-or-string            bool                     Whether both a whole number and a text are allowed.
  x-kubernetes-list-map-keys            []string                 Fields that tell the items of a map list apart.
  x-kubernetes-list-type                string                   How a list is merged: atomic, set or map.
  x-kubernetes-map-type                 string                   How an object is merged: granular or atomic.
  x-kubernetes-preserve-unknown-fields  bool                     Whether fields that are not declared are kept.
  x-kubernetes-validations              []ValidationRule @map(rule) +merge(rule)  Rules in the expression language CEL.

ExternalDocumentation: Where to read more.
  description  string  What it is.
  url          string  The address.

ValidationRule: A rule in the expression language CEL.
  fieldPath          string                 Field to name in the message.
  message            string                 What to say where it does not hold.
  messageExpression  string                 Expression that gives what to say.
  optionalOldSelf    bool                   Whether it is checked on creation too, without an old value.
  reason             FieldValueErrorReason  One word for programs.
  rule!              string                 The expression.

ResourceScope = string
ConversionStrategyType = string
CustomResourceDefinitionConditionType = string
JSONSchemaURL = string
JSONSchemaDefinitions = [string]JSONSchemaProps
JSONSchemaDependencies = [string]JSONSchemaPropsOrStringArray
FieldValueErrorReason = string of FieldValueRequired FieldValueDuplicate FieldValueInvalid FieldValueForbidden
JSON = any: Any JSON value.
JSONSchemaPropsOrBool = either(JSONSchemaProps|bool): A schema, or true or false.
JSONSchemaPropsOrArray = either(JSONSchemaProps): A schema, or a list of them.
JSONSchemaPropsOrStringArray = either(JSONSchemaProps): A schema, or a list of field names.
"""
