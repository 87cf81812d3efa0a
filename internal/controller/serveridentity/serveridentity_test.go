package serveridentity

import (
	"net/netip"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

var server = Server{Host: "host.example.com", Instance: "1", Address: netip.MustParseAddrPort("192.0.2.7:6443")}

// own is the Lease of the server. Its name is that of a kube-apiserver on the same host.
const own = "lease kube-system/apiserver-uv34gb2cz3snqs6h47hhg4cei4"

func in(t *testing.T, test func(w *controllertest.World)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New(server)}}, func(w *controllertest.World) {
		w.Create("namespace kube-system")
		w.Wait()
		test(w)
	})
}

// A server creates its Lease, renews it, and creates it again after a deletion.
func TestOwnLease(t *testing.T) {
	in(t, func(w *controllertest.World) {
		check := func(when string) {
			t.Helper()
			w.Wait()
			lease := w.Get(own)
			if lease == nil {
				t.Fatalf("%s: there is no Lease of the server", when)
			}
			renewed, err := time.Parse(time.RFC3339, kind.Text(lease, "spec", "renewTime"))
			if age := time.Since(renewed); err != nil || age > renewal {
				t.Errorf("%s: the Lease was renewed %s ago: %v", when, age, err)
			}
			labels := kind.Pairs(lease, "metadata", "labels")
			if labels["apiserver.kubernetes.io/identity"] != "kube-apiserver" || labels["kubernetes.io/hostname"] != server.Host {
				t.Errorf("%s: labels %v", when, labels)
			}
			if holder := kind.Text(lease, "spec", "holderIdentity"); holder != "apiserver-uv34gb2cz3snqs6h47hhg4cei4_"+server.Instance {
				t.Errorf("%s: it is held by %s", when, holder)
			}
			if at := kind.Pairs(lease, "metadata", "annotations")["kubernetes.io/peer-advertise-address"]; at != "192.0.2.7:6443" {
				t.Errorf("%s: it is at %q", when, at)
			}
		}
		check("at the start")
		w.Sleep(3 * time.Hour)
		check("later")
		w.Delete(own, "")
		check("once it was deleted")
		w.Stop()
		w.Sleep(3 * time.Hour)
		w.Start()
		check("once the server was started again")
	})
}

// Leases of stopped servers are deleted when they expire, and no others.
func TestExpired(t *testing.T) {
	in(t, func(w *controllertest.World) {
		lease := func(renewed time.Duration, labels object.Tree) controllertest.Feature {
			return func(_ *controllertest.World, t object.Tree) {
				t["metadata"].(object.Tree)["labels"] = labels
				t["spec"] = object.Tree{"leaseDurationSeconds": int64(3600), "renewTime": time.Now().Add(-renewed).UTC().Format("2006-01-02T15:04:05.000000Z07:00")}
			}
		}
		of := object.Tree{Label: Component}
		w.Create("lease kube-system/gone", lease(2*time.Hour, of))
		w.Create("lease kube-system/going", lease(30*time.Minute, of))
		w.Create("lease kube-system/renewed", lease(30*time.Minute, of))
		w.Create("lease kube-system/never", func(_ *controllertest.World, t object.Tree) { t["metadata"].(object.Tree)["labels"] = of })
		w.Create("lease kube-system/election", lease(2*time.Hour, object.Tree{}))
		w.Create("lease kube-system/other", lease(2*time.Hour, object.Tree{Label: "other"}))
		w.Create("lease dev/elsewhere", lease(2*time.Hour, of))
		there := func(want ...string) {
			t.Helper()
			w.Wait()
			wanted := map[string]bool{}
			for _, name := range want {
				wanted[name] = true
			}
			for _, name := range []string{"gone", "going", "renewed", "never"} {
				if got := w.Get("lease kube-system/"+name) != nil; got != wanted[name] {
					t.Errorf("the Lease %s is there: %v", name, got)
				}
			}
			for _, what := range []string{"lease kube-system/election", "lease kube-system/other", "lease dev/elsewhere"} {
				if w.Get(what) == nil {
					t.Errorf("%s is gone", what)
				}
			}
		}
		there("going", "renewed")
		w.Sleep(20 * time.Minute)
		w.Edit("lease kube-system/renewed", func(t object.Tree) { lease(0, of)(w, t) })
		w.Sleep(20 * time.Minute)
		there("renewed")
		w.Sleep(time.Hour)
		there()
	})
}

// The Lease of a server without an address for others has no annotation.
func TestNoAddress(t *testing.T) {
	local := server
	local.Address = netip.AddrPort{}
	lease := object.Tree{}
	(&Controller{objects: &controller.Objects{Now: time.Now}, server: local}).fill(lease)
	if at := kind.Pairs(lease, "metadata", "annotations"); len(at) > 0 {
		t.Errorf("annotations %v", at)
	}
}

// A stopping server deletes its own Lease, not that of another server of its host.
func TestRetire(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Stop()
		objects := w.Objects()
		for _, tt := range []struct {
			holder string
			left   bool
		}{{"another", true}, {server.Instance, false}, {server.Instance, false}} {
			if err := Retire(w.Ctx, &objects, Server{Host: server.Host, Instance: tt.holder}); err != nil {
				t.Fatal(err)
			}
			if left := w.Get(own) != nil; left != tt.left {
				t.Errorf("once %s stopped the Lease is there: %v", tt.holder, left)
			}
		}
	})
}
