// Package migrate changes the storage version of a kind under load, kills the server during the
// migration, and checks that every object was migrated.
package migrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var count = flag.Int("objects", 2000, "number of objects to migrate")

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definition  = definitions + "/things.migrate.example.com"
	migrations  = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	clients     = 8
)

func things(version string) string { return "/apis/migrate.example.com/" + version + "/things" }

type object = map[string]any

func versions(storage string) []object {
	var out []object
	for _, name := range []string{"v1", "v2"} {
		out = append(out, object{
			"name": name, "served": true, "storage": name == storage,
			"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return out
}

// A world is a server, across its restarts, and the acknowledged writes of its clients.
type world struct {
	*testing.T
	program, dir, address string
	server                *process.Server

	mu      sync.Mutex
	written map[string]int // newest acknowledged value of each object
}

func TestMigrateUnderLoad(t *testing.T) {
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, program: program, dir: t.TempDir(), written: map[string]int{}}
	w.start()
	api := w.api()
	w.do(api, http.MethodPost, definitions, object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "things.migrate.example.com"},
		"spec": object{
			"group": "migrate.example.com", "scope": "Cluster", "names": object{"plural": "things", "kind": "Thing"}, "versions": versions("v1"),
		},
	}, nil)
	began := time.Now()
	w.fill()
	t.Logf("%d objects created in %v", *count, time.Since(began))
	w.do(api, http.MethodPatch, definition, object{"spec": object{"versions": versions("v2")}}, nil)

	began = time.Now()
	w.do(api, http.MethodPost, migrations, object{
		"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": object{"name": "m"},
		"spec": object{"resource": object{"group": "migrate.example.com", "resource": "things"}},
	}, nil)
	w.writeAndKill()
	w.start()
	w.finish(w.api())
	t.Logf("migrated in %v, one restart included", time.Since(began))
	w.check(w.api())
	if err := w.server.Stop(); err != nil {
		t.Error(err)
	}
}

func (w *world) start() {
	w.Helper()
	server, err := process.Start(w.Context(), w.program, w.dir, w.address)
	if err != nil {
		w.Fatal(err)
	}
	w.server, w.address = server, server.Address()
}

func (w *world) api() process.API {
	w.Helper()
	client, err := process.Client(w.server.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(client.CloseIdleConnections)
	return process.API{Client: client, URL: w.server.URL}
}

func (w *world) do(api process.API, method, path string, in, out any) {
	w.Helper()
	if err := api.Do(w.Context(), method, path, in, out); err != nil {
		w.Fatal(err)
	}
}

// fill creates all objects, in the storage version.
func (w *world) fill() {
	w.Helper()
	var group sync.WaitGroup
	var next atomic.Int64
	for range clients * 4 {
		api := w.api()
		group.Go(func() {
			for i := int(next.Add(1)); i <= *count; i = int(next.Add(1)) {
				if err := w.write(w.Context(), api, http.MethodPost, "v1", fmt.Sprint("t", i), 0); err != nil {
					w.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// write creates or patches an object and records an acknowledged write.
func (w *world) write(ctx context.Context, api process.API, method, version, name string, value int) error {
	path, body := things(version), object{"spec": object{"value": value}}
	if method == http.MethodPost {
		body["apiVersion"], body["kind"], body["metadata"] = "migrate.example.com/"+version, "Thing", object{"name": name}
	} else {
		path += "/" + name
	}
	if err := api.Do(ctx, method, path, body, nil); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[name] = max(w.written[name], value)
	return nil
}

// writeAndKill has clients write to all versions, each to objects of its own, until the server is
// killed.
func (w *world) writeAndKill() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	var group sync.WaitGroup
	var acknowledged atomic.Int64
	kill := sync.OnceFunc(func() {
		w.server.Kill()
		cancel()
	})
	for c := range clients {
		api := w.api()
		group.Go(func() {
			for value := 1; ctx.Err() == nil; value++ {
				i := c + clients*(value*7919%max(1, *count/clients-1)) + 1
				err := w.write(ctx, api, http.MethodPatch, []string{"v1", "v2"}[value%2], fmt.Sprint("t", i), value)
				var refused *process.Refused
				if errors.As(err, &refused) {
					w.Error(err)
				}
				if acknowledged.Add(1) > int64(*count/100) {
					kill()
				}
			}
		})
	}
	group.Wait()
	kill()
}

// finish waits for the end of the migration, by watches.
func (w *world) finish(api process.API) {
	w.Helper()
	for {
		var m struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		w.do(api, http.MethodGet, migrations+"/m", nil, &m)
		for _, c := range m.Status.Conditions {
			if c.Type == "Succeeded" && c.Status == "True" {
				return
			}
			if c.Type == "Failed" {
				w.Fatal(c.Message)
			}
		}
		// This watch ends with the next event, or after a second.
		_, _ = api.Read(w.Context(), migrations+"?watch=1&timeoutSeconds=1")
	}
}

// check checks every object against its acknowledged write.
func (w *world) check(api process.API) {
	w.Helper()
	var crd struct {
		Status struct{ StoredVersions []string }
	}
	w.do(api, http.MethodGet, definition, nil, &crd)
	if got := strings.Join(crd.Status.StoredVersions, " "); got != "v2" {
		w.Errorf("stored versions are %s", got)
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ Value int }
		}
	}
	w.do(api, http.MethodGet, things("v2"), nil, &list)
	if len(list.Items) != *count {
		w.Errorf("there are %d objects of %d", len(list.Items), *count)
	}
	for _, o := range list.Items {
		if o.Spec.Value < w.written[o.Metadata.Name] {
			w.Errorf("%s has the value %d, but %d was acknowledged", o.Metadata.Name, o.Spec.Value, w.written[o.Metadata.Name])
		}
	}
	// A new migration has no object to write.
	var before, after struct {
		Metadata struct{ ResourceVersion string }
	}
	w.do(api, http.MethodGet, things("v2")+"/t1", nil, &before)
	w.do(api, http.MethodDelete, migrations+"/m", nil, nil)
	w.do(api, http.MethodPost, migrations, object{
		"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": object{"name": "m"},
		"spec": object{"resource": object{"group": "migrate.example.com", "resource": "things"}},
	}, nil)
	w.finish(api)
	w.do(api, http.MethodGet, things("v2")+"/t1", nil, &after)
	if before != after {
		w.Errorf("an object was written again: %v, %v", before, after)
	}
}
