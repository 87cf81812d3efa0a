package flags

import (
	"reflect"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
)

// Certificates for names have the syntax of kube-apiserver.
func TestNamedCertificates(t *testing.T) {
	var c namedCertificates
	for _, value := range []string{"crt,key", " crt , key : a.example.com, *.example.com"} {
		if err := c.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	want := namedCertificates{{CertFile: "crt", KeyFile: "key"}, {CertFile: "crt", KeyFile: "key", Names: []string{"a.example.com", "*.example.com"}}}
	if !reflect.DeepEqual(c, want) || c.String() != "[crt,key;crt,key:a.example.com,*.example.com]" {
		t.Errorf("%v", []pki.Named(c))
	}
	for value, want := range map[string]string{
		"crt,key:": "empty names list is not allowed",
		"crt":      "expected comma separated certificate and key file paths",
		"a,b,c":    "expected comma separated certificate and key file paths",
	} {
		if err := c.Set(value); err == nil || err.Error() != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}
