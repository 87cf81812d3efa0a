package flags

import (
	"strings"
	"testing"
)

// Flags that have no meaning for an opened file are refused with it.
func TestOpenExcludes(t *testing.T) {
	for _, other := range []string{"--etcd-servers=http://127.0.0.1:2379", "--in-memory", "--controllers=*", "--cluster-kubeconfig=a"} {
		name, _, _ := strings.Cut(other, "=")
		if _, err := parseServe(t, "--open=a.db "+other); err == nil || err.Error() != "--open and "+name+" are mutually exclusive" {
			t.Errorf("%s: %v", other, err)
		}
	}
	if o, err := parseServe(t, "--open=a.db --etcd-prefix=/x"); err != nil || o.Open != "a.db" || o.Etcd.Prefix != "/x" {
		t.Errorf("%+v, %v", o.Open, err)
	}
}
