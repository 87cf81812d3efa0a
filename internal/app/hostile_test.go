package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object"
)

// changed returns a valid response to a ConversionReview, modified by change.
func changed(change func(response map[string]any, objects []any) []any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review)
		request, _ := review["request"].(map[string]any)
		objects, _ := request["objects"].([]any)
		for _, o := range objects {
			o.(map[string]any)["apiVersion"] = request["desiredAPIVersion"]
		}
		response := map[string]any{"uid": request["uid"], "result": map[string]any{"status": "Success"}}
		response["convertedObjects"] = change(response, objects)
		delete(review, "request")
		review["response"] = response
		_ = json.NewEncoder(w).Encode(review)
	}
}

// hostile lists misbehaving webhooks, with the error of requests that need them. A webhook that
// never ends has no error: its requests wait.
func hostile() []struct {
	name   string
	handle http.HandlerFunc
	want   string
} {
	const of = "Internal error occurred: conversion webhook for example.com/v1beta1, Kind=CronTab "
	return []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"wrong uid", changed(func(response map[string]any, objects []any) []any { response["uid"] = "other"; return objects }),
			of + `failed: expected response.uid="`},
		{"changed name", changed(func(_ map[string]any, objects []any) []any {
			objects[0].(map[string]any)["metadata"].(map[string]any)["name"] = "other"
			return objects
		}), of + "returned invalid converted object at index 0: must have the same name: "},
		{"missing objects", changed(func(_ map[string]any, objects []any) []any { return objects[1:] }), of + "returned 2 objects, expected 3"},
		{"reordered objects", changed(func(_ map[string]any, objects []any) []any {
			slices.Reverse(objects)
			return objects
		}), of + "returned invalid converted object at index 0: must have the same name: "},
		{"10 GB", func(w http.ResponseWriter, r *http.Request) {
			for block, left := make([]byte, 1<<20), 10_000; left > 0; left-- {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, of + "failed: the webhook's response is larger than "},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusPermanentRedirect)
		}, of + "failed: the server responded with the status code 308"},
		{"trickle", func(w http.ResponseWriter, r *http.Request) {
			for blank := time.NewTicker(10 * time.Millisecond); ; {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				select {
				case <-blank.C:
				case <-r.Context().Done():
					return
				}
			}
		}, ""},
	}
}

// A misbehaving webhook fails the requests that need it. It does not affect other kinds, the storage
// version, garbage collection, or the deletion of namespaces and the definition.
func TestConvertHostile(t *testing.T) {
	for _, tt := range hostile() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := startConverting(t)
			c.dependents()
			c.hostile.Store(&tt.handle)
			c.told(tt.want)
			c.unaffected()
		})
	}
}

// A webhook with an untrusted certificate receives no request, and other requests are not affected.
func TestConvertUntrusted(t *testing.T) {
	c := startConverting(t)
	c.dependents()
	before := c.calls.Load()
	c.must("PATCH", cronTabs, `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`, 200)
	c.told("certificate signed by unknown authority")
	c.must("PATCH", cronTabs, fmt.Sprintf(`{"spec":{"conversion":{"webhook":{"clientConfig":{"url":%q}}}}}`,
		strings.Replace(c.hook.URL, "https:", "http:", 1)), 422)
	c.expect("calls", c.calls.Load(), before)
	c.unaffected()
}

// dependents creates the objects for the later checks: three CronTabs in the namespace default, one
// with an owner among them, and one in a namespace that will be deleted. All are stored in a version
// that is no longer the storage version.
func (c *converting) dependents() {
	c.t.Helper()
	c.must("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"going"}}`, 201)
	c.must("POST", inGoing(), crontab("v1beta1", "inside", `"hostPort":"h:80"`, ""), 201)
	parent, _ := c.must("POST", path("v1beta1", ""), crontab("v1beta1", "parent", `"hostPort":"h:80"`, ""), 201)
	owner := fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"example.com/v1beta1","kind":"CronTab","name":"parent","uid":%q}]`, object.UID(parent))
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "child", `"hostPort":"h:80"`, owner), 201)
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "alone", `"hostPort":"h:80"`, ""), 201)
	c.store("v1")
}

func inGoing() string { return strings.Replace(path("v1beta1", ""), "/default/", "/going/", 1) }

// told checks the error of a request that needs the webhook; "" only starts a request that waits.
func (c *converting) told(want string) {
	c.t.Helper()
	if want == "" {
		go c.client.Get(c.app.URL() + path("v1", "")) // it waits without blocking others
		for c.calls.Load() == 0 {
		}
		return
	}
	answer, _ := c.must("GET", path("v1", ""), "", 500)
	if message := fmt.Sprint(answer["message"]); !strings.Contains(message, want) {
		c.t.Errorf("the message is %s, want %s", message, want)
	}
}

// unaffected checks everything that needs no webhook, up to the deletion of the definition.
func (c *converting) unaffected() {
	c.t.Helper()
	c.must("GET", path("v1beta1", ""), "", 200)
	c.must("POST", path("v1", ""), crontab("v1", "new", `"host":"h"`, ""), 201)
	c.must("POST", "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`, 201)
	c.must("DELETE", path("v1beta1", "alone"), "", 200)
	c.must("DELETE", path("v1", "new"), "", 200)
	c.must("DELETE", path("v1beta1", "parent"), "", 200)
	c.must("DELETE", "/api/v1/namespaces/going", "", 200)
	c.gone("/apis/example.com/v1beta1/crontabs", "inside", "child")
	c.must("DELETE", cronTabs, "", 200)
	c.gone("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "crontabs.example.com")
	c.must("GET", "/api/v1/namespaces/default/configmaps/other", "", 200)
}

// gone waits until a list has none of the names.
func (c *converting) gone(at string, names ...string) {
	c.t.Helper()
	code, list, _ := c.do("GET", at, "")
	left := map[string]bool{}
	items, _ := list["items"].([]any)
	for _, item := range items {
		for _, name := range names {
			if object.Name(item.(object.Tree)) == name {
				left[name] = true
			}
		}
	}
	if code == http.StatusNotFound || len(left) == 0 {
		return
	}
	c.watch(at, "resourceVersion="+object.ResourceVersion(list), func(event string, o object.Tree) bool {
		if event == "DELETED" {
			delete(left, object.Name(o))
		}
		return len(left) == 0
	})
}

// A watch of a version that cannot be converted gets an error event, and a watch of another version
// gets the object.
func TestConvertDownWatches(t *testing.T) {
	c := startConverting(t)
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "a", `"hostPort":"h:80"`, ""), 201)
	list, _ := c.must("GET", path("v1", ""), "", 200)
	c.down.Store(true)
	c.must("PATCH", path("v1beta1", "a"), `{"spec":{"note":"n"}}`, 200)
	from := "resourceVersion=" + object.ResourceVersion(list)
	c.watch(path("v1", ""), from, func(event string, o object.Tree) bool {
		c.expect("event", event, "ERROR")
		c.expect("reason", o["reason"], "InternalError")
		c.expect("message", o["message"], "Internal error occurred: conversion webhook for example.com/v1beta1, Kind=CronTab failed: the server is currently unable to handle the request")
		return true
	})
	c.watch(path("v1beta1", ""), from, func(event string, o object.Tree) bool {
		c.expect("event", event+" "+spec(o), `MODIFIED {"hostPort":"h:80","note":"n"}`)
		return true
	})
}
