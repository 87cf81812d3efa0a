package operators

import (
	"testing"
)

// The snapshot controller creates the VolumeSnapshotContent of a claim's snapshot, which a driver is
// to fill, and binds a snapshot to existing content.
func TestSnapshotController(t *testing.T) {
	needs(t)
	c := serving(t)
	documents := published(t, "external-snapshotter")
	install(t, c, "external-snapshotter", "", documents)
	p := start(t, c, "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller", documents,
		Operator{Deployment: "kube-system/snapshot-controller", Flags: []string{"--kubeconfig=" + c.AccountFile("snapshot-controller"), "--leader-election-namespace=kube-system"}})
	apply(t, c, `
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: default, name: data}
  csi: {driver: disks.example.com, volumeHandle: disk-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  storageClassName: ""
  volumeName: disk
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: disks}
driver: disks.example.com
deletionPolicy: Delete
`)
	// The status that kube-controller-manager sets when it binds a claim.
	if _, said, err := c.Run(t.Context(), "patch", "pvc", "data", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Bound"}}`); err != nil {
		t.Fatal(said)
	}
	if _, said, err := c.Run(t.Context(), "patch", "pv", "disk", "--type=merge", "-p",
		`{"spec":{"claimRef":{"uid":"`+get(t, c, "pvc", "data", "-o", "jsonpath={.metadata.uid}")+`"}}}`); err != nil {
		t.Fatal(said)
	}
	apply(t, c, `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: before, namespace: default}
spec:
  volumeSnapshotClassName: disks
  source: {persistentVolumeClaimName: data}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata: {name: old}
spec:
  deletionPolicy: Retain
  driver: disks.example.com
  source: {snapshotHandle: snapshot-7}
  volumeSnapshotRef: {namespace: default, name: restored}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: restored, namespace: default}
spec:
  source: {volumeSnapshotContentName: old}
`)
	eventually(t, "the content for the driver", func() bool {
		return get(t, c, "volumesnapshotcontents", "-o", `jsonpath={.items[?(@.spec.volumeSnapshotRef.name=="before")].spec.source.volumeHandle}`) == "disk-1"
	})
	eventually(t, "the claim is kept while it is needed", func() bool {
		return get(t, c, "pvc", "data", "-o", "jsonpath={.metadata.finalizers[?(@==\"snapshot.storage.kubernetes.io/pvc-as-source-protection\")]}") != ""
	})
	eventually(t, "the snapshot is bound to the content that was there", func() bool {
		return get(t, c, "volumesnapshot", "restored", "-o", "jsonpath={.status.boundVolumeSnapshotContentName}") == "old"
	})
	blameless(t, p)
}
