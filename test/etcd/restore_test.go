package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// A configMap has the JSON fields of a ConfigMap that matter here.
type configMap struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
}

func named(name string) (c configMap) {
	c.APIVersion, c.Kind, c.Metadata.Name = "v1", "ConfigMap", name
	return c
}

const configMapsPath = "/api/v1/namespaces/default/configmaps"

// run starts the program on an etcd, and returns a client of it.
func run(t *testing.T, flags ...string) (*process.Server, process.API) {
	t.Helper()
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	server, err := process.Start(context.WithoutCancel(t.Context()), program, t.TempDir(), "", flags...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := process.Client(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server, process.API{Client: client, URL: server.URL}
}

func create(ctx context.Context, api process.API, name string) (revision string, err error) {
	var made configMap
	err = api.Do(ctx, http.MethodPost, configMapsPath, named(name), &made)
	return made.Metadata.ResourceVersion, err
}

// code returns the status code of an error: 0 without a response.
func code(err error) int {
	var refused *process.Refused
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &refused):
		return refused.Code
	}
	return 0
}

// A backup of etcd is restored under a running server. From then on no read is stale, and existing
// watches get 410. The process continues.
func TestABackupIsRestored(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := StartMember(t)
	_, api := run(t, "--etcd-servers", m.Client)
	if _, err := create(ctx, api, "kept"); err != nil {
		t.Fatal(err)
	}
	m.Kill()
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(m.Dir)); err != nil {
		t.Fatal(err)
	}
	m.Begin()
	m.Wait()
	t.Log("etcd is back")
	lost := ""
	for i := 0; i < 20; {
		revision, err := create(ctx, api, "lost-"+strconv.Itoa(i))
		switch {
		case err == nil:
			lost = revision
			fallthrough
		case code(err) == http.StatusConflict:
			i++
		case !process.Unanswered(err):
			t.Fatal(err)
		}
	}
	m.Kill()
	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(m.Dir, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	m.Begin()
	m.Wait()
	restored := time.Now()
	for {
		err := api.Do(ctx, http.MethodGet, configMapsPath+"/lost-0", nil, nil)
		if code(err) == http.StatusNotFound {
			break
		}
		if !process.Unanswered(err) || ctx.Err() != nil {
			t.Fatalf("what is not in the backup was read: %v", err)
		}
	}
	t.Logf("restored etcd was served after %v", time.Since(restored))
	if err := api.Do(ctx, http.MethodGet, configMapsPath+"/kept", nil, nil); err != nil {
		t.Errorf("what is in the backup: %v", err)
	}
	if _, err := create(ctx, api, "new"); err != nil {
		t.Error(err)
	}
	told, err := api.Read(ctx, configMapsPath+"?watch=1&timeoutSeconds=2&resourceVersion="+lost)
	if err == nil {
		err = fmt.Errorf("%s", told)
	}
	if !strings.Contains(err.Error(), "Expired") {
		t.Errorf("a watch went on from what was undone: %v", err)
	}
}

// A backup is restored as in etcd's documentation: with revisions above all earlier ones, and these
// compacted. To servers it looks like a long pause: old and new servers serve the contents of the
// backup and nothing else, and both send 410 to existing watches.
func TestABackupIsRestoredWithRevisionsRaised(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := StartMember(t)
	_, api := run(t, "--etcd-servers", m.Client)
	mustCreate(t, api, "kept")
	file := filepath.Join(t.TempDir(), "backup")
	m.in(t, func(ctx context.Context, c *clientv3.Client) error {
		from, err := c.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := os.Create(file)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from)
		return errors.Join(err, to.Close())
	})
	lost := mustCreate(t, api, "lost-0", "lost-1", "lost-2")
	m.Kill()
	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, Name: m.Name, OutputDataDir: m.Dir,
		PeerURLs: []string{m.Public}, InitialCluster: m.Cluster, InitialClusterToken: "etcd-cluster",
		RevisionBump: 1_000_000_000, MarkCompacted: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Begin()
	m.Wait()
	eventually(t, func(context.Context) error {
		err := api.Do(ctx, http.MethodGet, configMapsPath+"/lost-0", nil, nil)
		if err == nil {
			t.Fatal("what is not in the backup was read")
		}
		if code(err) == http.StatusNotFound {
			return nil
		}
		return err
	})
	_, later := run(t, "--etcd-servers", m.Client)
	for who, api := range map[string]process.API{"a server that ran": api, "a server that came later": later} {
		var list struct{ Items []configMap }
		if err := api.Do(ctx, http.MethodGet, configMapsPath, nil, &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range list.Items {
			names = append(names, c.Metadata.Name)
		}
		if !slices.Contains(names, "kept") || slices.Contains(names, "lost-1") {
			t.Errorf("%s lists %v", who, names)
		}
		told, err := api.Read(ctx, configMapsPath+"?watch=1&timeoutSeconds=2&resourceVersion="+lost)
		if err == nil {
			err = fmt.Errorf("%s", told)
		}
		if !strings.Contains(err.Error(), "Expired") {
			t.Errorf("%s went on with a watch from what was undone: %v", who, err)
		}
	}
	mustCreate(t, api, "new")
}
