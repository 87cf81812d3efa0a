package quota

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// uncharged is a quota as written by a controller, with placeholders for managed fields and usage.
const uncharged = `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"managedFields":[
{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:hard":{".":{},"f:configmaps":{},"f:pods":{}},"f:used":{".":{},"f:configmaps":{},"f:pods":{}}}},"manager":"kube-controller-manager","operation":"Update","subresource":"status","time":"2026-01-01T00:00:00Z"}],
"name":"q","namespace":"n","uid":"1"},"spec":{"hard":{"configmaps":"5","pods":"2"}},"status":{"hard":{"configmaps":"5","pods":"2"},"used":{"configmaps":"1","pods":"0"}}}`

func charged(t testing.TB, text string, used corev1.ResourceList) (charge, *resource.Definition) {
	t.Helper()
	e, err := object.Scan([]byte(text), 7)
	if err != nil {
		t.Fatal(err)
	}
	q := &corev1.ResourceQuota{}
	if err := json.Unmarshal(e.JSON, q); err != nil {
		t.Fatal(err)
	}
	kind := resource.NewSet(builtin.Definitions()).Lookup("", "resourcequotas")
	return charge{stored.Object[corev1.ResourceQuota]{Object: watchcache.Of("/registry/resourcequotas/n/q", e), Value: q}, used}, kind
}

var used = corev1.ResourceList{"configmaps": *quantity.NewQuantity(2, quantity.DecimalSI), "pods": *quantity.NewQuantity(0, quantity.DecimalSI)}

// A charge is written at the revision on which it was decided. It changes the usage and its field
// owner, and nothing else.
func TestMark(t *testing.T) {
	c, kind := charged(t, uncharged, used)
	m, err := c.mark(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	if m.Key != c.Key || m.Revision != 7 || !m.Moves {
		t.Errorf("%s at %d: %v", m.Key, m.Revision, m.Moves)
	}
	var now, was object.Tree
	if err := json.Unmarshal(m.Value, &now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(uncharged), &was); err != nil {
		t.Fatal(err)
	}
	managers := ""
	for _, entry := range object.Metadata(now)["managedFields"].([]any) {
		fields, err := json.Marshal(entry.(object.Tree)["fieldsV1"])
		if err != nil {
			t.Fatal(err)
		}
		managers += entry.(object.Tree)["manager"].(string) + " " + string(fields) + "\n"
	}
	if want := `kube-apiserver {"f:status":{"f:used":{"f:configmaps":{}}}}`; !strings.Contains(managers, want) {
		t.Errorf("the fields are managed by\n%swant\n%s", managers, want)
	}
	for _, tree := range []object.Tree{now, was} {
		delete(object.Metadata(tree), "managedFields")
	}
	was["status"].(object.Tree)["used"] = object.Tree{"configmaps": "2", "pods": "0"}
	if !object.Equal(now, was) {
		t.Errorf("it is %v, want %v", now, was)
	}
}

func BenchmarkMark(b *testing.B) {
	c, kind := charged(b, uncharged, used)
	b.ReportAllocs()
	for b.Loop() {
		m, err := c.mark(b.Context(), kind)
		if err != nil {
			b.Fatal(err)
		}
		c.Object = watchcache.NewObject(c.Key, m.Value, c.Revision)
	}
}
