package egress

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var serves = regexp.MustCompile(`Starting to serve on (\S+)`)

// startProxy starts kubectl proxy with additional flags, and returns its address, and a function that gets
// a path there.
func startProxy(t *testing.T, a *api, flags ...string) (string, func(path string, header ...string) (int, string)) {
	t.Helper()
	path, err := kubectl()
	must(t, err)
	r, err := start(context.WithoutCancel(t.Context()), path, append([]string{"--kubeconfig", a.kubeconfig, "proxy"}, flags...)...)
	must(t, err)
	t.Cleanup(r.kill)
	var at string
	eventually(t, "kubectl proxy serves", func() error {
		m := serves.FindStringSubmatch(r.String())
		if m == nil {
			return fmt.Errorf("it says %q", r)
		}
		at = m[1]
		return nil
	})
	client := &http.Client{}
	if strings.HasPrefix(at, "/") { // a Unix socket
		client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", at)
		}}
	}
	t.Cleanup(client.CloseIdleConnections)
	return at, func(path string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+strings.TrimPrefix(at, "/")+path, nil)
		if strings.HasPrefix(at, "/") {
			r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		}
		must(t, err)
		r.Header.Set("User-Agent", "curl/8.0") // it accepts JSON only
		for i := 0; i < len(header); i += 2 {
			if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				r.Host = header[i+1]
			}
		}
		answer, err := client.Do(r)
		must(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		must(t, err)
		return answer.StatusCode, string(body)
	}
}

// The test uses kubectl proxy with each of its flags.
func TestKubectlProxy(t *testing.T) {
	t.Parallel()
	a := startAPI(t)
	www := t.TempDir()
	must(t, os.WriteFile(filepath.Join(www, "hello.txt"), []byte("hello"), 0o644))
	type request struct {
		path, want string
		code       int
		header     []string
	}
	const versions = `"kind": "APIVersions"`
	for _, tt := range []struct {
		name     string
		flags    []string
		requests []request
	}{
		{"as the page has it", []string{"--port=0"}, []request{
			{"/api/", versions, 200, nil}, {"/api/v1/namespaces/default/pods", `"kind": "PodList"`, 200, nil},
			{"/version", `"major": "1"`, 200, nil}, {"/healthz", "ok", 200, nil}, {"/nothing", "", 404, nil},
			{"/api/v1/namespaces/default/pods/p/exec", "", 403, nil},
			{"/api/", "", 403, []string{"Host", "elsewhere.example.com"}},
		}},
		{"accept-paths", []string{"--port=0", "--accept-paths=^/api/v1/namespaces/default/"}, []request{
			{"/api/v1/namespaces/default/pods", `"kind": "PodList"`, 200, nil}, {"/api/", "", 403, nil},
		}},
		{"reject-paths", []string{"--port=0", "--reject-paths=^/api/v1/.*/secrets"}, []request{
			{"/api/v1/namespaces/default/secrets", "", 403, nil}, {"/api/", versions, 200, nil},
		}},
		{"reject-methods", []string{"--port=0", "--reject-methods=GET"}, []request{{"/api/", "", 403, nil}}},
		{"accept-hosts", []string{"--port=0", "--accept-hosts=^elsewhere\\.example\\.com$"}, []request{
			{"/api/", versions, 200, []string{"Host", "elsewhere.example.com"}}, {"/api/", "", 403, nil},
		}},
		{"disable-filter", []string{"--port=0", "--disable-filter"}, []request{{"/api/", versions, 200, []string{"Host", "elsewhere.example.com"}}}},
		{"api-prefix and www", []string{"--port=0", "--api-prefix=/k8s-api", "--www=" + www, "--www-prefix=/files/"}, []request{
			{"/k8s-api/api/", versions, 200, nil}, {"/files/hello.txt", "hello", 200, nil}, {"/api/", "", 404, nil},
		}},
		{"unix-socket", []string{"--unix-socket=" + filepath.Join(www, "s")}, []request{{"/api/", versions, 200, nil}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, get := startProxy(t, a, tt.flags...)
			for _, r := range tt.requests {
				if code, body := get(r.path, r.header...); code != r.code || !strings.Contains(body, r.want) {
					t.Errorf("%s: %d %s, want %d %s", r.path, code, body, r.code, r.want)
				}
			}
		})
	}
}

// A watch through kubectl proxy gets events without delay.
func TestWatchThroughKubectlProxy(t *testing.T) {
	t.Parallel()
	a := startAPI(t)
	at, _ := startProxy(t, a, "--port=0")
	answer, err := http.Get("http://" + at + "/api/v1/namespaces/default/configmaps?watch=true&labelSelector=watched")
	must(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 3 {
		name := fmt.Sprint("watched-", i)
		a.apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default, labels: {watched: 'yes'}}", name))
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		must(t, json.Unmarshal(lines.Bytes(), &event))
		if event.Type != "ADDED" || event.Object.Metadata.Name != name {
			t.Errorf("%+v, want ADDED %s", event, name)
		}
	}
}

// A browser explores the API through kubectl proxy, and a page that kubectl proxy serves uses it.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no Chromium (Debian has it: chromium-headless-shell)")
	}
	a := startAPI(t)
	a.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seen-in-a-browser, namespace: default}")
	www := t.TempDir()
	must(t, os.WriteFile(filepath.Join(www, "index.html"), []byte(`<!doctype html><title>names</title><p id="names"></p><script>
const r = new XMLHttpRequest();
r.open("GET", "/api/v1/namespaces/default/configmaps", false);
r.send();
document.getElementById("names").textContent = JSON.parse(r.responseText).items.map(o => "a page sees " + o.metadata.name).join();
</script>`), 0o644))
	at, _ := startProxy(t, a, "--port=0", "--www="+www)
	for path, want := range map[string]string{
		"/api/":                           "APIVersions",
		"/api/v1/namespaces/default/pods": "PodList",
		"/static/":                        "a page sees seen-in-a-browser",
		"/":                               "/api/v1",
	} {
		t.Run(path, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
			defer cancel()
			c := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir="+t.TempDir(), "--dump-dom", "http://"+at+path)
			said, err := c.Output()
			if err != nil || !strings.Contains(string(said), want) {
				t.Errorf("%v\n%s\nwant %s", err, said, want)
			}
		})
	}
}
