package codec

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecodeOptions(t *testing.T) {
	want := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	for _, tt := range []struct{ body, want string }{
		{`{}`, ""},
		{`null`, ""},
		{`{"kind":"DeleteOptions","apiVersion":"v1"}`, ""},
		{`{"kind":"DeleteOptions","apiVersion":"apps/v1"}`, ""},
		{`{"Kind":"DeleteOptions"}`, ""},
		{`{"kind":"Secret","apiVersion":"v1"}`, `no kind "Secret" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{`{"kind":"Secret"}`, `no kind "Secret" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		{`{"Kind":"Event"}`, `no kind "Event" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		{`{"kind":"DeleteOptions","KIND":"Event"}`, `no kind "Event" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		{`{"kind":1}`, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string"},
	} {
		got := ""
		if err := DecodeOptions(JSON, []byte(tt.body), want, &metav1.DeleteOptions{}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, got, tt.want)
		}
	}
}
