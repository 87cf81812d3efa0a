package codec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
)

// wrapped is what a typed client sends.
func wrapped(t *testing.T, apiVersion, kind string, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	data, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func TestDecodeProtobuf(t *testing.T) {
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Data: map[string]string{"a": "b"}}
	tree, _, err := DecodeObject(Protobuf, wrapped(t, "v1", "ConfigMap", sent), configMap)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(object.AppendJSON(nil, tree)); got != `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"n"}}` {
		t.Error(got)
	}
	for _, tt := range []struct {
		data []byte
		x    Expect
		want string
	}{
		{[]byte("{}"), configMap, "expected prefix"},
		{[]byte("k8s\x00\xff"), configMap, "unexpected EOF"},
		{wrapped(t, "v1", "Secret", &corev1.Secret{}), configMap, `Secret in version "v1" cannot be handled as a ConfigMap`},
		{wrapped(t, "codec.test/v1", "Probe", sent), probe, "has no protobuf form"},
	} {
		if _, _, err := DecodeObject(Protobuf, tt.data, tt.x); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.data, err, tt.want)
		}
	}
	var o metav1.DeleteOptions
	seconds := int64(7)
	err = DecodeInto(Protobuf, wrapped(t, "v1", "DeleteOptions", &metav1.DeleteOptions{GracePeriodSeconds: &seconds}), &o)
	if err != nil || o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 7 {
		t.Errorf("%v %v", o, err)
	}
}
