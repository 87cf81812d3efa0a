package app

import "testing"

// An object in the other form is outdated: an update that changes nothing stores it again. So a migration completes.
func TestStoredForm(t *testing.T) {
	const key, doc = "/registry/configmaps/default/a", `{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default","uid":"u"}}`
	asJSON, asProtobuf := newStoredForm(Options{Etcd: Etcd{MediaType: StorageJSON}}), newStoredForm(Options{Etcd: Etcd{MediaType: StorageProtobuf}})
	message, err := asProtobuf.Encode(t.Context(), key, []byte(doc))
	if err != nil || string(message[:4]) != "k8s\x00" {
		t.Fatalf("%q, %v", message, err)
	}
	for _, form := range []storedForm{asJSON, asProtobuf} {
		if got := form.Decode(t.Context(), key, message); string(got) != doc {
			t.Errorf("decoded %s", got)
		}
	}
	for _, tt := range []struct {
		form   storedForm
		key    string
		stored string
		want   bool
	}{
		{asProtobuf, key, string(message), false},
		{asProtobuf, key, doc, true},
		{asJSON, key, doc, false},
		{asJSON, key, string(message), true},
		{asProtobuf, key, "damaged", false},
		{asProtobuf, "/registry/example.com/things/default/a", doc, false},
		{asProtobuf, "/registry/podtemplates/default/a", `{"kind":"PodTemplate","apiVersion":"v1","metadata":{"name":"a","namespace":"default"},"template":{"metadata":{},"spec":{"containers":null}}}`, true},
	} {
		if got, err := tt.form.Outdated(t.Context(), tt.key, []byte(tt.stored)); err != nil || got != tt.want {
			t.Errorf("%.60q: %v, %v, want %v", tt.stored, got, err, tt.want)
		}
	}
}
