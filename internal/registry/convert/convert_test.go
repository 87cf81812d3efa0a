package convert_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry/convert"
)

// hook is a conversion webhook for crontabs: v1beta1 has hostPort, v1 has host and port.
type hook struct {
	*httptest.Server
	calls   atomic.Int64
	objects atomic.Int64
}

type review struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Request    *request       `json:"request,omitempty"`
	Response   map[string]any `json:"response,omitempty"`
}

type request struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

// start runs a webhook. change alters its correct response.
func start(t testing.TB, change func(r *review)) *hook {
	h := &hook{}
	h.Server = serve(t, func(w http.ResponseWriter, r *http.Request) {
		var in review
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		h.calls.Add(1)
		h.objects.Add(int64(len(in.Request.Objects)))
		out := answer(in)
		if change != nil {
			change(&out)
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	return h
}

func serve(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func answer(in review) review {
	var converted []any
	for _, o := range in.Request.Objects {
		o["apiVersion"] = in.Request.DesiredAPIVersion
		if hostPort, ok := o["hostPort"].(string); ok {
			o["host"], o["port"], _ = strings.Cut(hostPort, ":")
			delete(o, "hostPort")
		} else {
			o["hostPort"] = fmt.Sprint(o["host"], ":", o["port"])
			delete(o, "host")
			delete(o, "port")
		}
		converted = append(converted, o)
	}
	return review{APIVersion: in.APIVersion, Kind: in.Kind, Response: map[string]any{
		"uid": in.Request.UID, "convertedObjects": converted, "result": map[string]any{"status": "Success"},
	}}
}

func ca(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// converter returns a Webhook that calls a server.
func converter(t testing.TB, s *httptest.Server) *convert.Webhook {
	client := webhook.New(webhook.Options{})
	t.Cleanup(client.Close)
	return &convert.Webhook{
		Poster: client, Group: "example.com", ReviewVersions: []string{"v1", "v1beta1"},
		Config: webhook.Config{URL: s.URL + "/convert", CABundle: ca(s)},
	}
}

// crontab returns an object in v1beta1.
func crontab(name string) object.Tree {
	return object.Tree{
		"apiVersion": "example.com/v1beta1", "kind": "CronTab", "hostPort": "localhost:1234",
		"metadata": object.Tree{
			"name": name, "namespace": "ns", "uid": "u-" + name, "generation": int64(1) << 60,
			"labels": object.Tree{"a": "b"}, "finalizers": []any{"example.com/f"},
		},
	}
}

// The example of Kubernetes' documentation: hostPort is split into host and port.
func TestHostPort(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		s := start(t, nil)
		w := converter(t, s.Server)
		w.ReviewVersions = []string{"v9", version}
		out, err := w.Convert(t.Context(), []map[string]any{crontab("a")}, "v1")
		if err != nil {
			t.Fatal(err)
		}
		want := crontab("a")
		want["apiVersion"], want["host"], want["port"] = "example.com/v1", "localhost", "1234"
		delete(want, "hostPort")
		if !object.Equal(out[0], want) {
			t.Errorf("got %v\nwant %v", out[0], want)
		}
	}
}

// Many objects take few calls and keep their order. Objects that need no conversion are not sent.
func TestBatches(t *testing.T) {
	s := start(t, nil)
	w := converter(t, s.Server)
	var objects []map[string]any
	for i := range 600 {
		o := crontab(fmt.Sprint(i))
		if i%2 == 1 {
			o["apiVersion"] = "example.com/v1"
		}
		objects = append(objects, o)
	}
	objects = append(objects, object.Tree{"apiVersion": "example.com/v1beta1", "kind": "CronTab", "metadata": object.Tree{}})
	out, err := w.Convert(t.Context(), objects, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if s.calls.Load() != 2 || s.objects.Load() != 300 {
		t.Errorf("%d objects were sent in %d calls", s.objects.Load(), s.calls.Load())
	}
	for i, o := range out[:600] {
		if object.Name(o) != fmt.Sprint(i) || object.APIVersion(o) != "example.com/v1" {
			t.Fatalf("object %d is %s %s", i, object.APIVersion(o), object.Name(o))
		}
	}
}

// A webhook may change labels and annotations. Other metadata in its response is ignored.
func TestMetadata(t *testing.T) {
	s := start(t, func(r *review) {
		m := r.Response["convertedObjects"].([]any)[0].(map[string]any)["metadata"].(map[string]any)
		m["labels"] = map[string]any{"c": "d"}
		m["annotations"] = map[string]any{"e": "f"}
		m["generation"] = 7
		m["ownerReferences"] = []any{"nonsense"}
		delete(m, "finalizers")
	})
	out, err := converter(t, s.Server).Convert(t.Context(), []map[string]any{crontab("a")}, "v1")
	if err != nil {
		t.Fatal(err)
	}
	want := object.Metadata(crontab("a"))
	want["labels"], want["annotations"] = object.Tree{"c": "d"}, object.Tree{"e": "f"}
	if !object.Equal(out[0]["metadata"], want) {
		t.Errorf("got %v\nwant %v", out[0]["metadata"], want)
	}
}

// Each invalid response is an error in Kubernetes' words.
func TestHostileAnswers(t *testing.T) {
	const of = "conversion webhook for example.com/v1beta1, Kind=CronTab "
	objects := func(r *review) []any { return r.Response["convertedObjects"].([]any) }
	first := func(r *review) map[string]any { return objects(r)[0].(map[string]any) }
	metadata := func(r *review) map[string]any { return first(r)["metadata"].(map[string]any) }
	for _, tt := range []struct {
		name   string
		n      int
		change func(r *review)
		want   string
	}{
		{"wrong uid", 1, func(r *review) { r.Response["uid"] = "other" }, of + `failed: expected response.uid="`},
		{"no uid", 1, func(r *review) { delete(r.Response, "uid") }, of + `failed: expected response.uid="`},
		{"no response", 1, func(r *review) { r.Response = nil }, of + "failed: no response provided"},
		{"another kind of answer", 1, func(r *review) { r.Kind = "AdmissionReview" },
			of + "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=AdmissionReview"},
		{"another version of it", 1, func(r *review) { r.APIVersion = "apiextensions.k8s.io/v1beta1" },
			of + "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1beta1, Kind=ConversionReview"},
		{"failure with words", 1, func(r *review) {
			r.Response["result"] = map[string]any{"status": "Failure", "message": "hostPort could not be parsed"}
		}, of + "failed: hostPort could not be parsed"},
		{"failure without", 1, func(r *review) { r.Response["result"] = map[string]any{"status": "Failure"} },
			of + "failed: response.result.status was 'Failure', not 'Success'"},
		{"no result", 1, func(r *review) { delete(r.Response, "result") }, of + "failed: response.result.status was '', not 'Success'"},
		{"missing object", 2, func(r *review) { r.Response["convertedObjects"] = objects(r)[:1] }, of + "returned 1 objects, expected 2"},
		{"one too many", 1, func(r *review) { r.Response["convertedObjects"] = append(objects(r), first(r)) }, of + "returned 2 objects, expected 1"},
		{"no objects", 1, func(r *review) { r.Response["convertedObjects"] = nil }, of + "returned 0 objects, expected 1"},
		{"reordered", 2, func(r *review) { o := objects(r); o[0], o[1] = o[1], o[0] },
			of + "returned invalid converted object at index 0: must have the same name: 0 != 1"},
		{"not converted", 1, func(r *review) { first(r)["apiVersion"] = "example.com/v1beta1" },
			of + "returned invalid object at index 0: invalid groupVersion (expected example.com/v1, received example.com/v1beta1)"},
		{"another kind", 1, func(r *review) { first(r)["kind"] = "Secret" },
			of + "returned invalid object at index 0: invalid kind (expected CronTab, received Secret)"},
		{"no kind", 1, func(r *review) { delete(first(r), "kind") }, of + "returned invalid object: Object 'Kind' is missing"},
		{"null", 1, func(r *review) { objects(r)[0] = nil }, of + "returned invalid object: Object 'Kind' is missing"},
		{"no object", 1, func(r *review) { objects(r)[0] = "x" }, of + "returned invalid object: json: cannot unmarshal string"},
		{"changed name", 1, func(r *review) { metadata(r)["name"] = "b" }, of + "returned invalid object: must have the same name: 0 != b"},
		{"changed namespace", 1, func(r *review) { metadata(r)["namespace"] = "kube-system" },
			of + "returned invalid object: must have the same namespace: ns != kube-system"},
		{"changed object uid", 1, func(r *review) { metadata(r)["uid"] = "u" }, of + "returned invalid object: must have the same UID: u-0 != u"},
		{"no metadata", 1, func(r *review) { delete(first(r), "metadata") }, of + "returned invalid object: must have the same name: 0 != "},
		{"labels of another type", 1, func(r *review) { metadata(r)["labels"] = []any{} },
			of + "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object"},
		{"a label of another type", 2, func(r *review) { metadata(r)["labels"] = map[string]any{"a": 1} },
			of + "returned invalid metadata in object at index 0: metadata.labels[a] must be a string, but is int64 in converted object"},
		{"a bad label", 1, func(r *review) { metadata(r)["labels"] = map[string]any{"a b": "c"} },
			of + `returned invalid metadata: metadata.labels: Invalid value: "a b": `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, tt.change)
			var in []map[string]any
			for i := range tt.n {
				in = append(in, crontab(fmt.Sprint(i)))
			}
			out, err := converter(t, s.Server).Convert(t.Context(), in, "v1")
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || out != nil {
				t.Errorf("got  %v, %v\nwant %v", out, err, tt.want)
			}
		})
	}
}

// "Webhook reply: capped; redirects never followed", "CVE-2020-8561 webhook redirects used as a probe:
// not followed, bodies never logged": a webhook cannot make the server read or wait without end, or
// connect to another address. Errors do not show the response.
func TestHostileServers(t *testing.T) {
	const secret = "confidential"
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	for _, tt := range []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "the webhook's response is larger than"},
		{"announced to be huge", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000000000")
			w.WriteHeader(http.StatusOK)
		}, "the webhook's response is larger than"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "the server responded with the status code 307"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusInternalServerError) },
			`an error on the server ("unknown") has prevented the request from succeeding`},
		{"not found", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusNotFound) },
			"the server could not find the requested resource"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<"+secret) }, "is not a ConversionReview"},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, "is not a ConversionReview"},
		{"hanging up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := converter(t, serve(t, tt.handle)).Convert(t.Context(), []map[string]any{crontab("a")}, "v1")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// The deadline of the caller ends the call of a slow webhook.
func TestTrickle(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"nothing comes": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"a blank now and then": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
			}
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := converter(t, serve(t, handle)).Convert(ctx, []map[string]any{crontab("a")}, "v1")
		cancel()
		if err == nil || !strings.Contains(err.Error(), "context deadline exceeded") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The server calls only webhooks that it trusts.
func TestTrust(t *testing.T) {
	s := start(t, nil)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, tt := range []struct{ name, url, bundle, want string }{
		{"no authority", s.URL, "", "certificate signed by unknown authority"},
		{"white space is none", s.URL, " \n", "certificate signed by unknown authority"},
		{"no certificate", s.URL, "x", "unable to load root certificates"},
		{"plain http", plain.URL, string(ca(s.Server)), `the URL of a webhook is https, not "http"`},
		{"plain http behind https", strings.Replace(plain.URL, "http:", "https:", 1), string(ca(s.Server)), "server gave HTTP response to HTTPS client"},
		{"another name", strings.Replace(s.URL, "127.0.0.1", "localhost", 1), string(ca(s.Server)), "certificate is valid for"},
	} {
		w := converter(t, s.Server)
		w.Config = webhook.Config{URL: tt.url, CABundle: []byte(tt.bundle)}
		_, err := w.Convert(t.Context(), []map[string]any{crontab("a")}, "v1")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if n := s.calls.Load(); n != 0 {
		t.Errorf("%d calls came through", n)
	}
}

// An error of the webhook does not become the status of the response.
func TestForeignStatus(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	_, err := converter(t, s).Convert(t.Context(), []map[string]any{crontab("a")}, "v1")
	var own apierrors.APIStatus
	if err == nil || errors.As(err, &own) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkConvert(b *testing.B) {
	for _, n := range []int{1, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := converter(b, start(b, nil).Server)
			for b.Loop() {
				in := make([]map[string]any, n)
				for i := range in {
					in[i] = crontab(fmt.Sprint(i))
				}
				if _, err := w.Convert(b.Context(), in, "v1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
