package app

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// The failure policy applies to a webhook that cannot be called. It does not apply to a denial, or
// to a patch that makes the object invalid.
func TestWebhookFailureModes(t *testing.T) {
	t.Parallel() // it waits for timeouts
	const fails = `Internal error occurred: failed calling webhook "hook.example.com": `
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "https://" + closed.Addr().String()
	closed.Close()
	h := startAdmitting(t, Options{})
	encoded := func(patch string) string { return base64.StdEncoding.EncodeToString([]byte(patch)) }
	const both, mutating, validating = "Mutating Validating", "Mutating", "Validating"
	tests := []struct {
		name, kinds string
		url         string // empty for the URL of the server
		ca          []byte // empty for the CA of the server
		answer      http.HandlerFunc
		more        string // further fields of the webhook
		want        string
		anyway      bool // it fails whatever the failure policy
	}{
		{name: "it says yes", kinds: both, answer: saying(nil)},
		{name: "it says no", kinds: both, answer: saying(map[string]any{"allowed": false, "status": map[string]any{"message": "no", "code": 418}}),
			want: `admission webhook "hook.example.com" denied the request: no`, anyway: true},
		{name: "it times out", kinds: both, more: `,"timeoutSeconds":1`, answer: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // to detect the end of the connection
			<-r.Context().Done()
		},
			want: fails + `failed to call webhook: Post "https://`},
		{name: "connection refused", kinds: both, url: refusing, want: fails + "failed to call webhook: Post \"" + refusing + "/?timeout=10s\": dial tcp " + closed.Addr().String() + ": connect: connection refused"},
		{name: "another certificate", kinds: both, ca: h.app.CA(), want: fails + "failed to call webhook: Post \"https://"},
		{name: "an error", kinds: both, answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusServiceUnavailable) },
			want: fails + "failed to call webhook: the server is currently unable to handle the request"},
		{name: "too much", kinds: both, answer: saying(map[string]any{"warnings": []string{strings.Repeat("w", 9<<20)}}),
			want: fails + "failed to call webhook: the webhook's response is larger than 8388608 bytes"},
		{name: "no JSON", kinds: both, answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") },
			want: fails + "failed to call webhook: couldn't get version/kind; json parse error: "},
		{name: "another uid", kinds: both, answer: saying(map[string]any{"uid": "other"}), want: fails + "received invalid webhook response: expected response.uid="},
		{name: "another kind of review", kinds: both, answer: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{}}`)
		}, want: fails + `failed to call webhook: the answer is "apiextensions.k8s.io/v1, Kind=ConversionReview"`},
		{name: "a patch that is none", kinds: mutating, answer: patching("{"), want: fails + "received undecodable patch in webhook response: "},
		{name: "a patch of a type that is none", kinds: mutating, answer: saying(map[string]any{"patch": encoded(`[{"op":"remove","path":"/data"}]`), "patchType": "MergePatch"}),
			want: fails + `unsupported patch type "MergePatch"`},
		{name: "a patch that does not apply", kinds: mutating, answer: patching(`[{"op":"remove","path":"/none"}]`), want: "Internal error occurred: ", anyway: true},
		{name: "a patch that makes no ConfigMap", kinds: mutating, answer: patching(`[{"op":"replace","path":"/data","value":4}]`),
			want: "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string", anyway: true},
		{name: "a patch that makes a wrong ConfigMap", kinds: mutating, answer: patching(`[{"op":"add","path":"/data/a~1b","value":"c"}]`),
			want: `ConfigMap "a" is invalid: data[a/b]: Invalid value: "a/b"`, anyway: true},
		{name: "a patch of who only looks", kinds: validating, answer: patching(`[{"op":"remove","path":"/data"}]`), want: fails + "received invalid webhook response: validating webhook may not return response.patch"},
	}
	for _, test := range tests {
		for kind := range strings.FieldsSeq(test.kinds) {
			for _, policy := range []string{"Fail", "Ignore"} {
				t.Run(test.name+"/"+kind+"/"+policy, func(t *testing.T) {
					h.t = t
					h.says(saying(nil))
					if test.answer != nil {
						h.says(test.answer)
					}
					url, ca := test.url, h.ca()
					if url == "" {
						url = h.hook.URL
					}
					if test.ca != nil {
						ca = test.ca
					}
					folder := map[string]string{mutating: mutatingWebhooks, validating: validatingWebhooks}[kind]
					h.must("POST", folder, h.configuration(kind, url, ca, fmt.Sprintf(`,"failurePolicy":%q%s`, policy, test.more)), 201)
					defer h.must("DELETE", folder+"/hook", "", 200)
					// A dry run, so that the next request can create the object.
					code, answer, _ := h.do("POST", inConfigMaps+"?dryRun=All", configMap("a"))
					message := fmt.Sprint(answer["message"])
					switch failed := test.want != "" && (policy == "Fail" || test.anyway); {
					case failed && (code < 400 || !strings.HasPrefix(message, test.want)):
						t.Errorf("%d %s, want %s", code, message, test.want)
					case !failed && code != 201:
						t.Errorf("%d %s, want 201", code, message)
					}
				})
			}
		}
	}
}

// A webhook with side effects is not called for a dry run, and the request fails.
func TestWebhookDryRun(t *testing.T) {
	h := startAdmitting(t, Options{})
	for kind, folder := range map[string]string{"Mutating": mutatingWebhooks, "Validating": validatingWebhooks} {
		for _, effects := range []string{"None", "NoneOnDryRun"} {
			before := h.calls.Load()
			h.must("POST", folder, strings.Replace(h.configuration(kind, h.hook.URL, h.ca(), ""), `"sideEffects":"None"`, fmt.Sprintf(`"sideEffects":%q`, effects), 1), 201)
			h.must("POST", inConfigMaps+"?dryRun=All", configMap("a"), 201)
			if h.calls.Load() == before {
				t.Errorf("%s, %s: it was not asked", kind, effects)
			}
			h.must("DELETE", folder+"/hook", "", 200)
		}
		// v1 rejects other values, but objects written before v1 may have them.
		answer, _ := h.must("POST", folder, strings.Replace(h.configuration(kind, h.hook.URL, h.ca(), ""), `"sideEffects":"None"`, `"sideEffects":"Some"`, 1), 422)
		if want := `Unsupported value: "Some": supported values: "None", "NoneOnDryRun"`; !strings.Contains(fmt.Sprint(answer["message"]), want) {
			t.Errorf("%v, want %s", answer["message"], want)
		}
		h.must("POST", folder, h.configuration(kind, h.hook.URL, h.ca(), ""), 201)
		h.rewrite(strings.ToLower(kind)+"webhookconfigurations", "None", "Some")
		before := h.calls.Load()
		answer, _ = h.must("POST", inConfigMaps+"?dryRun=All", configMap("a"), 400)
		if want := `admission webhook "hook.example.com" does not support dry run`; answer["message"] != want {
			t.Errorf("%v, want %s", answer["message"], want)
		}
		if h.calls.Load() != before {
			t.Errorf("%s: it was asked", kind)
		}
		h.must("DELETE", folder+"/hook", "", 200)
	}
}

// rewrite modifies a stored configuration, as a server of an earlier version could have written it.
func (h *admitting) rewrite(plural, old, now string) {
	h.t.Helper()
	key := resource.BuiltInPrefix(plural) + "hook"
	record, err := h.app.backend.Get(h.t.Context(), key, kv.Latest)
	if err != nil {
		h.t.Fatal(err)
	}
	value := bytes.Replace(record.Value, []byte(old), []byte(now), 1)
	if bytes.Equal(value, record.Value) {
		h.t.Fatalf("%s is not in %q", old, record.Value)
	}
	if _, err := h.app.backend.Commit(h.t.Context(), kv.Write{Key: key, Value: value, Expect: record.Revision}); err != nil {
		h.t.Fatal(err)
	}
}
