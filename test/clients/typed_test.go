package clients

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// encodings are the configurations of the typed clients: the default, that of Kubernetes' own
// components, and protobuf only.
func encodings() map[string]func(*rest.Config) {
	return map[string]func(*rest.Config){
		"JSON": func(*rest.Config) {},
		"protobuf or JSON": func(c *rest.Config) {
			c.ContentType = runtime.ContentTypeProtobuf
			c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		},
		"protobuf": func(c *rest.Config) {
			c.ContentType = runtime.ContentTypeProtobuf
			c.AcceptContentTypes = runtime.ContentTypeProtobuf
		},
	}
}

// eachEncoding runs a test with a typed client in each encoding.
func eachEncoding(t *testing.T, test func(*testing.T, kubernetes.Interface)) {
	for name, configure := range encodings() {
		t.Run(name, func(t *testing.T) {
			_, config := start(t, "", "")
			configure(config)
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			test(t, client)
		})
	}
}

// The life of an object: each verb of a typed client works, and a watch reports it.
func TestTypedClient(t *testing.T) { eachEncoding(t, testTypedClient) }

func testTypedClient(t *testing.T, client kubernetes.Interface) {
	ctx := within(t)
	maps := client.CoreV1().ConfigMaps("default")
	w, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "app=x"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	made, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "m-", Labels: map[string]string{"app": "x"}},
		Data:       map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 255}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := maps.Get(ctx, made.Name, metav1.GetOptions{})
	if err != nil || text(got) != text(made) {
		t.Errorf("made %s\ngot  %s, %v", text(made), text(got), err)
	}
	got.Data["a"] = "2"
	updated, err := maps.Update(ctx, got, metav1.UpdateOptions{})
	if err != nil || updated.Data["a"] != "2" || updated.ResourceVersion == made.ResourceVersion {
		t.Errorf("updated %s, %v", text(updated), err)
	}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of what has changed: %v", err)
	}
	patched, err := maps.Patch(ctx, made.Name, types.StrategicMergePatchType, []byte(`{"data":{"c":"3"}}`), metav1.PatchOptions{})
	if err != nil || patched.Data["c"] != "3" || patched.Data["a"] != "2" {
		t.Errorf("patched %s, %v", text(patched), err)
	}
	applied, err := maps.Apply(ctx, applycorev1.ConfigMap(made.Name, "default").WithData(map[string]string{"d": "4"}),
		metav1.ApplyOptions{FieldManager: "test"})
	if err != nil || applied.Data["d"] != "4" || applied.Data["c"] != "3" {
		t.Errorf("applied %s, %v", text(applied), err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app=x"})
	if err != nil || len(list.Items) != 1 || text(list.Items[0]) != text(*applied) || list.ResourceVersion == "" {
		t.Errorf("listed %s, %v", text(list), err)
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=x"}); err != nil {
		t.Error(err)
	}
	if _, err := maps.Get(ctx, made.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
	for _, want := range []struct {
		event watch.EventType
		of    *corev1.ConfigMap
	}{{watch.Added, made}, {watch.Modified, updated}, {watch.Modified, patched}, {watch.Modified, applied}, {watch.Deleted, applied}} {
		e := receive(ctx, t, w.ResultChan(), "an event")
		m, ok := e.Object.(*corev1.ConfigMap)
		if e.Type != want.event || !ok || text(m.Data) != text(want.of.Data) ||
			(e.Type == watch.Deleted) == (m.ResourceVersion == want.of.ResourceVersion) {
			t.Errorf("event %s %s, want %s of %s", e.Type, text(e.Object), want.event, text(want.of))
		}
	}
}

// Every built-in kind round-trips.
func TestTypedKinds(t *testing.T) { eachEncoding(t, testTypedKinds) }

func testTypedKinds(t *testing.T, client kubernetes.Interface) {
	ctx := within(t)
	meta := metav1.ObjectMeta{Name: "x", Annotations: map[string]string{"k": `"é"` + "\n"}}
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	holder, seconds := "me", int32(15)

	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil || namespace.Status.Phase != corev1.NamespaceActive || namespace.Annotations["k"] != meta.Annotations["k"] {
		t.Fatalf("namespace %s, %v", text(namespace), err)
	}
	secret, err := client.CoreV1().Secrets("x").Create(ctx, &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"p": "w"}}, metav1.CreateOptions{})
	if err != nil || string(secret.Data["p"]) != "w" || secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("secret %s, %v", text(secret), err)
	}
	account, err := client.CoreV1().ServiceAccounts("x").Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: meta, Secrets: []corev1.ObjectReference{{Name: "x"}}}, metav1.CreateOptions{})
	if err != nil || len(account.Secrets) != 1 {
		t.Errorf("service account %s, %v", text(account), err)
	}
	lease, err := client.CoordinationV1().Leases("x").Create(ctx, &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now}}, metav1.CreateOptions{})
	if err != nil || *lease.Spec.HolderIdentity != holder || !lease.Spec.AcquireTime.Equal(&now) {
		t.Errorf("lease %s, %v", text(lease), err)
	}
	event, err := client.CoreV1().Events("x").Create(ctx, &corev1.Event{ObjectMeta: meta, Count: 3, Type: "Normal",
		InvolvedObject: corev1.ObjectReference{Kind: "Secret", Namespace: "x", Name: "x"}}, metav1.CreateOptions{})
	if err != nil || event.Count != 3 {
		t.Errorf("event %s, %v", text(event), err)
	}
	newer, err := client.EventsV1().Events("x").Get(ctx, "x", metav1.GetOptions{})
	if err != nil || newer.Regarding.Kind != "Secret" || newer.UID != event.UID {
		t.Errorf("the event in its newer group %s, %v", text(newer), err)
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil || len(namespaces.Items) != 2 || namespaces.Continue == "" || namespaces.RemainingItemCount == nil {
		t.Errorf("namespaces %s, %v", text(namespaces), err)
	}
	groups, err := client.Discovery().ServerPreferredResources()
	if err != nil || len(groups) < 4 {
		t.Errorf("discovered %s, %v", text(groups), err)
	}
}

// The version of the server exists only as JSON. As with Kubernetes, a client that accepts only
// protobuf gets an error.
func TestServerVersion(t *testing.T) {
	for name, configure := range encodings() {
		_, config := start(t, "", "")
		configure(config)
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		version, err := client.Discovery().ServerVersion()
		switch {
		case name == "protobuf" && !apierrors.IsNotAcceptable(err):
			t.Errorf("%s: version %s, %v", name, text(version), err)
		case name != "protobuf" && (err != nil || version.Minor != "37"):
			t.Errorf("%s: version %s, %v", name, text(version), err)
		}
	}
}
