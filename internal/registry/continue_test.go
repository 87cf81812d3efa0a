package registry

import (
	"encoding/base64"
	"testing"
)

// A token has the key as kube-apiserver writes it, so either server continues the lists of the other.
func TestContinueToken(t *testing.T) {
	token := encodeContinue(7, "/registry/pods/", "/registry/pods/n/p")
	const want = `{"v":"meta.k8s.io/v1","rv":7,"start":"/n/p\u0000"}`
	if got, err := base64.RawURLEncoding.DecodeString(token); err != nil || string(got) != want {
		t.Errorf("the token has %s, want %s (%v)", got, want, err)
	}
	for _, start := range []string{`/n/p\u0000`, `n/p\u0000`} {
		token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":7,"start":"` + start + `"}`))
		if revision, after, err := decodeContinue(token, "/registry/pods/"); revision != 7 || after != "/registry/pods/n/p" || err != nil {
			t.Errorf("%s: %d, %q, %v", start, revision, after, err)
		}
	}
	const padded = "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"
	if _, _, err := decodeContinue("=", "/registry/pods/"); err == nil || err.Error() != padded {
		t.Errorf("%v, want %s", err, padded)
	}
}
