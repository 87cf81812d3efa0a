package storage_test

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/storage"
	"github.com/anykind/anykind/internal/store/stored"
)

const classes = `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: b, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: p}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: p, allowVolumeExpansion: true}`

func world(t *testing.T) *admissiontest.World {
	return admissiontest.New(t, func(w *admissiontest.World) []any {
		classes := stored.List[storagev1.StorageClass](w.Cache, w.Kinds, storagev1.Resource("storageclasses"))
		return []any{&storage.DefaultStorageClass{Classes: classes}, storage.InUseProtection{}, &storage.ClaimResize{Classes: classes}}
	})
}

func claim(metadata, spec string) string {
	return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c" + metadata + "}, spec: {" + spec + " accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
}

// A new claim gets a class and a finalizer.
func TestNewClaims(t *testing.T) {
	tests := []struct{ name, have, metadata, spec, class, finalizers string }{
		{"the default class", classes, ``, ``, `"b"`, `["kubernetes.io/pvc-protection"]`},
		{"there is none", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: p}`, ``, ``, ``, `["kubernetes.io/pvc-protection"]`},
		{"another class", classes, ``, `storageClassName: a,`, `"a"`, `["kubernetes.io/pvc-protection"]`},
		{"no class, as it says", classes, ``, `storageClassName: "",`, `""`, `["kubernetes.io/pvc-protection"]`},
		{"a class, as in former times", classes, `, annotations: {volume.beta.kubernetes.io/storage-class: x}`, ``, ``, `["kubernetes.io/pvc-protection"]`},
		{"other finalizers", classes, `, finalizers: [example.com/a]`, ``, `"b"`, `["example.com/a","kubernetes.io/pvc-protection"]`},
		{"the finalizer", classes, `, finalizers: [kubernetes.io/pvc-protection]`, ``, `"b"`, `["kubernetes.io/pvc-protection"]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := world(t)
			w.Have(test.have)
			made, err := w.Create(claim(test.metadata, test.spec))
			if err != nil {
				t.Fatal(err)
			}
			if class, finalizers := admissiontest.Field(made, "spec.storageClassName"), admissiontest.Field(made, "metadata.finalizers"); class != test.class || finalizers != test.finalizers {
				t.Errorf("%s %s, want %s %s", class, finalizers, test.class, test.finalizers)
			}
		})
	}
}

// Volumes and VolumeAttributesClasses get a finalizer.
func TestFinalizers(t *testing.T) {
	w := world(t)
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /a}}}`: `["kubernetes.io/pv-protection"]`,
		`{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: c}, driverName: d, parameters: {a: b}}`:                                `["kubernetes.io/vac-protection"]`,
		`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}, provisioner: p}`:                                                            ``,
	} {
		made, err := w.Create(text)
		if got := admissiontest.Field(made, "metadata.finalizers"); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
}

// Bound claims of an expandable class can grow.
func TestResize(t *testing.T) {
	const (
		fixed = `persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`
	)
	tests := []struct{ name, class, phase, size, want string }{
		{"bound, of a class that allows it", `a`, "Bound", "2Gi", ""},
		{"of a class that does not allow it", `b`, "Bound", "2Gi", fixed},
		{"of a class that is gone", `x`, "Bound", "2Gi", fixed},
		{"of no class", `""`, "Bound", "2Gi", fixed},
		{"the same size in other words", `b`, "Bound", "1024Mi", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := world(t)
			w.Have(classes + "\n---\n" + claim("", "volumeName: v, storageClassName: "+test.class+","))
			if _, err := w.Update("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, status: {phase: "+test.phase+", capacity: {storage: 1Gi}}}", "status"); err != nil {
				t.Fatal(err)
			}
			_, err := w.Update("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: "+test.size+"}}}}", "")
			if got := said(err); got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
