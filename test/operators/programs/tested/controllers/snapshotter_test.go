//go:build verify

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	groupsnapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	controller "github.com/kubernetes-csi/external-snapshotter/v8/pkg/common-controller"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/metrics"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/utils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/anykind/anykind/envtest/verify"
)

const resync = 15 * time.Minute

// startSnapshotController starts snapshot-controller as its main function does, with one worker.
func startSnapshotController(ctx context.Context, c *rest.Config) error {
	core, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	ours, err := versioned.NewForConfig(c)
	if err != nil {
		return err
	}
	s, k := snapshotinformers.NewSharedInformerFactory(ours, resync), informers.NewSharedInformerFactory(core, resync)
	backoff := func() workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, 5*time.Minute)
	}
	groups := s.Groupsnapshot().V1()
	run := controller.NewCSISnapshotCommonController(ours, core,
		s.Snapshot().V1().VolumeSnapshots(), s.Snapshot().V1().VolumeSnapshotContents(), s.Snapshot().V1().VolumeSnapshotClasses(),
		groups.VolumeGroupSnapshots(), groups.VolumeGroupSnapshotContents(), groups.VolumeGroupSnapshotClasses(),
		k.Core().V1().PersistentVolumeClaims(), k.Core().V1().PersistentVolumes(), nil, noMetrics{}, resync,
		backoff(), backoff(), backoff(), backoff(), false, true, true).Run
	s.Start(ctx.Done())
	k.Start(ctx.Done())
	run(1, ctx.Done(), new(sync.WaitGroup))
	s.Shutdown()
	k.Shutdown()
	return nil
}

// noMetrics has no goroutine, unlike the manager that its package exports.
type noMetrics struct{ metrics.MetricsManager }

func (noMetrics) OperationStart(metrics.OperationKey, metrics.OperationValue)         {}
func (noMetrics) DropOperation(metrics.OperationKey)                                  {}
func (noMetrics) RecordMetrics(metrics.OperationKey, metrics.OperationStatus, string) {}
func (noMetrics) RecordVolumeGroupSnapshotMetrics(metrics.OperationKey, metrics.OperationStatus, string) {
}

func snapshotScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	must(scheme.AddToScheme(s))
	must(snapshotscheme.AddToScheme(s))
	return s
}

// runDriver stands for csi-snapshotter with a CSI driver: a snapshot is ready at once.
func runDriver(ctx context.Context, c *rest.Config) error {
	m, err := ctrl.NewManager(c, managerOptions(snapshotScheme()))
	if err != nil {
		return err
	}
	take := func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var content snapshots.VolumeSnapshotContent
		if err := m.GetClient().Get(ctx, r.NamespacedName, &content); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if content.DeletionTimestamp != nil {
			unbound := content.Spec.Source.SnapshotHandle != nil && content.Spec.VolumeSnapshotRef.UID == ""
			deletes := unbound || content.Annotations[utils.AnnVolumeSnapshotBeingDeleted] != ""
			if !deletes || !controllerutil.RemoveFinalizer(&content, utils.VolumeSnapshotContentFinalizer) {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, m.GetClient().Update(ctx, &content)
		}
		if content.Status != nil {
			return reconcile.Result{}, nil
		}
		handle, now, size, ready := "snapshot", time.Now().UnixNano(), int64(1<<30), true
		content.Status = &snapshots.VolumeSnapshotContentStatus{SnapshotHandle: &handle, CreationTime: &now, RestoreSize: &size, ReadyToUse: &ready}
		return reconcile.Result{}, m.GetClient().Status().Update(ctx, &content)
	}
	if err := ctrl.NewControllerManagedBy(m).For(&snapshots.VolumeSnapshotContent{}).Complete(reconcile.Func(take)); err != nil {
		return err
	}
	return m.Start(ctx)
}

const driver = "csi.example.com"

func aVolume() (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	none := ""
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}, Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "volume"}},
		}}, &corev1.PersistentVolumeClaim{ObjectMeta: labelled("data"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, VolumeName: "volume", StorageClassName: &none,
		}}
}

func labelled(name string) metav1.ObjectMeta {
	m := meta(name)
	m.Labels = labels
	return m
}

// aClass is of no namespace, like all classes.
func aClass(policy snapshots.DeletionPolicy) *snapshots.VolumeSnapshotClass {
	return &snapshots.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class", Annotations: map[string]string{utils.IsDefaultSnapshotClassAnnotation: "true"}},
		Driver:     driver, DeletionPolicy: policy,
	}
}

func aSnapshot(name string) *snapshots.VolumeSnapshot {
	claim, class := "data", "class"
	return &snapshots.VolumeSnapshot{ObjectMeta: meta(name), Spec: snapshots.VolumeSnapshotSpec{
		Source: snapshots.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}, VolumeSnapshotClassName: &class,
	}}
}

// prepared makes a volume that snapshots can be taken of.
func prepared(s *verify.Scenario) {
	volume, claim := aVolume()
	s.Apply(aClass(snapshots.VolumeSnapshotContentDelete), volume, claim)
	s.Do("binds the claim", func(ctx context.Context) error {
		return s.Status().Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Bound"}}`)))
	})
	s.Settle()
}

// takes creates a snapshot.
func takes(s *verify.Scenario) {
	prepared(s)
	s.Apply(aSnapshot("a"))
	s.Finally("ready", func(state *verify.State) error {
		var now snapshots.VolumeSnapshot
		if err := state.Get(client.ObjectKeyFromObject(aSnapshot("a")), &now); err != nil {
			return err
		}
		if now.Status == nil || now.Status.ReadyToUse == nil || !*now.Status.ReadyToUse {
			return errors.New("not ready")
		}
		return nil
	})
}

// replaces takes a snapshot, deletes it, and takes another one.
func replaces(s *verify.Scenario) {
	prepared(s)
	s.Apply(aSnapshot("a"))
	s.Settle()
	s.Delete(aSnapshot("a"))
	s.Settle()
	s.Apply(aSnapshot("b"))
	s.Settle()
	s.Delete(aSnapshot("b"))
	s.Finally("no content", noContent)
}

// binds creates a snapshot with a content of the user, and deletes it.
func binds(s *verify.Scenario) {
	s.Apply(aClass(snapshots.VolumeSnapshotContentDelete), aContent("a"))
	bound := aBound("a")
	s.Apply(bound)
	s.Settle()
	s.Delete(bound)
	s.Finally("no content", noContent)
}

// aContent is a content of the user, for a snapshot.
func aContent(snapshot string) *snapshots.VolumeSnapshotContent {
	handle, mode := "snapshot", corev1.PersistentVolumeFilesystem
	return &snapshots.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "of-" + snapshot}, Spec: snapshots.VolumeSnapshotContentSpec{
		Driver: driver, DeletionPolicy: snapshots.VolumeSnapshotContentDelete, SourceVolumeMode: &mode,
		Source:            snapshots.VolumeSnapshotContentSource{SnapshotHandle: &handle},
		VolumeSnapshotRef: corev1.ObjectReference{Namespace: "default", Name: snapshot},
	}}
}

// aBound is a snapshot with a content of the user.
func aBound(name string) *snapshots.VolumeSnapshot {
	s, content := aSnapshot(name), aContent(name).Name
	s.Spec.Source = snapshots.VolumeSnapshotSource{VolumeSnapshotContentName: &content}
	return s
}

// runAdministrator deletes contents without a snapshot, a minute later.
func runAdministrator(ctx context.Context, c *rest.Config) error {
	m, err := ctrl.NewManager(c, managerOptions(snapshotScheme()))
	if err != nil {
		return err
	}
	retire := func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		var content snapshots.VolumeSnapshotContent
		if err := m.GetClient().Get(ctx, r.NamespacedName, &content); err != nil || content.DeletionTimestamp != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		again := reconcile.Result{RequeueAfter: time.Minute}
		if time.Since(content.CreationTimestamp.Time) < time.Minute {
			return again, nil
		}
		of := content.Spec.VolumeSnapshotRef
		err := m.GetClient().Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, &snapshots.VolumeSnapshot{})
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, client.IgnoreNotFound(m.GetClient().Delete(ctx, &content))
		}
		return again, err
	}
	if err := ctrl.NewControllerManagedBy(m).For(&snapshots.VolumeSnapshotContent{}).Complete(reconcile.Func(retire)); err != nil {
		return err
	}
	return m.Start(ctx)
}

// groups takes a snapshot of a group of one claim, and a snapshot of the same name. No fake makes the group ready.
func groups(s *verify.Scenario) {
	prepared(s)
	s.Apply(aGroupClass())
	s.Settle()
	s.Apply(aGroup("a"), aSnapshot("a"))
}

func aGroupClass() *groupsnapshots.VolumeGroupSnapshotClass {
	return &groupsnapshots.VolumeGroupSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class"}, Driver: driver, DeletionPolicy: snapshots.VolumeSnapshotContentDelete,
	}
}

func aGroup(name string) *groupsnapshots.VolumeGroupSnapshot {
	class := "class"
	return &groupsnapshots.VolumeGroupSnapshot{ObjectMeta: meta(name), Spec: groupsnapshots.VolumeGroupSnapshotSpec{
		Source:                       groupsnapshots.VolumeGroupSnapshotSource{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		VolumeGroupSnapshotClassName: &class,
	}}
}

var labels = map[string]string{"app": "store"}

func noContent(s *verify.State) error {
	var contents snapshots.VolumeSnapshotContentList
	if err := s.List(&contents); err != nil || len(contents.Items) == 0 {
		return err
	}
	return fmt.Errorf("%d contents", len(contents.Items))
}

func TestSnapshotController(t *testing.T) {
	w := snapshotWorld(t)
	explore(t, w, []scene{{"takes", takes}, {"replaces", replaces}, {"groups", groups}})
	w.Others = append(w.Others, runAdministrator)
	explore(t, w, []scene{{"binds", binds}})
}

func snapshotWorld(t *testing.T) verify.World {
	must(snapshotscheme.AddToScheme(scheme.Scheme)) // as the main function does
	return verify.World{
		Start: startSnapshotController, Scheme: snapshotScheme(),
		Others:            []func(context.Context, *rest.Config) error{runDriver},
		CRDDirectoryPaths: []string{directory(t, "github.com/kubernetes-csi/external-snapshotter/client/v8", "config/crd")},
		Ignore:            []string{"VolumeSnapshot.status.error"},
	}
}
