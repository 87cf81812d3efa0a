package extension

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func unmarshal(text string, into any) error { return json.Unmarshal([]byte(text), into) }

// saying adds headers to requests.
func saying(pairs ...string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
			return next.RoundTrip(r)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// testRotation gives the front proxy a certificate of another CA. anykind accepts it without a
// restart.
func testRotation(t *testing.T, c *cluster, _ *extension) {
	next := certify(t, c.t.TempDir(), nil, "front")
	proxy := certify(t, c.t.TempDir(), next, "front-proxy-client")
	old, err := os.ReadFile(c.front.certFile)
	must(t, err)
	// As in every rotation, both CAs are valid until the last client has the new certificate.
	must(t, os.WriteFile(c.front.certFile, append(old, next.CertPEM()...), 0o600))
	for i, arg := range c.command {
		switch arg {
		case "--proxy-client-cert-file":
			c.command[i+1] = proxy.certFile
		case "--proxy-client-key-file":
			c.command[i+1] = proxy.keyFile
		}
	}
	c.front = &pair{Pair: next.Pair, certFile: c.front.certFile, keyFile: next.keyFile}
	must(t, c.restart())
	c.served(t)
	eventually(t, "the new front proxy is believed", func(ctx context.Context) error {
		_, err := crontabs(t, c.admin, "default").Get(ctx, "nightly", getOptions)
		return err
	})
}

// testRestart restarts kube-apiserver during a watch through it: the watch ends, and another one
// resumes at the last event.
func testRestart(t *testing.T, c *cluster, e *extension) {
	mine := crontabs(t, c.admin, "default")
	list, err := mine.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	w, err := mine.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	must(t, err)
	defer w.Stop()
	must(t, c.server.Process.Kill())
	c.server.Wait()
	for range w.ResultChan() { // it ends
	}
	// anykind continues to authenticate its own users, and those in its cache for a while.
	_, err = crontabs(t, e.admin, "default").Create(t.Context(), crontab("meanwhile"), metav1.CreateOptions{})
	must(t, err)
	must(t, c.start())
	c.served(t)
	eventually(t, "the watch goes on", func(ctx context.Context) error {
		again, err := mine.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return err
		}
		defer again.Stop()
		event := <-again.ResultChan()
		if o, ok := event.Object.(metav1.Object); !ok || o.GetName() != "meanwhile" {
			return fmt.Errorf("%v", event)
		}
		return nil
	})
}

// testReturn stops anykind: its paths are unavailable, and all others work. Its data are there after a
// restart.
func testReturn(t *testing.T, c *cluster, e *extension) {
	address := "0.0.0.0:" + portOf(e.server.Address())
	must(t, e.server.Stop())
	eventually(t, "the API server is unavailable", func(ctx context.Context) error {
		if code, body := status(t, c.admin, "/apis/stable.example.com/v1/crontabs"); code != 503 {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	if code, body := status(t, c.admin, "/api/v1/namespaces"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	must(t, e.start(address))
	c.served(t)
	eventually(t, "it has what it had", func(ctx context.Context) error {
		_, err := crontabs(t, c.admin, "default").Get(ctx, "nightly", getOptions)
		return err
	})
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
