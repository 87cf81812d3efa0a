package kubernetesservice

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/servicecidr"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

func in(t *testing.T, s Server, test func(w *controllertest.World)) {
	synctest.Test(t, func(t *testing.T) {
		s.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
		w := controllertest.New(t, []controller.Descriptor{{Name: servicecidr.Name, New: servicecidr.New(s.CIDRs)}, {Name: Name, New: New(s)}})
		w.Create("namespace default")
		w.Store("servicecidr kubernetes", `{spec: {cidrs: [10.0.0.0/24]}}`)
		w.Start()
		w.Wait()
		test(w)
	})
}

// shown formats the addresses in the Endpoints and the EndpointSlice.
func shown(w *controllertest.World) string {
	w.Wait()
	endpoints, slice := w.Get("endpoints default/kubernetes"), w.Get("endpointslice default/kubernetes")
	out := ""
	for _, s := range kind.List(endpoints, "subsets") {
		for _, a := range kind.List(s.(object.Tree), "addresses") {
			out += kind.Text(a.(object.Tree), "ip") + " "
		}
		for _, p := range kind.List(s.(object.Tree), "ports") {
			out += fmt.Sprint(p.(object.Tree)["port"], " ")
		}
	}
	out += "| " + kind.Text(slice, "addressType")
	for _, e := range kind.List(slice, "endpoints") {
		out += fmt.Sprint(" ", kind.Texts(e.(object.Tree), "addresses"))
	}
	for _, p := range kind.List(slice, "ports") {
		out += fmt.Sprint(" ", p.(object.Tree)["port"])
	}
	return out
}

func check(t *testing.T, w *controllertest.World, want string) {
	t.Helper()
	if got := shown(w); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// The Service and its endpoints have the address of the server, and are repaired.
func TestOneServer(t *testing.T) {
	in(t, Server{Address: netip.MustParseAddrPort("192.0.2.1:6443"), Reconcile: true}, func(w *controllertest.World) {
		const want = "192.0.2.1 6443 | IPv4 [192.0.2.1] 6443"
		check(t, w, want)
		service := func() object.Tree { return w.Get("service default/kubernetes") }
		if s := service(); kind.Text(s, "spec", "clusterIP") != "10.0.0.1" || kind.Text(s, "spec", "internalTrafficPolicy") != "Cluster" {
			t.Errorf("service %v", s)
		}
		if kind.Text(w.Get("ipaddress 10.0.0.1"), "spec", "parentRef", "name") != "kubernetes" {
			t.Error("its address is not its own")
		}
		for _, what := range []string{"service", "endpoints", "endpointslice"} {
			w.Delete(what+" default/kubernetes", "")
			check(t, w, want)
			if service() == nil {
				t.Fatal("the service is gone")
			}
		}
		w.Edit("endpoints default/kubernetes", func(t object.Tree) { delete(t, "subsets") })
		check(t, w, want)
		w.Edit("endpointslice default/kubernetes", func(t object.Tree) { delete(object.Metadata(t), "labels") })
		check(t, w, want)
		labels := object.Metadata(w.Get("endpointslice default/kubernetes"))["labels"]
		if fmt.Sprint(labels) != "map[kubernetes.io/service-name:kubernetes]" {
			t.Errorf("labels %v", labels)
		}
	})
}

// An EndpointSlice has one address family, which is immutable.
func TestAnotherFamily(t *testing.T) {
	in(t, Server{Address: netip.MustParseAddrPort("[2001:db8::1]:6443"), Reconcile: true}, func(w *controllertest.World) {
		const want = "2001:db8::1 6443 | IPv6 [2001:db8::1] 6443"
		check(t, w, want)
		w.Store("endpointslice default/kubernetes", `{addressType: IPv4, endpoints: []}`)
		check(t, w, want)
	})
}

// With leases the endpoints have the addresses of the leases.
func TestLeases(t *testing.T) {
	in(t, Server{Address: netip.MustParseAddrPort("192.0.2.1:6443"), Reconcile: true, Leases: true}, func(w *controllertest.World) {
		lease := func(ip string) string { return "/registry/masterleases/" + ip }
		at := map[string]int64{}
		hold := func(ip string) {
			revision, err := w.Backend.Commit(w.Ctx, kv.Write{Key: lease(ip), Value: []byte(`{"subsets":[{"addresses":[{"ip":"` + ip + `"}]}]}`), Expect: at[ip]})
			if err != nil {
				t.Fatal(err)
			}
			at[ip] = revision
		}
		check(t, w, "| ") // no leases yet
		hold("192.0.2.1")
		check(t, w, "192.0.2.1 6443 | IPv4 [192.0.2.1] 6443")
		hold("192.0.2.3")
		hold("192.0.2.2")
		const all = "192.0.2.1 192.0.2.2 192.0.2.3 6443 | IPv4 [192.0.2.1] [192.0.2.2] [192.0.2.3] 6443"
		check(t, w, all)
		before := w.Get("endpoints default/kubernetes")
		hold("192.0.2.2")
		check(t, w, all)
		if !object.Equal(before, w.Get("endpoints default/kubernetes")) {
			t.Error("a renewed lease is no news")
		}
		if _, err := w.Backend.Commit(w.Ctx, kv.Write{Key: lease("192.0.2.2"), Expect: at["192.0.2.2"]}); err != nil {
			t.Fatal(err)
		}
		check(t, w, "192.0.2.1 192.0.2.3 6443 | IPv4 [192.0.2.1] [192.0.2.3] 6443")
		// The port stays that of the earlier servers.
		w.Store("endpoints default/kubernetes", `{metadata: {labels: {endpointslice.kubernetes.io/skip-mirror: "true"}}, subsets: [{addresses: [{ip: 192.0.2.9}], ports: [{name: https, port: 7, protocol: TCP}]}]}`)
		check(t, w, "192.0.2.1 192.0.2.3 7 | IPv4 [192.0.2.1] [192.0.2.3] 7")
	})
}

// With --endpoint-reconciler-type=none, the controller does not write endpoints.
func TestNoEndpointReconciler(t *testing.T) {
	in(t, Server{Address: netip.MustParseAddrPort("192.0.2.1:6443")}, func(w *controllertest.World) {
		check(t, w, "| ")
		if w.Get("service default/kubernetes") == nil {
			t.Error("there is no service")
		}
	})
}
