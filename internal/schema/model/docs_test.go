package model

import (
	"bytes"
	"compress/gzip"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/anykind/anykind/internal/schema/gotype"
)

var write = flag.Bool("docs", false, "write the documentation of types into docs")

// documented returns the types of each package with documentation, by name.
func documented(t *testing.T) map[string]map[string]reflect.Type {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1alpha1.AddToScheme, admissionv1beta1.AddToScheme, internalv1alpha1.AddToScheme,
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, autoscalingv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme, certificatesv1beta1.AddToScheme,
		coordinationv1.AddToScheme, coordinationv1alpha2.AddToScheme, coordinationv1beta1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, policyv1beta1.AddToScheme, rbacv1.AddToScheme,
		resourcev1.AddToScheme, resourcev1alpha3.AddToScheme, resourcev1beta1.AddToScheme, resourcev1beta2.AddToScheme,
		schedulingv1.AddToScheme, schedulingv1alpha3.AddToScheme, schedulingv1beta1.AddToScheme, lifecyclev1alpha1.AddToScheme, storagev1.AddToScheme, migrationv1.AddToScheme,
		migrationv1beta1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]map[string]reflect.Type{}
	seen := map[reflect.Type]bool{}
	var add func(of reflect.Type)
	add = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if seen[of] {
			return
		}
		seen[of] = true
		if ownDocs(of) != nil {
			if out[of.PkgPath()] == nil {
				out[of.PkgPath()] = map[string]reflect.Type{}
			}
			out[of.PkgPath()][of.Name()] = of
		}
		for i := 0; of.Kind() == reflect.Struct && i < of.NumField(); i++ {
			add(of.Field(i).Type)
		}
	}
	for _, of := range scheme.AllKnownTypes() {
		add(of)
	}
	for _, more := range []any{
		metav1.Patch{}, metav1.ApplyOptions{}, metav1.List{}, metav1.RootPaths{},
		// Other types of these packages are not served.
		networkingv1beta1.IPAddressList{}, networkingv1beta1.ServiceCIDRList{},
		storagev1beta1.VolumeAttributesClassList{}, certificatesv1alpha1.ClusterTrustBundleList{},
	} {
		add(reflect.TypeOf(more))
	}
	return out
}

// ownDocs returns the result of SwaggerDoc, nil for a type whose method is that of an inlined struct.
func ownDocs(of reflect.Type) map[string]string {
	type swagger interface{ SwaggerDoc() map[string]string }
	d, ok := reflect.Zero(of).Interface().(swagger)
	if !ok {
		return nil
	}
	for i := 0; of.Kind() == reflect.Struct && i < of.NumField(); i++ {
		f := of.Field(i)
		if e, ok := reflect.Zero(f.Type).Interface().(swagger); ok && f.Anonymous && maps.Equal(e.SwaggerDoc(), d.SwaggerDoc()) {
			return nil
		}
	}
	return d.SwaggerDoc()
}

// The files in docs have the documentation of the types of Kubernetes; go test ./internal/schema/model -docs writes
// them.
func TestDocs(t *testing.T) {
	want, first, all := map[string]string{}, map[string]string{}, documented(t)
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(all[pkg])) {
			text.WriteString(name)
			lines := linesOf(ownDocs(all[pkg][name]))
			if like, ok := first[name+lines]; ok {
				lines = " like " + like + "\n"
			} else {
				first[name+lines] = pkg
			}
			text.WriteString(lines)
		}
		want[gotype.NameOf(pkg, "gz")] = text.String()
	}
	if *write {
		writeDocs(t, want)
		return
	}
	files, err := docsFiles.ReadDir("docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		packed, err := docsFiles.ReadFile("docs/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if unpack(packed) != want[f.Name()] {
			t.Errorf("%s is outdated: go test ./internal/schema/model -docs", f.Name())
		}
		delete(want, f.Name())
	}
	for name := range want {
		t.Errorf("%s is missing: go test ./internal/schema/model -docs", name)
	}
}

func linesOf(docs map[string]string) string {
	lines := "\n"
	for _, field := range slices.Sorted(maps.Keys(docs)) {
		lines += "\t" + field + " " + strconv.Quote(docs[field]) + "\n"
	}
	return lines
}

func writeDocs(t *testing.T, files map[string]string) {
	old, err := filepath.Glob("docs/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("docs", name), packed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A type has its own documentation and that of inlined structs.
func TestDocsOfTypes(t *testing.T) {
	for _, types := range documented(t) {
		for _, of := range types {
			docs := Docs(of)
			for field, doc := range ownDocs(of) {
				if docs[field] != doc {
					t.Errorf("%s.%s: got %q, want %q", of, field, docs[field], doc)
				}
			}
		}
	}
	if docs := Docs(reflect.TypeFor[metav1.Patch]()); docs[""] != (metav1.Patch{}).SwaggerDoc()[""] {
		t.Errorf("of Patch: %q", docs)
	}
	if docs := Docs(reflect.TypeFor[corev1.Pod]()); docs["kind"] == "" || docs["kind"] != (metav1.TypeMeta{}).SwaggerDoc()["kind"] {
		t.Error("a Pod has no documentation of its TypeMeta")
	}
}

func BenchmarkDocs(b *testing.B) {
	t := reflect.TypeFor[corev1.PodSpec]()
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			Docs(t)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		for b.Loop() {
			documentation.files.Clear()
			Docs(t)
		}
	})
}
