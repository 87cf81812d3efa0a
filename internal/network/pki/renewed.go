package pki

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"time"
)

// A Renewed is a client certificate in memory that its CA renews before it expires.
type Renewed struct {
	authority *Pair
	want      leaf

	mu   sync.Mutex
	pair *Pair
	made *tls.Certificate // of pair
}

// RenewedClient returns a client certificate for a user.
func (p *Pair) RenewedClient(name string) *Renewed {
	return &Renewed{authority: p, want: leaf{name: name, usage: x509.ExtKeyUsageClientAuth, life: servingLife}}
}

// Get returns the current certificate, or nil if none can be created.
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
