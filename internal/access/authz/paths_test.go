package authz

import (
	"testing"

	"github.com/anykind/anykind/internal/object/request"
)

// Health checks need no credentials.
func TestPaths(t *testing.T) {
	p, err := NewPaths([]string{"/healthz", "readyz/*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		info request.Info
		want Decision
	}{
		{request.Info{Path: "/healthz"}, Allow},
		{request.Info{Path: "/healthz/etcd"}, NoOpinion},
		{request.Info{Path: "/readyz/etcd"}, Allow},
		{request.Info{Path: "/"}, NoOpinion},
		{request.Info{Path: "/healthz", IsResource: true}, NoOpinion},
	} {
		if got, _, _ := p.Authorize(t.Context(), &Attributes{Info: tt.info}); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.info, got, tt.want)
		}
	}
	if _, err := NewPaths([]string{"/a*b"}); err == nil || err.Error() != `only trailing * allowed in "a*b"` {
		t.Error(err)
	}
}
