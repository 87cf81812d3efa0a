package imagepolicy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
)

// server allows images that begin with "ok", and gives a reason against those that begin with "no".
func server(t *testing.T, asked *atomic.Int32) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review imagepolicyv1alpha1.ImageReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Kind != "ImageReview" || review.Spec.Namespace != "dev" || len(review.Spec.Annotations) > 1 {
			t.Errorf("%v: %+v", err, review)
		}
		review.Status.Allowed = true
		for _, c := range review.Spec.Containers {
			switch {
			case c.Image == "broken":
				w.WriteHeader(http.StatusTeapot)
				return
			case strings.HasPrefix(c.Image, "no"):
				review.Status = imagepolicyv1alpha1.ImageReviewStatus{Reason: c.Image}
			case !strings.HasPrefix(c.Image, "ok"):
				review.Status.Allowed = false
			}
		}
		review.Status.AuditAnnotations = map[string]string{"seen": "yes"}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, url, more string) *Webhook {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + url + `"}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := New(fmt.Appendf(nil, "imagePolicy: {kubeConfigFile: %q, retryBackoff: 1%s}", file, more), (&net.Dialer{}).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestImages(t *testing.T) {
	const refused = `pods "p" is forbidden: `
	tests := []struct {
		name, image, more, want string
		audit                   string // failed-open, and the annotations of the webhook
	}{
		{"an image that is allowed", "ok:1", "", "", " yes"},
		{"one that is not", "bad", "", refused + "one or more images rejected by webhook backend", " yes"},
		{"one that is not, and why", "not-yours", "", refused + "image policy webhook backend denied one or more images: not-yours", " yes"},
		{"the webhook fails", "broken", "", refused + `the server responded with the status code 418 but did not return more information`, " "},
		{"the webhook fails, and the default is to allow", "broken", ", defaultAllow: true", "", "true "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int32
			hook := open(t, server(t, &asked).URL, test.more)
			w := admissiontest.New(t, func(*admissiontest.World) []any { return []any{hook} })
			for i := range 2 {
				_, err := w.Create("{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {a: b, x.image-policy.k8s.io/c: d}}, spec: {containers: [{name: c, image: " + test.image + "}]}}")
				got := ""
				if err != nil {
					got = err.Error()
				}
				if i == 1 && test.want == "" {
					continue // the pod exists already
				}
				if got != test.want {
					t.Errorf("%s\nwant\n%s", got, test.want)
				}
				if audit := w.Annotation(auditPrefix+"failed-open") + " " + w.Annotation(auditPrefix+"seen"); audit != test.audit {
					t.Errorf("the audit log has %q, want %q", audit, test.audit)
				}
			}
			if n := asked.Load(); test.image != "broken" && n != 1 {
				t.Errorf("asked %d times: answers are remembered", n)
			}
		})
	}
}

func TestConfigurations(t *testing.T) {
	for text, want := range map[string]string{
		"imagePolicy: {}": "5m0s 30s 500ms",
		"imagePolicy: {allowTTL: 60, denyTTL: -1, retryBackoff: 20}": "1m0s 0s 20ms",
		`{"imagePolicy": {"allowTTL": 1801}}`:                        "valid value is between 1s and 30m0s, got 30m1s",
		"imagePolicy: {retryBackoff: -2}":                            "valid value is between 1ns and 5m0s, got -2ms",
	} {
		c, err := readConfig([]byte(text))
		got := strings.Join([]string{c.AllowTTL.String(), c.DenyTTL.String(), c.RetryBackoff.String()}, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if _, err := New(nil, nil); err == nil || err.Error() != "no config specified" {
		t.Error(err)
	}
}
