package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/test/process"
)

// in calls do with a client of the member.
func (m *Member) in(t *testing.T, do func(ctx context.Context, c *clientv3.Client) error) {
	t.Helper()
	client := m.client()
	defer client.Close()
	if err := do(t.Context(), client); err != nil {
		t.Fatal(err)
	}
}

// mustCreate creates ConfigMaps, and returns the revision of the last one.
func mustCreate(t *testing.T, api process.API, names ...string) (revision string) {
	t.Helper()
	for _, name := range names {
		var err error
		if revision, err = create(t.Context(), api, name); err != nil {
			t.Fatal(err)
		}
	}
	return revision
}

// reason returns the reason of a Status.
func reason(err error) string {
	var status struct{ Reason string }
	if err != nil {
		_, text, _ := strings.Cut(err.Error(), "{")
		_ = json.Unmarshal([]byte("{"+text), &status)
	}
	return status.Reason
}

// Without etcd, no response is "not found", and no read is stale. The server recovers together with
// etcd.
func TestEtcdIsStopped(t *testing.T) {
	t.Parallel()
	m := StartMember(t)
	_, api := run(t, "--etcd-servers", m.Client)
	revision := mustCreate(t, api, "there")
	if _, err := api.Read(t.Context(), configMapsPath); err != nil {
		t.Fatal(err)
	}
	m.Kill()
	began := time.Now()
	var asking sync.WaitGroup
	for _, path := range []string{configMapsPath + "/there", configMapsPath + "/never", configMapsPath, "/apis/example.com/v1/things", "/apis/example.com"} {
		asking.Go(func() {
			if _, err := api.Read(t.Context(), path); code(err) != http.StatusServiceUnavailable {
				t.Errorf("GET %s without etcd: %v, want 503", path, err)
			}
		})
	}
	asking.Go(func() {
		if _, err := create(t.Context(), api, "lost"); !process.Unanswered(err) || code(err) == 0 {
			t.Errorf("a write without etcd: %v, want 503 or 504", err)
		}
	})
	asking.Wait()
	t.Logf("all was answered after %v", time.Since(began).Round(time.Millisecond))
	// A read at any revision still succeeds.
	if _, err := api.Read(t.Context(), configMapsPath+"?resourceVersion="+revision+"&resourceVersionMatch=NotOlderThan"); err != nil {
		t.Errorf("a read of what is known already: %v", err)
	}
	m.Begin()
	m.Wait()
	began = time.Now()
	eventually(t, func(ctx context.Context) error {
		_, err := api.Read(ctx, configMapsPath+"/there")
		if code(err) == http.StatusNotFound {
			t.Fatal(err)
		}
		return err
	})
	mustCreate(t, api, "new")
	t.Logf("it served again %v after etcd did", time.Since(began).Round(time.Millisecond))
}

// A compaction overtakes a paginated list and a watch: both get 410, and the list can continue with
// the current state.
func TestCompactionDuringAList(t *testing.T) {
	t.Parallel()
	m := StartMember(t)
	_, api := run(t, "--etcd-servers", m.Client)
	// The server would serve revisions in its memory regardless.
	_, other := run(t, "--etcd-servers", m.Client, "--controllers=*,-cluster_authentication_trust_controller")
	revision := mustCreate(t, api, "a", "b", "c", "d")
	type part struct {
		Metadata struct{ ResourceVersion, Continue string }
		Items    []configMap
	}
	var first part
	if err := api.Do(t.Context(), http.MethodGet, configMapsPath+"?limit=2", nil, &first); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, api, "e")
	m.in(t, func(ctx context.Context, c *clientv3.Client) error {
		now, err := c.Get(ctx, "/")
		if err != nil {
			return err
		}
		_, err = c.Compact(ctx, now.Header.Revision)
		return err
	})
	var next part
	err := other.Do(t.Context(), http.MethodGet, configMapsPath+"?limit=9&continue="+url.QueryEscape(first.Metadata.Continue), nil, &next)
	if code(err) != http.StatusGone || reason(err) != "Expired" {
		t.Fatalf("going on after the compaction: %v, want 410", err)
	}
	_, text, _ := strings.Cut(err.Error(), "{")
	var status struct{ Metadata struct{ Continue string } }
	if err := json.Unmarshal([]byte("{"+text), &status); err != nil || status.Metadata.Continue == "" {
		t.Fatalf("there is no token to go on with: %s (%v)", text, err)
	}
	err = other.Do(t.Context(), http.MethodGet, configMapsPath+"?continue="+url.QueryEscape(status.Metadata.Continue), nil, &next)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, c := range append(first.Items, next.Items...) {
		names[c.Metadata.Name]++
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if names[name] != 1 {
			t.Errorf("%s was listed %d times", name, names[name])
		}
	}
	if _, err := other.Read(t.Context(), configMapsPath+"?watch=1&timeoutSeconds=1&resourceVersion="+revision); err != nil && code(err) != http.StatusGone {
		t.Errorf("a watch from before the compaction: %v", err)
	}
}

// When etcd is full, writes fail at once with a clear error, while reads and deletes work. Writes work
// again once there is space.
func TestEtcdIsFull(t *testing.T) {
	t.Parallel()
	m := NewMember(t)
	m.Quota = 8 << 20
	m.Begin()
	m.Wait()
	_, api := run(t, "--etcd-servers", m.Client)
	mustCreate(t, api, "small")
	large := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": strings.Repeat("x", 900<<10)}}
	var err error
	written := 0
	for ; err == nil && written < 20; written++ {
		large["metadata"] = map[string]any{"name": fmt.Sprintf("large-%d", written)}
		err = api.Do(t.Context(), http.MethodPost, configMapsPath, large, nil)
	}
	if code(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "space") {
		t.Fatalf("the write after %d was answered with %.300v", written, err)
	}
	if _, err := api.Read(t.Context(), configMapsPath+"/small"); err != nil {
		t.Errorf("a read of a full etcd: %v", err)
	}
	for i := range written - 1 {
		if err := api.Do(t.Context(), http.MethodDelete, configMapsPath+fmt.Sprintf("/large-%d", i), nil, nil); err != nil {
			t.Errorf("a delete in a full etcd: %v", err)
		}
	}
	if _, err := create(t.Context(), api, "more"); code(err) != http.StatusServiceUnavailable {
		t.Errorf("a write before there is space: %v", err)
	}
	m.in(t, func(ctx context.Context, c *clientv3.Client) error {
		now, err := c.Get(ctx, "/")
		if err != nil {
			return err
		}
		if _, err := c.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			return err
		}
		if _, err := c.Defragment(ctx, m.Client); err != nil {
			return err
		}
		_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		return err
	})
	mustCreate(t, api, "more")
}

// A change of the leader takes only a moment: requests meanwhile succeed or fail, and no write is
// lost.
func TestTheLeaderGoes(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	var urls []string
	for _, m := range c.Members {
		urls = append(urls, m.Client)
	}
	_, api := run(t, "--etcd-servers", strings.Join(urls, ","))
	mustCreate(t, api, "before")
	leader := c.Leader()
	leader.Kill()
	began := time.Now()
	eventually(t, func(ctx context.Context) error {
		_, err := create(ctx, api, "after")
		if code(err) == http.StatusConflict {
			return nil // it was stored, and the response was lost
		}
		if err != nil && !process.Unanswered(err) {
			t.Fatal(err)
		}
		return err
	})
	t.Logf("a write was stored %v after the leader died", time.Since(began).Round(time.Millisecond))
	for _, name := range []string{"before", "after"} {
		eventually(t, func(ctx context.Context) error {
			_, err := api.Read(ctx, configMapsPath+"/"+name)
			if code(err) == http.StatusNotFound {
				t.Fatal(err)
			}
			return err
		})
	}
}
