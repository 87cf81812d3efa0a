package app

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/kv"
)

// forkOf makes a fork through the API, and returns its URL.
func forkOf(t *testing.T, c *http.Client, url, spec string) string {
	t.Helper()
	code, body := ask(t, c, "POST", url+"/forks", "", spec)
	if code != 201 {
		t.Fatalf("%s: %d %s", spec, code, body)
	}
	_, path, _ := strings.Cut(body, `"path":"`)
	path, _, _ = strings.Cut(path, `"`)
	return url + path
}

// answers checks the code of an answer, and parts of its body.
func answers(t *testing.T, c *http.Client, method, url, token, body string, code int, parts ...string) {
	t.Helper()
	got, answer := ask(t, c, method, url, token, body)
	if got != code {
		t.Fatalf("%s %s: %d %s, want %d", method, url, got, answer, code)
	}
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			t.Errorf("%s %s: no %s in %s", method, url, part, answer)
		}
	}
}

func mapOf(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":%q}}`, name, value)
}

// A fork begins as its server is, and goes its own way.
func TestFork(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		a := start(t, Options{Dir: dir})
		t.Cleanup(func() { stop(t, a) })
		c := client(t, a, admin(t, a))
		check := func(method, url, body string, code int, parts ...string) {
			t.Helper()
			answers(t, c, method, url, "", body, code, parts...)
		}
		check("POST", a.URL()+inConfigMaps, mapOf("a", "base"), 201)
		check("POST", a.URL()+definitions, namespacedKind("Widget"), 201)
		fork := forkOf(t, c, a.URL(), `{"name":"one"}`)
		check("GET", fork+inConfigMaps+"/a", "", 200, `"base"`)
		check("POST", fork+inConfigMaps, mapOf("b", "fork"), 201)
		check("DELETE", fork+inConfigMaps+"/a", "", 200)
		check("POST", a.URL()+inConfigMaps, mapOf("c", "base"), 201)
		check("GET", fork+inConfigMaps+"/a", "", 404)
		check("GET", fork+inConfigMaps+"/c", "", 404)
		check("GET", a.URL()+inConfigMaps+"/b", "", 404)
		check("GET", a.URL()+inConfigMaps+"/a", "", 200, `"base"`)

		// Definitions, too.
		check("POST", fork+"/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`, 201)
		check("POST", fork+definitions, namespacedKind("Gadget"), 201)
		check("GET", fork+"/apis/example.com/v1/gadgets", "", 200)
		check("GET", a.URL()+"/apis/example.com/v1/gadgets", "", 404)
		check("DELETE", a.URL()+definitions+"/widgets.example.com", "", 200)
		waitFor(t, c, a.URL()+"/apis/example.com/v1/widgets", 404)
		check("GET", fork+"/apis/example.com/v1/namespaces/default/widgets/w", "", 200)
		check("PATCH", fork+"/apis/example.com/v1/namespaces/default/widgets/w", `{"metadata":{"labels":{"a":"b"}}}`, 200)

		// Controllers work: a namespace is emptied and removed.
		check("POST", fork+"/api/v1/namespaces", `{"metadata":{"name":"gone"}}`, 201)
		check("POST", fork+"/api/v1/namespaces/gone/configmaps", mapOf("x", "y"), 201)
		check("DELETE", fork+"/api/v1/namespaces/gone", "", 200)
		waitFor(t, c, fork+"/api/v1/namespaces/gone", 404)
		check("GET", fork+"/api/v1/namespaces/gone/configmaps/x", "", 404)

		check("GET", fork+"/changes", "", 200, `"name":"b"`, `"DELETED"`, `"Gadget"`)
		check("GET", a.URL()+"/forks", "", 200, `"one"`)
		check("DELETE", a.URL()+"/forks/one", "", 200)
		check("GET", fork+inConfigMaps+"/b", "", 404)
		check("GET", a.URL()+"/forks/one", "", 404)
	}
}

func namespacedKind(kind string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]ss.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"%[1]ss","kind":"%[2]s"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}}}}}]}}`,
		strings.ToLower(kind), kind)
}

var (
	forkKinds   = flag.Int("kinds", 20, "definitions of TestForkFigures")
	forkObjects = flag.Int("objects", 200, "objects of TestForkFigures")
	forkProfile = flag.String("heap", "", "file for the profile of the heap of TestForkFigures")
	forkCount   = flag.Int("forks", 5, "forks of TestForkFigures, which says what they cost")
)

// Forks share what they do not change.
func TestForkFigures(t *testing.T) {
	a := start(t, Options{Dir: t.TempDir(), Compiled: compile.NewShared()})
	t.Cleanup(func() { stop(t, a) })
	c := client(t, a, admin(t, a))
	for i := range *forkKinds {
		if code, body := ask(t, c, "POST", a.URL()+definitions, "", namespacedKind(fmt.Sprint("Kind", i))); code != 201 {
			t.Fatal(code, body)
		}
	}
	for i := range *forkObjects {
		value := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","namespace":"default","uid":"u%d"},"data":{"k":%q}}`, i, i, strings.Repeat("x", 1000))
		if _, err := a.backend.Commit(t.Context(), kv.Write{Key: fmt.Sprintf("/registry/configmaps/default/c%06d", i), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, c, "GET", a.URL()+inConfigMaps+"?limit=1", "", "")
	before, goroutines := heap(), runtime.NumGoroutine()
	began := time.Now()
	var forks []*Fork
	for i := range *forkCount {
		_, made, err := a.forks.Make(t.Context(), &server.ForkSpec{Name: fmt.Sprint("f", i)}, "")
		if err != nil {
			t.Fatal(err)
		}
		forks = append(forks, made.(*Fork))
	}
	took := time.Since(began)
	n := int64(len(forks))
	t.Logf("%d forks: %v and %d kB each, %d goroutines", n, took/time.Duration(n), (heap()-before)/n>>10, (runtime.NumGoroutine()-goroutines)/int(n))
	for _, f := range forks {
		page, err := f.cache.Resource("/registry/configmaps/").Snapshot(t.Context(), kv.Latest)
		if err != nil || page.Len("", "") < *forkObjects {
			t.Fatal(err)
		}
	}
	t.Logf("with a list of %d objects: %d kB each", *forkObjects, (heap()-before)/n>>10)
	began = time.Now()
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < *forkCount; i += 8 {
				url := fmt.Sprint(a.URL(), "/forks/f", i)
				answers(t, c, "POST", url+inConfigMaps, "", mapOf("own", fmt.Sprint("of ", i)), 201)
				answers(t, c, "PATCH", url+inConfigMaps+"/own", "", `{"data":{"more":"x"}}`, 200)
				answers(t, c, "POST", url+"/apis/example.com/v1/namespaces/default/kind0s", "", `{"apiVersion":"example.com/v1","kind":"Kind0","metadata":{"name":"own"}}`, 201)
				answers(t, c, "GET", url+inConfigMaps+"?limit=500", "", "", 200)
				answers(t, c, "GET", url+inConfigMaps+"/own", "", "", 200, fmt.Sprintf(`"of %d"`, i))
			}
		})
	}
	group.Wait()
	t.Logf("five requests in each: %v a fork", time.Since(began)/time.Duration(n))
	for _, f := range forks {
		if err := f.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	debug.FreeOSMemory()
	if *forkProfile != "" {
		file, err := os.Create(*forkProfile)
		if err == nil {
			err = errors.Join(pprof.WriteHeapProfile(file), file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("with controllers after %v: %d kB each, the heap has %d MB; %s", time.Since(began), (heap()-before)/n>>10, heap()>>20, resident())
}

// resident returns the lines of the system about the memory of the process.
func resident() string {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") || strings.HasPrefix(line, "VmHWM") {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(found, ", ")
}
