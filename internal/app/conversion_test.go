package app

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/internal/object"
)

// converting is a server with the kind CronTab and its conversion webhook. v1beta1 has hostPort in
// place of host and port of v1.
type converting struct {
	t      testing.TB
	app    *App
	client *http.Client
	hook   *httptest.Server
	calls  atomic.Int64
	sent   atomic.Int64 // objects, in all calls
	down   atomic.Bool
	hang   atomic.Pointer[chan struct{}] // calls block while it is open
	// hostile replaces the webhook's handler.
	hostile atomic.Pointer[http.HandlerFunc]
	// arrived receives a value for each call that hangs.
	arrived chan struct{}
}

const crontabs = "/apis/example.com/%s/namespaces/default/crontabs"

func startConverting(t testing.TB) *converting {
	t.Helper()
	return startConvertingWith(t, Options{})
}

func startConvertingWith(t testing.TB, o Options) *converting {
	t.Helper()
	c := &converting{t: t, app: start(t, o), arrived: make(chan struct{}, 100)}
	t.Cleanup(func() { stop(t, c.app) })
	awaitStart(t, c.app)
	c.client = client(t, c.app, admin(t, c.app))
	c.hook = httptest.NewTLSServer(http.HandlerFunc(c.convert))
	t.Cleanup(c.hook.Close)
	c.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", c.crd("v1beta1"), 201)
	return c
}

func (c *converting) crd(storage string) string {
	version := func(name, fields string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,
			"selectableFields":[{"jsonPath":".spec.%s"}],
			"subresources":{"status":{}},
			"schema":{"openAPIV3Schema":{"type":"object","properties":{
				"spec":{"type":"object","properties":{%s,"note":{"type":"string"}}},
				"status":{"type":"object","properties":{"seen":{"type":"string"}}}}}}}`,
			name, name == storage, map[string]string{"v1": "host", "v1beta1": "hostPort"}[name], fields)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.hook.Certificate().Raw})
	bundle, _ := json.Marshal(ca)
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"crontabs.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"crontabs","kind":"CronTab"},
			"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],
				"clientConfig":{"url":%q,"caBundle":%s}}},
			"versions":[%s,%s]}}`, c.hook.URL+"/convert", bundle,
		version("v1", `"host":{"type":"string"},"port":{"type":"string"}`),
		version("v1beta1", `"hostPort":{"type":"string"}`))
}

func (c *converting) convert(w http.ResponseWriter, r *http.Request) {
	c.calls.Add(1)
	if hang := c.hang.Load(); hang != nil {
		c.arrived <- struct{}{}
		<-*hang
	}
	if hostile := c.hostile.Load(); hostile != nil {
		(*hostile)(w, r.WithContext(c.t.Context())) // ends with the test
		return
	}
	if c.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Request    map[string]any `json:"request,omitempty"`
		Response   map[string]any `json:"response"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		c.t.Error(err)
	}
	objects, _ := review.Request["objects"].([]any)
	c.sent.Add(int64(len(objects)))
	for _, o := range objects {
		o := o.(map[string]any)
		if o["apiVersion"] == review.Request["desiredAPIVersion"] {
			c.t.Error("an object was sent that needs no conversion")
		}
		o["apiVersion"] = review.Request["desiredAPIVersion"]
		spec, _ := o["spec"].(map[string]any)
		if hostPort, ok := spec["hostPort"].(string); ok {
			spec["host"], spec["port"], _ = strings.Cut(hostPort, ":")
			delete(spec, "hostPort")
		} else if host, ok := spec["host"].(string); ok {
			spec["hostPort"] = fmt.Sprint(host, ":", spec["port"])
			delete(spec, "host")
			delete(spec, "port")
		}
	}
	review.Response = map[string]any{"uid": review.Request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// do sends a request, and returns the response and the number of webhook calls for it.
func (c *converting) do(method, path, body string) (code int, answer object.Tree, calls int64) {
	c.t.Helper()
	before := c.calls.Load()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.app.URL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	switch {
	case method == "PATCH" && strings.Contains(path, "fieldManager"):
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	case method == "PATCH":
		r.Header.Set("Content-Type", "application/merge-patch+json")
	default:
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, answer, c.calls.Load() - before
}

// must is do with an expected code.
func (c *converting) must(method, path, body string, code int) (object.Tree, int64) {
	c.t.Helper()
	got, answer, calls := c.do(method, path, body)
	if got != code {
		c.t.Fatalf("%s %s: %d %v", method, path, got, answer)
	}
	return answer, calls
}

func path(version, name string) string {
	p := fmt.Sprintf(crontabs, version)
	if name != "" {
		p += "/" + name
	}
	return p
}

func crontab(version, name, spec, more string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"CronTab","metadata":{"name":%q%s},"spec":{%s}}`, version, name, more, spec)
}

func spec(t object.Tree) string {
	data, _ := json.Marshal(t["spec"])
	return string(data)
}

func (c *converting) expect(what string, got, want any) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A list converts its objects in few calls. Later requests of any type reuse the result.
func TestConvertLists(t *testing.T) {
	c := startConverting(t)
	const n = 300
	for i := range n {
		_, calls := c.must("POST", path("v1beta1", ""), crontab("v1beta1", fmt.Sprint("c", i), fmt.Sprintf(`"hostPort":"h%d:80"`, i), ""), 201)
		c.expect("calls of a create in the storage version", calls, int64(0))
	}
	list, calls := c.must("GET", path("v1", ""), "", 200)
	c.expect("calls of the first list", calls, int64(2))
	items, _ := list["items"].([]any)
	c.expect("items", len(items), n)
	first := items[0].(object.Tree)
	c.expect("apiVersion", first["apiVersion"], "example.com/v1")
	c.expect("spec", spec(first), `{"host":"h0","port":"80"}`)
	for _, again := range []string{path("v1", ""), path("v1", "c7"), path("v1beta1", ""), path("v1", "") + "?fieldSelector=spec.host%3Dh7"} {
		_, calls := c.must("GET", again, "", 200)
		c.expect("calls of "+again, calls, int64(0))
	}
	found, _ := c.must("GET", path("v1", "")+"?fieldSelector=spec.host%3Dh7", "", 200)
	items, _ = found["items"].([]any)
	c.expect("items found by a field of v1", len(items), 1)
	// One write converts one object.
	c.must("PATCH", path("v1beta1", "c7"), `{"spec":{"note":"x"}}`, 200)
	_, calls = c.must("GET", path("v1", ""), "", 200)
	c.expect("calls after one write", calls, int64(1))
}

// A list with a field selector of a converted version takes few calls, too.
func TestConvertToSelect(t *testing.T) {
	c := startConverting(t)
	for i := range 20 {
		c.must("POST", path("v1beta1", ""), crontab("v1beta1", fmt.Sprint("c", i), fmt.Sprintf(`"hostPort":"h%d:80"`, i), ""), 201)
	}
	list, calls := c.must("GET", path("v1", "")+"?fieldSelector=spec.host%3Dh7", "", 200)
	items, _ := list["items"].([]any)
	c.expect("items", len(items), 1)
	c.expect("calls", calls, int64(1))
}

// A watch has its version of each event. Concurrent watches share one conversion per object; those
// that start at the same time may share the work.
func TestConvertWatches(t *testing.T) {
	c := startConverting(t)
	for i := range 10 {
		c.must("POST", path("v1beta1", ""), crontab("v1beta1", fmt.Sprint("c", i), `"hostPort":"h:80"`, ""), 201)
	}
	before := c.sent.Load()
	var watches []*json.Decoder
	for range 3 {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", c.app.URL()+path("v1", "")+"?watch=1", nil)
		response, err := c.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		watches = append(watches, json.NewDecoder(bufio.NewReader(response.Body)))
	}
	next := func(w *json.Decoder) string {
		var e struct {
			Type   string
			Object object.Tree
		}
		if err := w.Decode(&e); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(e.Type, " ", e.Object["apiVersion"], " ", object.Name(e.Object), " ", spec(e.Object))
	}
	for _, w := range watches {
		for i := range 10 {
			c.expect("event", next(w), fmt.Sprintf(`ADDED example.com/v1 c%d {"host":"h","port":"80"}`, i))
		}
	}
	c.expect("objects converted for the first events", c.sent.Load()-before, int64(10))
	c.must("PATCH", path("v1beta1", "c3"), `{"spec":{"hostPort":"g:81"}}`, 200)
	c.must("DELETE", path("v1beta1", "c3"), "", 200)
	for _, w := range watches {
		c.expect("event", next(w), `MODIFIED example.com/v1 c3 {"host":"g","port":"81"}`)
		c.expect("event", next(w), `DELETED example.com/v1 c3 {"host":"g","port":"81"}`)
	}
	c.expect("objects converted in all", c.sent.Load()-before, int64(11))
}

// An object is written, patched and applied in every version while the storage version changes: no
// field and no field owner is lost.
func TestConvertWrites(t *testing.T) {
	c := startConverting(t)
	made, calls := c.must("POST", path("v1", "")+"?fieldManager=maker", crontab("v1", "a", `"host":"h","port":"80"`, ""), 201)
	c.expect("spec of the answer", spec(made), `{"host":"h","port":"80"}`)
	c.expect("calls of a create in another version", calls, int64(2)) // one conversion in each direction
	got, _ := c.must("GET", path("v1beta1", "a"), "", 200)
	c.expect("spec in v1beta1", spec(got), `{"hostPort":"h:80"}`)

	c.must("PATCH", path("v1", "a"), `{"spec":{"port":"81"}}`, 200)
	c.must("PATCH", path("v1", "a")+"?fieldManager=noter", crontab("v1", "a", `"note":"n"`, ""), 200)
	c.must("PATCH", path("v1", "a/status"), `{"status":{"seen":"yes"}}`, 200)
	got, _ = c.must("GET", path("v1beta1", "a"), "", 200)
	c.expect("spec in v1beta1", spec(got), `{"hostPort":"h:81","note":"n"}`)

	c.store("v1")
	now, _ := c.must("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com", "", 200)
	c.expect("storedVersions", fmt.Sprint(now["status"].(object.Tree)["storedVersions"]), "[v1beta1 v1]")

	for version, want := range map[string]string{"v1": `{"host":"h","note":"n","port":"81"}`, "v1beta1": `{"hostPort":"h:81","note":"n"}`} {
		got, _ = c.must("GET", path(version, "a"), "", 200)
		c.expect("spec in "+version, spec(got), want)
		c.expect("status in "+version, fmt.Sprint(got["status"]), "map[seen:yes]")
	}
	c.must("PATCH", path("v1beta1", "a")+"?fieldManager=noter", crontab("v1beta1", "a", `"note":"m"`, ""), 200)
	got, _ = c.must("GET", path("v1", "a"), "", 200)
	c.expect("spec after an apply in v1beta1", spec(got), `{"host":"h","note":"m","port":"81"}`)
	owners := ""
	for _, f := range object.Metadata(got)["managedFields"].([]any) {
		f := f.(object.Tree)
		fields, _ := json.Marshal(f["fieldsV1"])
		owners += fmt.Sprintln(f["manager"], f["operation"], f["apiVersion"], string(fields))
	}
	for _, want := range []string{
		`noter Apply example.com/v1beta1 {"f:spec":{"f:note":{}}}`,
		`maker Update example.com/v1 {"f:spec":{".":{},"f:host":{}}}`,
	} {
		if !strings.Contains(owners, want) {
			t.Errorf("owners are\n%s, want %s", owners, want)
		}
	}
	// A no-op write does not change the object.
	again, _ := c.must("PATCH", path("v1", "a"), `{"spec":{"note":"m"}}`, 200)
	c.expect("resourceVersion", object.ResourceVersion(again), object.ResourceVersion(got))
}

// While the webhook is down, only requests that need a conversion fail, with an error that says so.
func TestConvertDown(t *testing.T) {
	c := startConverting(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		c.must("POST", path("v1beta1", ""), crontab("v1beta1", name, `"hostPort":"h:80"`, ""), 201)
	}
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "held", `"hostPort":"h:80"`, `,"finalizers":["example.com/f"]`), 201)
	// From here on all stored objects are in another version.
	c.store("v1")
	c.down.Store(true)

	const why = `conversion webhook for example.com/v1beta1, Kind=CronTab failed: the server is currently unable to handle the request`
	for _, path := range []string{path("v1", "a"), path("v1", ""), path("v1", "") + "?fieldSelector=spec.host%3Dh"} {
		answer, _ := c.must("GET", path, "", 500)
		c.expect("reason", answer["reason"], "InternalError")
		c.expect("message", answer["message"], "Internal error occurred: "+why)
	}
	answer, _ := c.must("POST", path("v1beta1", ""), crontab("v1beta1", "new", `"hostPort":"h:80"`, ""), 500)
	c.expect("message of a write", answer["message"], why)

	c.must("GET", path("v1beta1", ""), "", 200)
	c.must("GET", path("v1beta1", "a"), "", 200)
	c.must("POST", path("v1", ""), crontab("v1", "new", `"host":"h"`, ""), 201)
	c.must("GET", path("v1", "new"), "", 200)
	c.must("GET", "/api/v1/namespaces", "", 200)

	for _, path := range []string{path("v1", "a"), path("v1", "held"), path("v1", "")} {
		answer, _ := c.must("DELETE", path, "", 500)
		c.expect("message of a delete", answer["message"], "Internal error occurred: "+why)
	}
	c.must("DELETE", path("v1beta1", "b"), "", 200)
	c.must("DELETE", path("v1beta1", "held"), "", 200) // it only gets a deletionTimestamp
	held, _ := c.must("GET", path("v1beta1", "held"), "", 200)
	c.expect("deletionTimestamp", object.Deleting(held), true)
	c.must("PATCH", path("v1beta1", "held"), `{"metadata":{"finalizers":null}}`, 200)
	c.must("GET", path("v1beta1", "held"), "", 404)
	c.must("DELETE", path("v1beta1", "")+"?fieldSelector=metadata.name%3Dc", "", 200)
	c.must("GET", path("v1beta1", "c"), "", 404)
	c.must("GET", path("v1beta1", "d"), "", 200)
	// This would delete objects stored in v1.
	c.must("DELETE", path("v1beta1", ""), "", 500)
	c.must("GET", path("v1beta1", "d"), "", 200)
	c.must("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com", "", 200)
}

// Controllers work while the webhook is down: dependents are deleted, and namespaces are emptied.
func TestConvertDownLifecycle(t *testing.T) {
	c := startConverting(t)
	c.must("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"going"}}`, 201)
	inside := strings.Replace(path("v1beta1", ""), "/default/", "/going/", 1)
	c.must("POST", inside, crontab("v1beta1", "inside", `"hostPort":"h:80"`, ""), 201)
	parent, _ := c.must("POST", path("v1beta1", ""), crontab("v1beta1", "parent", `"hostPort":"h:80"`, ""), 201)
	owner := fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"example.com/v1beta1","kind":"CronTab","name":"parent","uid":%q,"blockOwnerDeletion":true}]`, object.UID(parent))
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "child", `"hostPort":"h:80"`, owner), 201)
	c.store("v1")
	c.down.Store(true)

	list, _ := c.must("GET", "/apis/example.com/v1beta1/crontabs", "", 200)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", c.app.URL()+"/apis/example.com/v1beta1/crontabs?watch=1&resourceVersion="+object.ResourceVersion(list), nil)
	response, err := c.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	c.must("DELETE", path("v1beta1", "parent"), `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground"}`, 200)
	c.must("DELETE", "/api/v1/namespaces/going", "", 200)
	left := map[string]bool{"inside": true, "parent": true, "child": true}
	for events := json.NewDecoder(response.Body); len(left) > 0; {
		var e struct {
			Type   string
			Object object.Tree
		}
		if err := events.Decode(&e); err != nil {
			t.Fatalf("%v: %v are left", err, left)
		}
		if e.Type == "DELETED" {
			delete(left, object.Name(e.Object))
		}
	}
}

// A webhook may be a Service: with EndpointSlices and a named port, or of the type ExternalName.
func TestConvertByService(t *testing.T) {
	c := startConverting(t)
	_, port, err := net.SplitHostPort(c.hook.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	named := certificateFor(t, "hooks.system.svc")
	c.hook.TLS.Certificates = nil
	c.hook.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &named, nil }

	const crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com"
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: named.Certificate[0]}))
	c.must("PATCH", crd, fmt.Sprintf(`{"spec":{"conversion":{"webhook":{"clientConfig":{
		"url":null,"caBundle":%s,"service":{"namespace":"system","name":"hooks","port":8443,"path":"/convert"}}}}}}`, ca), 200)
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "a", `"hostPort":"h:80"`, ""), 201)

	const failed = `Internal error occurred: conversion webhook for example.com/v1beta1, Kind=CronTab failed: Post "https://hooks.system.svc:8443/convert?timeout=30s": `
	message := func(want string) {
		t.Helper()
		answer, _ := c.must("GET", path("v1", "a"), "", 500)
		c.expect("message", answer["message"], failed+want)
	}
	message(`service "hooks" not found`)
	c.must("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"system"}}`, 201)
	c.must("POST", "/api/v1/namespaces/system/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"hooks"},
		"spec":{"ports":[{"name":"metrics","port":1},{"name":"hook","port":443}]}}`, 201)
	message(`no service port 8443 found for service "hooks"`)
	c.must("PATCH", "/api/v1/namespaces/system/services/hooks", `{"spec":{"ports":[{"name":"metrics","port":1},{"name":"hook","port":8443}]}}`, 200)
	message(`no endpoints available for service "hooks"`)
	const slices = "/apis/discovery.k8s.io/v1/namespaces/system/endpointslices"
	c.must("POST", slices, fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
		"metadata":{"name":"hooks-1","labels":{"kubernetes.io/service-name":"hooks"}},
		"endpoints":[{"addresses":["127.0.0.1"],"conditions":{"ready":false}}],
		"ports":[{"name":"metrics","port":1},{"name":"hook","port":%s}]}`, port), 201)
	message(`no endpoints available for service "hooks"`)
	c.must("PATCH", slices+"/hooks-1", `{"endpoints":[{"addresses":["127.0.0.1"]}]}`, 200)
	got, _ := c.must("GET", path("v1", "a"), "", 200)
	c.expect("spec", spec(got), `{"host":"h","port":"80"}`)

	c.must("POST", "/api/v1/namespaces/system/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"outside"},
		"spec":{"type":"ExternalName","externalName":"localhost"}}`, 201)
	outside := certificateFor(t, "outside.system.svc")
	c.hook.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &outside, nil }
	ca, _ = json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: outside.Certificate[0]}))
	c.must("PATCH", crd, fmt.Sprintf(`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":%s,
		"service":{"name":"outside","port":%s}}}}}}`, ca, port), 200)
	got, calls := c.must("GET", path("v1", "a"), "", 200)
	c.expect("spec", spec(got), `{"host":"h","port":"80"}`)
	c.expect("calls of another webhook", calls, int64(1))
}

// certificateFor returns a self-signed certificate for a name.
func certificateFor(t *testing.T, name string) tls.Certificate {
	t.Helper()
	return *pkitest.Sign(t, nil, x509.Certificate{DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true}).TLS()
}
