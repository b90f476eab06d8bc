"""Volumes of a pod: every source people's manifests may name, also those no node here can mount."""

from __future__ import annotations

TEXT = """
Volume: A folder or device that containers of a pod can mount; exactly one source is set.
  name!                  string                         Name, unique within the pod.
  ...VolumeSource

VolumeSource: Where a volume comes from.
  awsElasticBlockStore   AWSElasticBlockStoreVolumeSource  An AWS disk. Deprecated.
  azureDisk              AzureDiskVolumeSource          An Azure data disk. Deprecated.
  azureFile              AzureFileVolumeSource          An Azure file share. Deprecated.
  cephfs                 CephFSVolumeSource             A CephFS folder. No longer supported.
  cinder                 CinderVolumeSource             An OpenStack disk. Deprecated.
  configMap              ConfigMapVolumeSource          The keys of a ConfigMap as files.
  csi                    CSIVolumeSource                Storage from a CSI driver, made with the pod.
  downwardAPI            DownwardAPIVolumeSource        Fields of the pod as files.
  emptyDir               EmptyDirVolumeSource           An empty folder that lives as long as the pod.
  ephemeral              EphemeralVolumeSource          A volume claimed for this pod alone and gone with it.
  fc                     FCVolumeSource                 A Fibre Channel disk of the node.
  flexVolume             FlexVolumeSource               Storage from an exec-based plugin. Deprecated.
  flocker                FlockerVolumeSource            A Flocker dataset. No longer supported.
  gcePersistentDisk      GCEPersistentDiskVolumeSource  A Google Compute Engine disk. Deprecated.
  gitRepo                GitRepoVolumeSource            A checkout of a git repository. Deprecated.
  glusterfs              GlusterfsVolumeSource          A GlusterFS volume. No longer supported.
  hostPath               HostPathVolumeSource           A file or folder of the node.
  image                  ImageVolumeSource              The files of an image.
  iscsi                  ISCSIVolumeSource              An iSCSI disk.
  nfs                    NFSVolumeSource                A folder on an NFS server.
  persistentVolumeClaim  PersistentVolumeClaimVolumeSource  The volume bound to a claim of the namespace.
  photonPersistentDisk   PhotonPersistentDiskVolumeSource  A Photon disk. No longer supported.
  portworxVolume         PortworxVolumeSource           A Portworx volume. Deprecated.
  projected              ProjectedVolumeSource          Several sources put together in one folder.
  quobyte                QuobyteVolumeSource            A Quobyte volume. No longer supported.
  rbd                    RBDVolumeSource                A Ceph block device. No longer supported.
  scaleIO                ScaleIOVolumeSource            A ScaleIO volume. No longer supported.
  secret                 SecretVolumeSource             The keys of a Secret as files.
  storageos              StorageOSVolumeSource          A StorageOS volume. No longer supported.
  vsphereVolume          VsphereVirtualDiskVolumeSource  A vSphere disk. Deprecated.

AWSElasticBlockStoreVolumeSource: An AWS disk.
  fsType     string  File system of the volume, such as ext4.
  partition  int32   Partition to mount; 0 is the whole disk.
  readOnly   bool    Whether it is mounted read-only.
  volumeID!  string  Identity of the disk.

AzureDiskVolumeSource: An Azure data disk.
  cachingMode  AzureDataDiskCachingMode =ReadWrite  How the host caches it.
  diskName!    string                     Name of the disk.
  diskURI!     string                     Address of the disk.
  fsType       string =ext4               File system of the volume, such as ext4.
  kind         AzureDataDiskKind =Shared  Which sort of disk.
  readOnly     bool                       Whether it is mounted read-only.

AzureFileVolumeSource: An Azure file share.
  readOnly     bool    Whether it is mounted read-only.
  secretName!  string  Secret with the storage account and its key.
  shareName!   string  Name of the share.

CephFSVolumeSource: A CephFS folder.
  monitors!   []string              Addresses of the Ceph monitors.
  path        string                Folder to mount; / where empty.
  readOnly    bool                  Whether it is mounted read-only.
  secretFile  string                File with the key of the user.
  secretRef   LocalObjectReference  Secret with the credentials.
  user        string                User to log in as.

CinderVolumeSource: An OpenStack disk.
  fsType     string                File system of the volume, such as ext4.
  readOnly   bool                  Whether it is mounted read-only.
  secretRef  LocalObjectReference  Secret with the credentials.
  volumeID!  string                Identity of the disk.

ConfigMapVolumeSource: The keys of a ConfigMap as files.
  defaultMode  int32        Mode bits of the files where nothing else is said.
  items        []KeyToPath  Which keys, and their paths; all of them where empty.
  optional     bool         Whether the ConfigMap or its keys may be missing.
  ...LocalObjectReference

CSIVolumeSource: Storage from a CSI driver, made with the pod.
  driver!               string                Name of the driver.
  fsType                string                File system of the volume, such as ext4.
  nodePublishSecretRef  LocalObjectReference  Secret handed to the driver when it is mounted.
  readOnly              bool                  Whether it is mounted read-only.
  volumeAttributes      [string]string        Settings for the driver.

DownwardAPIVolumeSource: Fields of the pod as files.
  defaultMode  int32                    Mode bits of the files where nothing else is said.
  items        []DownwardAPIVolumeFile  The files.

DownwardAPIVolumeFile: A field of the pod as a file.
  fieldRef          ObjectFieldSelector    A field, such as metadata.labels.
  mode              int32                  Mode bits of the file.
  path!             string                 Relative path of the file, without `..`.
  resourceFieldRef  ResourceFieldSelector  A request or limit of a container.

EmptyDirVolumeSource: An empty folder that lives as long as the pod.
  medium     StorageMedium  Memory keeps it in memory; otherwise it is on the node's disk.
  sizeLimit  Quantity       The most it may hold.

EphemeralVolumeSource: A volume claimed for one pod and gone with it.
  volumeClaimTemplate  PersistentVolumeClaimTemplate  The claim to make; the pod will own it.

FCVolumeSource: A Fibre Channel disk.
  fsType      string    File system of the volume, such as ext4.
  lun         int32     Logical unit number.
  readOnly    bool      Whether it is mounted read-only.
  targetWWNs  []string  Worldwide names of the targets.
  wwids       []string  Worldwide identifiers of the disk.

FlexVolumeSource: Storage from an exec-based plugin.
  driver!    string                Name of the plugin.
  fsType     string                File system of the volume, such as ext4.
  options    [string]string        Settings for the plugin.
  readOnly   bool                  Whether it is mounted read-only.
  secretRef  LocalObjectReference  Secret with the credentials.

FlockerVolumeSource: A Flocker dataset.
  datasetName  string  Name of the dataset.
  datasetUUID  string  Identity of the dataset.

GCEPersistentDiskVolumeSource: A Google Compute Engine disk.
  fsType     string  File system of the volume, such as ext4.
  partition  int32   Partition to mount; 0 is the whole disk.
  pdName!    string  Name of the disk.
  readOnly   bool    Whether it is mounted read-only.

GitRepoVolumeSource: A checkout of a git repository.
  directory    string  Folder within the volume.
  repository!  string  Address of the repository.
  revision     string  Commit to check out.

GlusterfsVolumeSource: A GlusterFS volume.
  endpoints!  string  Endpoints with the servers' addresses.
  path!       string  Path of the volume.
  readOnly    bool    Whether it is mounted read-only.

HostPathVolumeSource: A file or folder of the node.
  path!  string        The path on the node.
  type   HostPathType  What must be there, or is made; empty checks nothing.

ImageVolumeSource: The files of an image.
  pullPolicy  PullPolicy  When the image is fetched anew.
  reference   string      Name of the image.

ISCSIVolumeSource: An iSCSI disk.
  chapAuthDiscovery  bool                  Whether discovery uses CHAP.
  chapAuthSession    bool                  Whether the session uses CHAP.
  fsType             string                File system of the volume, such as ext4.
  initiatorName      string                Name the node introduces itself with.
  iqn!               string                Name of the target.
  iscsiInterface     string =default       Interface to use.
  lun!               int32                 Logical unit number.
  portals            []string              Further portals of the target.
  readOnly           bool                  Whether it is mounted read-only.
  secretRef          LocalObjectReference  Secret with the credentials.
  targetPortal!      string                Address of the portal.

NFSVolumeSource: A folder on an NFS server.
  path!     string  The folder the server exports.
  readOnly  bool    Whether it is mounted read-only.
  server!   string  Name or address of the server.

PersistentVolumeClaimVolumeSource: The volume bound to a claim.
  claimName!  string  Name of the claim in the pod's namespace.
  readOnly    bool    Whether every mount of it is read-only.

PhotonPersistentDiskVolumeSource: A Photon disk.
  fsType  string  File system of the volume, such as ext4.
  pdID!   string  Identity of the disk.

PortworxVolumeSource: A Portworx volume.
  fsType     string  File system of the volume, such as ext4.
  readOnly   bool    Whether it is mounted read-only.
  volumeID!  string  Identity of the volume.

ProjectedVolumeSource: Several sources put together in one folder.
  defaultMode  int32               Mode bits of the files where nothing else is said.
  sources      []VolumeProjection  The sources, in order.

VolumeProjection: One source of a projected volume; exactly one field is set.
  clusterTrustBundle   ClusterTrustBundleProjection   Certificates from ClusterTrustBundles.
  configMap            ConfigMapProjection            Keys of a ConfigMap.
  downwardAPI          DownwardAPIProjection          Fields of the pod.
  podCertificate       PodCertificateProjection       A private key and a certificate made for the pod.
  secret               SecretProjection               Keys of a Secret.
  serviceAccountToken  ServiceAccountTokenProjection  A token of the pod's service account.

ClusterTrustBundleProjection: Certificates from ClusterTrustBundles as a file.
  labelSelector  LabelSelector  Which bundles of the signer.
  name           string         One bundle by name; not together with signerName.
  optional       bool           Whether there may be none.
  path!          string         Relative path of the file.
  signerName     string         All bundles of this signer.

ConfigMapProjection: Keys of a ConfigMap as files.
  items     []KeyToPath  Which keys, and their paths; all of them where empty.
  optional  bool         Whether the ConfigMap or its keys may be missing.
  ...LocalObjectReference

DownwardAPIProjection: Fields of the pod as files.
  items  []DownwardAPIVolumeFile  The files.

PodCertificateProjection: A private key and a certificate made for the pod.
  certificateChainPath  string          File for the certificates alone.
  credentialBundlePath  string          File for key and certificates together.
  keyPath               string          File for the key alone.
  keyType!              string          Which sort of key to make.
  maxExpirationSeconds  int32           The longest life of a certificate to accept.
  signerName!           string          The signer to ask.
  userAnnotations       [string]string  Facts passed on to the signer.

SecretProjection: Keys of a Secret as files.
  items     []KeyToPath  Which keys, and their paths; all of them where empty.
  optional  bool         Whether the Secret or its keys may be missing.
  ...LocalObjectReference

ServiceAccountTokenProjection: A token of the pod's service account as a file.
  audience           string  Whom the token is meant for.
  expirationSeconds  int64   Seconds the token is valid; it is renewed in time.
  path!              string  Relative path of the file.

KeyToPath: A key as a file.
  key!   string  The key.
  mode   int32   Mode bits of the file.
  path!  string  Relative path of the file, without `..`.

QuobyteVolumeSource: A Quobyte volume.
  group      string  Group to mount it as.
  readOnly   bool    Whether it is mounted read-only.
  registry!  string  Addresses of the registry, with ports.
  tenant     string  Tenant that owns it.
  user       string  User to mount it as.
  volume!    string  Name of the volume.

RBDVolumeSource: A Ceph block device.
  fsType     string                     File system of the volume, such as ext4.
  image!     string                     Name of the image.
  keyring    string =/etc/ceph/keyring  File with the keyring.
  monitors!  []string                   Addresses of the Ceph monitors.
  pool       string =rbd                Name of the pool.
  readOnly   bool                       Whether it is mounted read-only.
  secretRef  LocalObjectReference       Secret with the credentials.
  user       string =admin              User to log in as.

ScaleIOVolumeSource: A ScaleIO volume.
  fsType            string =xfs              File system of the volume, such as ext4.
  gateway!          string                   Address of the gateway.
  protectionDomain  string                   Name of the protection domain.
  readOnly          bool                     Whether it is mounted read-only.
  secretRef!        LocalObjectReference     Secret with the credentials.
  sslEnabled        bool                     Whether to talk to the gateway over TLS.
  storageMode       string =ThinProvisioned  Whether storage is thick or thin provisioned.
  storagePool       string                   Name of the storage pool.
  system!           string                   Name of the storage system.
  volumeName        string                   Name of the volume.

SecretVolumeSource: The keys of a Secret as files.
  defaultMode  int32        Mode bits of the files where nothing else is said.
  items        []KeyToPath  Which keys, and their paths; all of them where empty.
  optional     bool         Whether the Secret or its keys may be missing.
  secretName   string       Name of the Secret.

StorageOSVolumeSource: A StorageOS volume.
  fsType           string                File system of the volume, such as ext4.
  readOnly         bool                  Whether it is mounted read-only.
  secretRef        LocalObjectReference  Secret with the credentials.
  volumeName       string                Name of the volume.
  volumeNamespace  string                Namespace of the volume within StorageOS.

VsphereVirtualDiskVolumeSource: A vSphere disk.
  fsType             string  File system of the volume, such as ext4.
  storagePolicyID    string  Identity of the storage policy.
  storagePolicyName  string  Name of the storage policy.
  volumePath!        string  Path of the disk.

PersistentVolumeClaimTemplate: The claim an ephemeral volume makes.
  metadata  ObjectMeta                 Labels and annotations for the claim.
  spec!     PersistentVolumeClaimSpec  What is claimed.

LocalObjectReference (atomic): An object of the same namespace.
  name  string  Its name.

AzureDataDiskCachingMode = string of None ReadOnly ReadWrite
AzureDataDiskKind = string of Shared Dedicated Managed
StorageMedium = string
HostPathType = string of "" DirectoryOrCreate Directory FileOrCreate File Socket CharDevice BlockDevice
"""
