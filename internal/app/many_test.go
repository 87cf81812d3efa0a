package app

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authz/chain"
)

var manyBehind = flag.Int("behind", 2, "how many servers are behind one in TestManyBehind, which says what they cost")

// Several servers, each with a store and some API groups, are one API behind a front server.
func TestManyBehind(t *testing.T) {
	front := start(t, Options{Authentication: Authentication{FrontProxy: FrontProxy{}.OrOwn()}})
	t.Cleanup(func() { stop(t, front) })
	c := client(t, front, admin(t, front))
	file := write(t, filepath.Join(t.TempDir(), "kubeconfig"), front.Kubeconfig())
	empty := heap()
	var own []*App
	for i := range *manyBehind {
		own = append(own, extend(t, front, c, file, i))
	}
	each := (heap() - empty) / int64(len(own))

	for i := range own {
		waitFor(t, c, front.URL()+crontabsOf(i), 200)
		if code, body := ask(t, c, "POST", front.URL()+crontabsOf(i), "application/json", crontabOf(i)); code != 201 {
			t.Fatalf("%d %s", code, body)
		}
		if code, body := ask(t, client(t, own[i], admin(t, own[i])), "GET", own[i].URL()+crontabsOf(i)+"/nightly", "", ""); code != 200 {
			t.Errorf("it is not in the store of the server of its group: %d %s", code, body)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for found := 0; found < len(own); {
		_, body := ask(t, c, "GET", front.URL()+"/apis", "", "")
		var groups struct{ Groups []struct{ Name string } }
		if err := json.Unmarshal([]byte(body), &groups); err != nil {
			t.Fatal(err)
		}
		found = 0
		for _, g := range groups.Groups {
			if strings.HasPrefix(g.Name, "group") {
				found++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d groups are in discovery", found, len(own))
		}
	}
	if len(own) > 2 {
		t.Logf("%d servers: %d KiB of heap each", len(own), each>>10)
		t.Logf("GET /apis: %v", took(t, c, front.URL()+"/apis"))
		t.Logf("GET of an object: %v, straight to its server %v", took(t, c, front.URL()+crontabsOf(0)+"/nightly"),
			took(t, client(t, own[0], admin(t, own[0])), own[0].URL()+crontabsOf(0)+"/nightly"))
		t.Logf("GET of /openapi/v3: %v", took(t, c, front.URL()+"/openapi/v3"))
	}
	// A stopped server does not affect the others.
	if err := own[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, c, front.URL()+crontabsOf(0), 503)
	if code, body := ask(t, c, "GET", front.URL()+crontabsOf(1)+"/nightly", "", ""); code != 200 {
		t.Errorf("another one is gone, too: %d %s", code, body)
	}
}

// extend starts a server of a group behind another one, where it publishes itself.
func extend(t *testing.T, front *App, c *http.Client, file string, i int) *App {
	t.Helper()
	name := fmt.Sprint("part", i)
	if code, body := ask(t, c, "POST", front.URL()+"/api/v1/namespaces/default/services", "application/json",
		fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"type":"ExternalName","externalName":"localhost"}}`, name)); code != 201 {
		t.Fatalf("%d %s", code, body)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	crd := strings.ReplaceAll(crontabFile, "stable.example.com", groupOf(i))
	a := start(t, Options{
		Listener: listener, Controllers: ExtensionControllers(), RuntimeConfig: ExtensionKinds(),
		CRDs: write(t, filepath.Join(t.TempDir(), "crd.yaml"), []byte(crd)),
		Cluster: Cluster{
			File: file, AuthenticationFile: file, TokenTTL: DelegationTTL, Authorization: chain.Delegation{File: file, AuthorizedTTL: DelegationTTL},
			Service: fmt.Sprintf("default/%s:%d", name, listener.Addr().(*net.TCPAddr).Port),
		},
	})
	if i > 0 { // the test stops the first one
		t.Cleanup(func() { stop(t, a) })
	}
	return a
}

func groupOf(i int) string { return fmt.Sprintf("group%d.example.com", i) }

func crontabsOf(i int) string { return "/apis/" + groupOf(i) + "/v1/namespaces/default/crontabs" }

func crontabOf(i int) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"CronTab","metadata":{"name":"nightly"}}`, groupOf(i))
}

func waitFor(t *testing.T, c *http.Client, url string, want int) {
	t.Helper()
	var code int
	var body string
	if !poll(t, func() bool {
		code, body = ask(t, c, "GET", url, "", "")
		return code == want
	}) {
		t.Fatalf("%s: %d %s, want %d", url, code, body, want)
	}
}

// took returns the duration of the fastest of some requests.
func took(t *testing.T, c *http.Client, url string) time.Duration {
	t.Helper()
	best := time.Hour
	for range 100 {
		begun := time.Now()
		if code, body := ask(t, c, "GET", url, "", ""); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		best = min(best, time.Since(begun))
	}
	return best.Round(time.Microsecond)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
