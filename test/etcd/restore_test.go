package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// A configMap is the JSON of one, as far as it matters here.
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

// code is that of an answer: 0 if there was none.
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

// A backup of etcd is restored under a server that runs. From then on nobody reads
// what is no longer so, and whoever watched from then is told to begin anew. The
// process goes on.
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
