package app

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/serveridentity"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A disabled controller does nothing, and the others still run.
func TestControllersThatAreOff(t *testing.T) {
	a := start(t, Options{Controllers: []string{"*", "-serviceaccount-controller"}})
	defer stop(t, a)
	admin := client(t, a, admin(t, a))
	code, body := ask(t, admin, "POST", a.URL()+"/api/v1/namespaces", "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"dev"}}`)
	if code != http.StatusCreated {
		t.Fatalf("create: %d %s", code, body)
	}
	response, err := admin.Get(a.URL() + "/api/v1/namespaces/dev/configmaps?watch=1&fieldSelector=metadata.name%3Dkube-root-ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := response.Body.Read(make([]byte, 1)); err != nil {
		t.Errorf("waiting for the ConfigMap: %v", err)
	}
	response.Body.Close()
	// The namespace disappears after all its objects are deleted. A service account could exist by
	// then.
	if code, body := ask(t, admin, "DELETE", a.URL()+"/api/v1/namespaces/dev", "", ""); code != http.StatusOK {
		t.Fatalf("delete: %d %s", code, body)
	}
	for code != http.StatusNotFound {
		code, _ = ask(t, admin, "GET", a.URL()+"/api/v1/namespaces/dev", "", "")
	}
	code, body = ask(t, admin, "GET", a.URL()+"/api/v1/serviceaccounts", "", "")
	if code != http.StatusOK || !strings.Contains(body, `"items":[]`) {
		t.Errorf("ServiceAccounts: %d %s, want none", code, body)
	}
}

// Every server of a store publishes its authentication settings, whichever server leads.
func TestEachServerSaysHowItKnowsUsers(t *testing.T) {
	store := memkv.New(memkv.Options{})
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for count := 1; count <= 2; count++ {
		a := start(t, Options{Backend: nextDoor{store}})
		defer stop(t, a)
		admin := client(t, a, admin(t, a))
		for {
			_, body := ask(t, admin, "GET", a.URL()+"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "", "")
			if strings.Count(body, "BEGIN CERTIFICATE") == count {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("with %d servers: %s", count, body)
			}
		}
	}
}

// With the feature gate CoordinatedLeaderElection, a server elects the leaders of other components, in either version of
// their candidates. It holds a Lease for this, even as the only server of its store. Without the gate, it does nothing.
func TestLeadersOfComponents(t *testing.T) {
	for _, on := range []bool{true, false} {
		var config builtin.RuntimeConfig
		if err := config.Set("coordination.k8s.io/v1alpha2=true"); err != nil {
			t.Fatal(err)
		}
		a := start(t, Options{RuntimeConfig: config, Gates: gate.With(map[gate.Name]bool{gate.CoordinatedLeaderElection: on})})
		defer stop(t, a)
		admin := client(t, a, admin(t, a))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
		code, body := ask(t, admin, "POST", a.URL()+"/apis/coordination.k8s.io/v1alpha2/namespaces/kube-system/leasecandidates", "", fmt.Sprintf(
			`{"metadata":{"name":"a"},"spec":{"leaseName":"scheduler","binaryVersion":"1.37.1","emulationVersion":"1.37.0","strategy":"OldestEmulationVersion","renewTime":%q}}`,
			time.Now().UTC().Format(metav1.RFC3339Micro)))
		if code != http.StatusCreated {
			t.Fatalf("create: %d %s", code, body)
		}
		for on {
			if _, body = ask(t, admin, "GET", a.URL()+leases+"/scheduler", "", ""); strings.Contains(body, `"holderIdentity":"a"`) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("there is no leader: %s", body)
			}
		}
		if err := a.WaitIdle(ctx); err != nil {
			t.Fatal(err)
		}
		_, body = ask(t, admin, "GET", a.URL()+leases, "", "")
		_, checks := ask(t, admin, "GET", a.URL()+"/readyz?verbose", "", "")
		for name, there := range map[string]bool{
			"the Lease of the server":    strings.Contains(body, `"name":"leader-election-controller"`),
			"the Lease of the component": strings.Contains(body, `"name":"scheduler"`),
			"the health check":           strings.Contains(checks, "[+]poststarthook/start-kube-apiserver-coordinated-leader-election-controller ok"),
		} {
			if there != on {
				t.Errorf("gate %v: %s is there: %v", on, name, there)
			}
		}
	}
}

// With the feature gate StorageVersionAPI, a server rejects writes until it has published its storage versions, and is not
// ready before. A server that does not publish accepts them.
func TestStorageVersions(t *testing.T) {
	const writes, path = "/api/v1/namespaces/default/configmaps", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
	const check = "/readyz/poststarthook/built-in-resources-storage-version-updater"
	gates := gate.With(map[gate.Name]bool{gate.StorageVersionAPI: true})
	for _, tt := range []struct {
		name        string
		o           Options
		served      string
		code, ready int
	}{
		{"published", Options{Gates: gates}, "true", 201, 200},
		{"not served", Options{Gates: gates}, "false", 503, 500},
		{"no controllers", Options{Gates: gates, Controllers: []string{}}, "true", 201, 200},
		{"no Lease", Options{Gates: gates, Controllers: []string{"*", "-" + serveridentity.Name}}, "true", 201, 200},
		{"gate off", Options{}, "true", 201, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.o.RuntimeConfig.Set("internal.apiserver.k8s.io/v1alpha1=" + tt.served); err != nil {
				t.Fatal(err)
			}
			a := start(t, tt.o)
			defer stop(t, a)
			admin := client(t, a, admin(t, a))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for code, body := 0, ""; tt.name == "published" && code != 200; {
				if code, body = ask(t, admin, "GET", a.URL()+check, "", ""); code != 200 && ctx.Err() != nil {
					t.Fatal(body)
				}
			}
			code, body := ask(t, admin, "POST", a.URL()+writes, "", `{"metadata":{"name":"a"}}`)
			if code != tt.code || code == 503 && !strings.Contains(body, "wait for storage version registration to complete for resource: configmaps, last seen error: ") {
				t.Errorf("create: %d %s", code, body)
			}
			if code, body := ask(t, admin, "GET", a.URL()+check, "", ""); code != tt.ready {
				t.Errorf("check: %d %s", code, body)
			}
			_, body = ask(t, admin, "GET", a.URL()+path, "", "")
			if published := strings.Contains(body, `"name":"core.configmaps"`); published != (tt.name == "published") {
				t.Errorf("StorageVersions are published: %v", published)
			}
		})
	}
}

// Every controller has a unique name and alias.
func TestControllersHaveNames(t *testing.T) {
	seen := map[string]bool{"": true, "*": true}
	for _, d := range controllers(told{accounts: &serviceAccounts{}}) {
		if seen[d.Name] || strings.HasPrefix(d.Name, "-") || d.Alias != "" && seen[d.Alias] {
			t.Errorf("%q, or %q, is no name for one controller", d.Name, d.Alias)
		}
		seen[d.Name], seen[d.Alias] = true, true
	}
}

// BenchmarkEvent measures the cost of one write for all controllers, without owner references.
func BenchmarkEvent(b *testing.B) {
	catalog := &resource.Catalog{}
	kinds := builtin.Definitions()
	crd.New(crd.Options{Catalog: catalog, BuiltIn: kinds})
	value := []byte(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","namespace":"dev","uid":"0a1b"},"spec":{"a":"` + strings.Repeat("x", 1600) + `"}}`)
	batch := kv.Batch{Events: []kv.Event{{Key: "/registry/test.example.com/leads/dev/a", Revision: 5, Value: value, Prev: value, PrevRevision: 4}}}
	ctx, cancel := context.WithCancel(b.Context())
	follow := func(context.Context, string, int64) iter.Seq2[kv.Batch, error] {
		return func(yield func(kv.Batch, error) bool) {
			b.ReportAllocs()
			for b.Loop() {
				if !yield(batch, nil) {
					b.Error("the feed stopped")
				}
			}
			cancel()
			yield(kv.Batch{}, fmt.Errorf("the end: %w", ctx.Err()))
		}
	}
	store := memkv.New(memkv.Options{})
	defer store.Close()
	addresses := builtin.GiveAddresses(resource.NewSet(kinds), watchcache.New(store, watchcache.Options{}), nil, allocation.PortRange{}, nil)
	e := controller.New(controller.Options{
		Objects: controller.Objects{Backend: store, Catalog: catalog, Logger: slog.New(slog.DiscardHandler)},
		Follow:  follow, Controllers: controllers(told{ca: []byte("trust me"), accounts: &serviceAccounts{}, addresses: addresses}),
	})
	if err := e.Run(ctx); err != nil {
		b.Fatal(err)
	}
}
