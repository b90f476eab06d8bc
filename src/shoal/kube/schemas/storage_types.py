"""Storage and the claims on it."""

from __future__ import annotations

TEXT = """
PersistentVolume: A piece of storage in the cluster.
  apiVersion  string                  API group and version this object is written in.
  kind        string                  Kind of the object.
  metadata    ObjectMeta              Name, labels and what the server keeps about the object.
  spec        PersistentVolumeSpec    What the storage is.
  status      PersistentVolumeStatus  What was last seen of it.

PersistentVolumeSpec: What a piece of storage is; exactly one source is set.
  accessModes                    []PersistentVolumeAccessMode   How it can be mounted.
  capacity                       ResourceList                   How much it holds.
  claimRef                       ObjectReference @granular  The claim it is bound to.
  mountOptions                   []string                       Options for mounting it.
  nodeAffinity                   VolumeNodeAffinity             Nodes it can be reached from.
  persistentVolumeReclaimPolicy  PersistentVolumeReclaimPolicy  What happens to it once its claim is gone.
  storageClassName               string                         The class it belongs to.
  volumeAttributesClassName      string                         The class of its changeable settings.
  volumeMode                     PersistentVolumeMode           Whether it is a file system or a block device.
  ...PersistentVolumeSource

PersistentVolumeSource: Where a piece of storage comes from.
  awsElasticBlockStore           AWSElasticBlockStoreVolumeSource  An AWS disk. Deprecated.
  azureDisk                      AzureDiskVolumeSource          An Azure data disk. Deprecated.
  azureFile                      AzureFilePersistentVolumeSource  An Azure file share. Deprecated.
  cephfs                         CephFSPersistentVolumeSource   A CephFS folder. No longer supported.
  cinder                         CinderPersistentVolumeSource   An OpenStack disk. Deprecated.
  csi                            CSIPersistentVolumeSource      Storage from a CSI driver.
  fc                             FCVolumeSource                 A Fibre Channel disk of the node.
  flexVolume                     FlexPersistentVolumeSource     Storage from an exec-based plugin. Deprecated.
  flocker                        FlockerVolumeSource            A Flocker dataset. No longer supported.
  gcePersistentDisk              GCEPersistentDiskVolumeSource  A Google Compute Engine disk. Deprecated.
  glusterfs                      GlusterfsPersistentVolumeSource  A GlusterFS volume. No longer supported.
  hostPath                       HostPathVolumeSource           A folder of the node; for one node only.
  iscsi                          ISCSIPersistentVolumeSource    An iSCSI disk.
  local                          LocalVolumeSource              A folder or disk of one node.
  nfs                            NFSVolumeSource                A folder on an NFS server.
  photonPersistentDisk           PhotonPersistentDiskVolumeSource  A Photon disk. No longer supported.
  portworxVolume                 PortworxVolumeSource           A Portworx volume. Deprecated.
  quobyte                        QuobyteVolumeSource            A Quobyte volume. No longer supported.
  rbd                            RBDPersistentVolumeSource      A Ceph block device. No longer supported.
  scaleIO                        ScaleIOPersistentVolumeSource  A ScaleIO volume. No longer supported.
  storageos                      StorageOSPersistentVolumeSource  A StorageOS volume. No longer supported.
  vsphereVolume                  VsphereVirtualDiskVolumeSource  A vSphere disk. Deprecated.

PersistentVolumeStatus: What was last seen of a piece of storage.
  lastPhaseTransitionTime  Time                   When the phase last changed.
  message                  string                 Why it is in this phase, for people.
  phase                    PersistentVolumePhase  Whether it is free, bound or released.
  reason                   string                 One word: why it is in this phase.

AzureFilePersistentVolumeSource: An Azure file share.
  readOnly         bool    Whether it is mounted read-only.
  secretName!      string  Secret with the storage account and its key.
  secretNamespace  string  Namespace of that Secret.
  shareName!       string  Name of the share.

CephFSPersistentVolumeSource: A CephFS folder.
  monitors!   []string         Addresses of the Ceph monitors.
  path        string           Folder to mount; / where empty.
  readOnly    bool             Whether it is mounted read-only.
  secretFile  string           File with the key of the user.
  secretRef   SecretReference  Secret with the credentials.
  user        string           User to log in as.

CinderPersistentVolumeSource: An OpenStack disk.
  fsType     string           File system of the volume, such as ext4.
  readOnly   bool             Whether it is mounted read-only.
  secretRef  SecretReference  Secret with the credentials.
  volumeID!  string           Identity of the disk.

CSIPersistentVolumeSource: Storage from a CSI driver.
  controllerExpandSecretRef   SecretReference  Secret for growing it.
  controllerPublishSecretRef  SecretReference  Secret for attaching it.
  driver!                     string           Name of the driver.
  fsType                      string           File system of the volume, such as ext4.
  nodeExpandSecretRef         SecretReference  Secret for growing it on a node.
  nodePublishSecretRef        SecretReference  Secret for mounting it into a pod.
  nodeStageSecretRef          SecretReference  Secret for preparing it on a node.
  readOnly                    bool             Whether it is mounted read-only.
  volumeAttributes            [string]string   Settings for the driver.
  volumeHandle!               string           The driver's own name for it.

FlexPersistentVolumeSource: Storage from an exec-based plugin.
  driver!    string           Name of the plugin.
  fsType     string           File system of the volume, such as ext4.
  options    [string]string   Settings for the plugin.
  readOnly   bool             Whether it is mounted read-only.
  secretRef  SecretReference  Secret with the credentials.

GlusterfsPersistentVolumeSource: A GlusterFS volume.
  endpoints!          string  Endpoints with the servers' addresses.
  endpointsNamespace  string  Namespace of those Endpoints.
  path!               string  Path of the volume.
  readOnly            bool    Whether it is mounted read-only.

ISCSIPersistentVolumeSource: An iSCSI disk.
  chapAuthDiscovery  bool             Whether discovery uses CHAP.
  chapAuthSession    bool             Whether the session uses CHAP.
  fsType             string           File system of the volume, such as ext4.
  initiatorName      string           Name the node introduces itself with.
  iqn!               string           Name of the target.
  iscsiInterface     string =default  Interface to use.
  lun!               int32            Logical unit number.
  portals            []string         Further portals of the target.
  readOnly           bool             Whether it is mounted read-only.
  secretRef          SecretReference  Secret with the credentials.
  targetPortal!      string           Address of the portal.

LocalVolumeSource: A folder or disk of one node.
  fsType  string  File system of the volume, such as ext4.
  path!   string  Path on the node.

VolumeNodeAffinity: Nodes a volume can be reached from.
  required  NodeSelector  What must hold for such a node.

RBDPersistentVolumeSource: A Ceph block device.
  fsType     string                     File system of the volume, such as ext4.
  image!     string                     Name of the image.
  keyring    string =/etc/ceph/keyring  File with the keyring.
  monitors!  []string                   Addresses of the Ceph monitors.
  pool       string =rbd                Name of the pool.
  readOnly   bool                       Whether it is mounted read-only.
  secretRef  SecretReference            Secret with the credentials.
  user       string =admin              User to log in as.

ScaleIOPersistentVolumeSource: A ScaleIO volume.
  fsType            string =xfs              File system of the volume, such as ext4.
  gateway!          string                   Address of the gateway.
  protectionDomain  string                   Name of the protection domain.
  readOnly          bool                     Whether it is mounted read-only.
  secretRef!        SecretReference          Secret with the credentials.
  sslEnabled        bool                     Whether to talk to the gateway over TLS.
  storageMode       string =ThinProvisioned  Whether storage is thick or thin provisioned.
  storagePool       string                   Name of the storage pool.
  system!           string                   Name of the storage system.
  volumeName        string                   Name of the volume.

StorageOSPersistentVolumeSource: A StorageOS volume.
  fsType           string           File system of the volume, such as ext4.
  readOnly         bool             Whether it is mounted read-only.
  secretRef        ObjectReference  Secret with the credentials.
  volumeName       string           Name of the volume.
  volumeNamespace  string           Namespace of the volume within StorageOS.

SecretReference (atomic): A Secret in any namespace.
  name       string  Its name.
  namespace  string  Its namespace.

PersistentVolumeClaim: A wish for storage, and the storage it got.
  apiVersion  string                       API group and version this object is written in.
  kind        string                       Kind of the object.
  metadata    ObjectMeta                   Name, labels and what the server keeps about the object.
  spec        PersistentVolumeClaimSpec    What is wished for.
  status      PersistentVolumeClaimStatus  What was last seen of it.

PersistentVolumeClaimSpec: What storage is wished for.
  accessModes                []PersistentVolumeAccessMode  How it must be mountable.
  dataSource                 TypedLocalObjectReference     An object of the namespace whose data it starts with.
  dataSourceRef              TypedObjectReference          Like dataSource, from any kind and namespace.
  resources                  VolumeResourceRequirements    How much it must hold.
  selector                   LabelSelector                 Labels of the volumes to choose from.
  storageClassName           string                        The class it is to come from; empty for none.
  volumeAttributesClassName  string                        The class of its changeable settings.
  volumeMode                 PersistentVolumeMode          Whether it is a file system or a block device.
  volumeName                 string                        The volume it is bound to.

VolumeResourceRequirements: How much storage is wished for.
  limits    ResourceList  The most of each resource.
  requests  ResourceList  The least of each resource.

TypedLocalObjectReference (atomic): An object of the same namespace, of any kind.
  apiGroup  string  API group of the object; empty for the core group.
  kind!     string  Kind of the object.
  name!     string  Name of the object.

TypedObjectReference: An object of any kind.
  apiGroup   string  API group of the object; empty for the core group.
  kind!      string  Kind of the object.
  name!      string  Name of the object.
  namespace  string  Namespace of the object; the same one where empty.

PersistentVolumeClaimStatus: What was last seen of a claim.
  accessModes                       []PersistentVolumeAccessMode  How the volume can be mounted.
  allocatedResourceStatuses         [string]string                How far a change of size has come.
  allocatedResources                ResourceList                  Size asked for in a change under way.
  capacity                          ResourceList                  How much the volume holds.
  conditions                        []PersistentVolumeClaimCondition @map(type) +merge(type)  Aspects of its state.
  currentVolumeAttributesClassName  string                        The class of settings in force.
  modifyVolumeStatus                ModifyVolumeStatus            A change of settings under way.
  phase                             PersistentVolumeClaimPhase    Whether it is bound.

PersistentVolumeClaimCondition: One aspect of a claim's state.
  lastProbeTime       Time             When it was last looked at.
  lastTransitionTime  Time             When the status last changed from one value to another.
  message             string           The details for people.
  reason              string           One word for programs: why it is so.
  status!             ConditionStatus  True, False or Unknown.
  type!               PersistentVolumeClaimConditionType  Name of the aspect.

ModifyVolumeStatus: A change of a volume's settings.
  status!                          PersistentVolumeClaimModifyVolumeStatus  How far it has come.
  targetVolumeAttributesClassName  string  The class being changed to.

PersistentVolumeAccessMode = string of ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod
PersistentVolumeReclaimPolicy = string of Recycle Delete Retain
PersistentVolumeMode = string of Block Filesystem
PersistentVolumePhase = string of Pending Available Bound Released Failed
PersistentVolumeClaimPhase = string of Pending Bound Lost
PersistentVolumeClaimConditionType = string
PersistentVolumeClaimModifyVolumeStatus = string
"""
