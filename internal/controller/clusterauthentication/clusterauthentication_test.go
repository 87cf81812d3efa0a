package clusterauthentication

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/internal/object"
)

func open(t *testing.T) *pki.PKI {
	t.Helper()
	p, err := pki.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func of(p ...*pki.PKI) func() *pki.Authorities {
	a := &pki.Authorities{}
	for _, each := range p {
		a.Certificates = append(a.Certificates, each.Authority())
	}
	return func() *pki.Authorities { return a }
}

func joined(p ...*pki.PKI) string {
	var out bytes.Buffer
	for _, each := range p {
		out.Write(each.CA())
	}
	return out.String()
}

const what = "configmap kube-system/extension-apiserver-authentication"

// in runs a test in a world with the namespace kube-system.
func in(t *testing.T, trust Trust, test func(w *controllertest.World)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New(trust)}}, func(w *controllertest.World) {
		w.Wait()
		if w.Get(what) != nil {
			t.Error("the ConfigMap is there before its namespace")
		}
		w.Create("namespace kube-system")
		w.Wait()
		test(w)
	})
}

func check(t *testing.T, w *controllertest.World, want object.Tree) {
	t.Helper()
	w.Wait()
	if got := w.Get(what); !object.Equal(got["data"], want) {
		t.Errorf("data %v, want %v", got["data"], want)
	}
}

// Without front proxies the ConfigMap has the client CAs only, and is repaired. Entries of others
// stay.
func TestClients(t *testing.T) {
	own, other := open(t), open(t)
	in(t, Trust{Clients: of(own)}, func(w *controllertest.World) {
		alone := object.Tree{"client-ca-file": joined(own)}
		check(t, w, alone)
		w.Delete(what, "")
		check(t, w, alone)
		w.Edit(what, func(t object.Tree) { delete(t, "data") })
		check(t, w, alone)
		w.Edit(what, func(t object.Tree) { t["data"] = object.Tree{"client-ca-file": joined(other, own, other), "x": "y"} })
		check(t, w, object.Tree{"client-ca-file": joined(other, own)})
		w.Edit(what, func(t object.Tree) { t["data"] = object.Tree{"client-ca-file": "nonsense"} })
		check(t, w, object.Tree{"client-ca-file": "nonsense"})
	})
}

// The ConfigMap has the front proxies of all servers.
func TestFrontProxies(t *testing.T) {
	own, proxies, others := open(t), open(t), open(t)
	trust := Trust{
		Clients: of(own), Proxies: of(proxies), AllowedNames: []string{"front"},
		Headers: authn.ProxyHeaders{Username: []string{"X-Remote-User"}, Group: []string{"X-Remote-Group"}, ExtraPrefix: []string{"X-Remote-Extra-"}},
	}
	in(t, trust, func(w *controllertest.World) {
		want := object.Tree{
			"client-ca-file": joined(own), "requestheader-client-ca-file": joined(proxies), "requestheader-allowed-names": `["front"]`,
			"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		}
		check(t, w, want)
		w.Edit(what, func(t object.Tree) {
			data := t["data"].(object.Tree)
			data["requestheader-client-ca-file"] = joined(others)
			data["requestheader-allowed-names"] = `["aggregator"]`
			data["requestheader-uid-headers"] = `["X-Remote-Uid"]`
			delete(data, "requestheader-group-headers")
		})
		want["requestheader-client-ca-file"] = joined(others, proxies)
		want["requestheader-allowed-names"] = `["aggregator","front"]`
		want["requestheader-uid-headers"] = `["X-Remote-Uid"]`
		check(t, w, want)
	})
}

// A changed CA file is detected within a minute, and an expired CA is removed.
func TestAuthoritiesChange(t *testing.T) {
	old, next := open(t), open(t)
	var now atomic.Pointer[pki.Authorities]
	now.Store(of(old)())
	in(t, Trust{Clients: now.Load, Reloaded: true}, func(w *controllertest.World) {
		check(t, w, object.Tree{"client-ca-file": joined(old)})
		now.Store(of(next)())
		w.Sleep(time.Minute)
		check(t, w, object.Tree{"client-ca-file": joined(old, next)})
	})
	brief := shortLived(t)
	both := &pki.Authorities{Certificates: []*x509.Certificate{brief, next.Authority()}}
	in(t, Trust{Clients: func() *pki.Authorities { return both }, Reloaded: true}, func(w *controllertest.World) {
		check(t, w, object.Tree{"client-ca-file": string(pki.Trust(&tls.Certificate{Certificate: [][]byte{brief.Raw, next.Authority().Raw}}))})
		w.Sleep(time.Hour)
		check(t, w, object.Tree{"client-ca-file": joined(next)})
	})
}

// shortLived returns a CA that expires half an hour after the start of a synctest bubble.
func shortLived(t *testing.T) *x509.Certificate {
	t.Helper()
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every synctest bubble
	return pkitest.Sign(t, nil, x509.Certificate{NotBefore: begin, NotAfter: begin.Add(30 * time.Minute), IsCA: true, BasicConstraintsValid: true}).Cert
}
