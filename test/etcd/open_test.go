package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/store/etcdsnapshot"
	"github.com/anykind/anykind/test/process"
)

// A snapshot of etcd, opened without etcd, has the objects of the server that wrote them, and stays as
// it is.
func TestOpenedSnapshot(t *testing.T) {
	m := StartMember(t)
	_, writer := run(t, "--etcd-servers", m.Client, "--etcd-prefix", "/some/where")
	write(t, writer, writer, "before")
	opened := sameOpened(t, writer, m, "--etcd-prefix", "/some/where")
	for _, path := range []string{"/api/v1/namespaces/before/configmaps/c", "/apis/before.example.com/v1/hubs/h"} {
		if err := opened.Do(t.Context(), http.MethodDelete, path, nil, nil); code(err) != http.StatusForbidden || !strings.Contains(err.Error(), "the server is read-only") {
			t.Errorf("the deletion of %s: %v", path, err)
		}
		if err := opened.Do(t.Context(), http.MethodDelete, path+"?dryRun=All", nil, nil); err != nil {
			t.Errorf("the dry run of it: %v", err)
		}
		same(t, writer, opened, path)
	}
	// A store that is restored from the snapshot has them, too, and can be written.
	_, restored := run(t, "--etcd-prefix", "/some/where", "--restore", m.snapshot(t))
	for _, path := range []string{"/api/v1/namespaces/before/configmaps/c", "/apis/before.example.com/v1/hubs/h"} {
		same(t, writer, restored, path)
		if err := restored.Do(t.Context(), http.MethodDelete, path, nil, nil); err != nil {
			t.Errorf("the deletion of %s: %v", path, err)
		}
	}
}

// sameOpened takes a snapshot of etcd, opens it with anykind, and compares all objects of all resources with
// those that a server over that etcd had then.
func sameOpened(t *testing.T, server process.API, m *Member, flags ...string) (opened process.API) {
	t.Helper()
	file := m.snapshot(t)
	prefix := "/registry/"
	if i := slices.Index(flags, "--etcd-prefix"); i >= 0 {
		prefix = flags[i+1]
	}
	content, err := etcdsnapshot.Mapped(file, prefix)
	if err != nil {
		t.Fatal(err)
	}
	_, opened = run(t, append(slices.Clone(flags), "--open", file)...)
	lists, objects := 0, 0
	for _, path := range listed(t, server) {
		exact := fmt.Sprintf("%s?resourceVersion=%d&resourceVersionMatch=Exact", path, content.Revision)
		want, got := items(t, server, exact), items(t, opened, path)
		for name, o := range got {
			if revision, err := strconv.ParseInt(revisionOf(o), 10, 64); err != nil || revision > content.Revision {
				delete(got, name) // made by the opening server, as by every server that starts
			}
		}
		for name, o := range want {
			if !reflect.DeepEqual(o, got[name]) {
				a, _ := json.Marshal(o)
				b, _ := json.Marshal(got[name])
				t.Errorf("%s %s\nserved: %s\nopened: %s", path, name, a, b)
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("%s %s is in the opened file only", path, name)
		}
		lists, objects = lists+1, objects+len(want)
	}
	t.Logf("%d lists with %d objects are equal", lists, objects)
	if lists < 60 || objects < 100 {
		t.Errorf("there are only %d lists and %d objects", lists, objects)
	}
	return opened
}

// snapshot saves a snapshot, as etcdctl does.
func (m *Member) snapshot(t *testing.T) string {
	t.Helper()
	client := m.client()
	defer client.Close()
	from, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	name := filepath.Join(t.TempDir(), "snapshot.db")
	to, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	return name
}

// listed returns the paths of all stored resources that can be listed.
func listed(t *testing.T, api process.API) (paths []string) {
	t.Helper()
	for _, version := range servedVersions(t, api) {
		for _, r := range resources(t, api, version).APIResources {
			if slices.Contains(r.Verbs, "list") && r.Name != "componentstatuses" {
				paths = append(paths, version+"/"+r.Name)
			}
		}
	}
	return paths
}

// servedVersions returns the paths of all versions of all groups.
func servedVersions(t *testing.T, api process.API) []string {
	t.Helper()
	var groups metav1.APIGroupList
	if err := api.Do(t.Context(), http.MethodGet, "/apis", nil, &groups); err != nil {
		t.Fatal(err)
	}
	versions := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			versions = append(versions, "/apis/"+v.GroupVersion)
		}
	}
	return versions
}

// resources returns the resources of a version. A version of an aggregated server that does not run has none.
func resources(t *testing.T, api process.API, version string) (list metav1.APIResourceList) {
	t.Helper()
	if err := api.Do(t.Context(), http.MethodGet, version, nil, &list); err != nil && code(err) != http.StatusServiceUnavailable {
		t.Fatal(err)
	}
	return list
}

// items returns the objects of a list by namespace and name.
func items(t *testing.T, api process.API, path string) map[string]map[string]any {
	t.Helper()
	var list struct{ Items []map[string]any }
	eventually(t, func(ctx context.Context) error { return api.Do(ctx, http.MethodGet, path, nil, &list) })
	all := map[string]map[string]any{}
	for _, o := range list.Items {
		metadata, _ := o["metadata"].(map[string]any)
		all[fmt.Sprint(metadata["namespace"], "/", metadata["name"])] = o
	}
	return all
}
