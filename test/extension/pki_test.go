package extension

import (
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
)

// A pair is a certificate with its key, and files of both.
type pair struct {
	*pki.Pair
	certFile, keyFile string
}

// certify issues a certificate and writes it with its key to a folder. Without an issuer it is a CA.
func certify(t *testing.T, dir string, by *pair, name string, groups ...string) *pair {
	t.Helper()
	p := &pair{}
	if by == nil {
		p.Pair = pkitest.Authority(t, name)
	} else {
		p.Pair = pkitest.Client(t, by.Pair, name, groups...)
	}
	p.certFile, p.keyFile = pkitest.Write(t, dir, name, p.Pair)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
