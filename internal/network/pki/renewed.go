package pki

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"time"
)

// A Renewed is a client certificate that an authority signs, and signs again when it gets old. It
// is in memory only.
type Renewed struct {
	authority *Pair
	want      leaf

	mu   sync.Mutex
	pair *Pair
	made *tls.Certificate // of pair
}

// RenewedClient returns a client certificate for a name.
func (p *Pair) RenewedClient(name string) *Renewed {
	return &Renewed{authority: p, want: leaf{name: name, usage: x509.ExtKeyUsageClientAuth, life: servingLife}}
}

// Get returns the certificate of now, or nil if none can be made.
func (r *Renewed) Get() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.pair == nil || !r.want.fresh(r.pair.Cert, now) {
		if pair, err := r.authority.sign(r.want, now); err == nil {
			r.pair, r.made = pair, pair.TLS()
		}
	}
	return r.made
}
