package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/kubeconfig"
)

// started returns a console for an API server that answers with the headers that it gets, and a client for it.
func started(t *testing.T, api http.HandlerFunc) (*Local, string) {
	t.Helper()
	behind := httptest.NewServer(api)
	t.Cleanup(behind.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"current-context":"a/b","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":"of-the-user"}}],
		"contexts":[{"name":"a/b","context":{"cluster":"c","user":"u","namespace":"n"}},{"name":"broken","context":{"cluster":"none","user":"u"}}]}`, behind.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	local := NewLocal(server.Listener.Addr(), kubeconfig.Options{Files: []string{file}})
	server.Config.Handler = local
	server.Start()
	t.Cleanup(server.Close)
	return local, server.URL
}

// enter returns the token of a session.
func enter(t *testing.T, local *Local, url string) string {
	t.Helper()
	secret := local.Link()[strings.Index(local.Link(), "=")+1:]
	code, body := send(t, http.MethodPost, url+"/console/session", `{"secret":"`+secret+`"}`, map[string]string{"Content-Type": "application/json"})
	var got struct{ Token string }
	if err := json.Unmarshal([]byte(body), &got); code != http.StatusOK || err != nil || got.Token == "" {
		t.Fatalf("%d %s", code, body)
	}
	return got.Token
}

func send(t *testing.T, method, url, body string, headers map[string]string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	a, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(data)
}

// Requests without the token, with another host, or from another origin do not reach the API server.
func TestAttacks(t *testing.T) {
	local, url := started(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "reached with %s", r.Header.Get("Authorization"))
	})
	token := enter(t, local, url)
	bearer := "Bearer " + token
	const path = "/contexts/a%2Fb/api/v1/secrets"
	socket := func(token string) string { return protocolToken + base64.RawURLEncoding.EncodeToString([]byte(token)) }
	for _, c := range []struct {
		name, method, path string
		headers            map[string]string
		code               int
		says               string
	}{
		{"a page", http.MethodGet, path, map[string]string{"Authorization": bearer, "Origin": url}, 200, "reached with Bearer of-the-user"},
		{"a program", http.MethodGet, path, map[string]string{"Authorization": bearer}, 200, "reached"},
		{"a page by another name", http.MethodGet, path, map[string]string{"Authorization": bearer, "Host": strings.Replace(url[7:], "127.0.0.1", "localhost", 1)}, 200, "reached"},
		{"a socket", http.MethodGet, path, map[string]string{"Sec-WebSocket-Protocol": "v1, " + socket(token)}, 200, "reached"},
		{"no token", http.MethodGet, path, nil, 401, "open the link"},
		{"another token", http.MethodGet, path, map[string]string{"Authorization": "Bearer x" + token}, 401, "open the link"},
		{"the token of the API server", http.MethodGet, path, map[string]string{"Authorization": "Bearer of-the-user"}, 401, "open the link"},
		{"a socket with another token", http.MethodGet, path, map[string]string{"Sec-WebSocket-Protocol": socket("x")}, 401, "open the link"},
		{"a socket with damaged base64", http.MethodGet, path, map[string]string{"Sec-WebSocket-Protocol": protocolToken + "%%"}, 401, "open the link"},
		{"DNS rebinding", http.MethodGet, path, map[string]string{"Authorization": bearer, "Host": "attacker.example.com"}, 403, "does not come from a page"},
		{"DNS rebinding of the pages", http.MethodGet, "/console/", map[string]string{"Host": "attacker.example.com:80"}, 403, "does not come from a page"},
		{"another port", http.MethodGet, path, map[string]string{"Authorization": bearer, "Host": "127.0.0.1:1"}, 403, "does not come from a page"},
		{"another origin", http.MethodPost, path, map[string]string{"Authorization": bearer, "Origin": "https://attacker.example.com"}, 403, "does not come from a page"},
		{"an opaque origin", http.MethodPost, path, map[string]string{"Authorization": bearer, "Origin": "null"}, 403, "does not come from a page"},
		{"a session from another origin", http.MethodPost, "/console/session", map[string]string{"Origin": "http://127.0.0.1:1", "Content-Type": "application/json"}, 403, "does not come from a page"},
		{"a session by a form", http.MethodPost, "/console/session", map[string]string{"Content-Type": "text/plain"}, 400, "application/json"},
		{"the configuration without a token", http.MethodGet, "/console/config", nil, 401, "open the link"},
		{"a link without a token", http.MethodPost, "/console/link", nil, 401, "open the link"},
		{"no context", http.MethodGet, "/api/v1/secrets", map[string]string{"Authorization": bearer}, 404, "below /contexts/NAME/"},
		{"an unknown context", http.MethodGet, "/contexts/x/api", map[string]string{"Authorization": bearer}, 502, `no context \"x\"`},
		{"a context without a cluster", http.MethodGet, "/contexts/broken/api", map[string]string{"Authorization": bearer}, 502, `no cluster \"none\"`},
		{"another file", http.MethodGet, "/console/../../../etc/passwd", nil, 404, ""},
		{"a write to the pages", http.MethodPost, "/console/main.js", nil, 405, "GET or HEAD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := send(t, c.method, url+c.path, "", c.headers)
			if code != c.code || !strings.Contains(body, c.says) || c.code != 200 && strings.Contains(body, "reached") {
				t.Errorf("%d %s, want %d and %q", code, body, c.code, c.says)
			}
		})
	}
}

// The secret of a link is valid once. A session gives links for other browsers.
func TestLinkIsValidOnce(t *testing.T) {
	local, url := started(t, func(http.ResponseWriter, *http.Request) {})
	secret := strings.Split(local.Link(), "#secret=")[1]
	header := map[string]string{"Content-Type": "application/json"}
	for _, c := range []struct {
		secret string
		code   int
	}{{"x" + secret, 401}, {"", 401}, {secret, 200}, {secret, 401}} {
		if code, body := send(t, http.MethodPost, url+"/console/session", `{"secret":"`+c.secret+`"}`, header); code != c.code {
			t.Errorf("%q: %d %s, want %d", c.secret, code, body, c.code)
		}
	}
	token := enter(t, local, url)
	code, body := send(t, http.MethodPost, url+"/console/link", "", map[string]string{"Authorization": "Bearer " + token})
	_, again, ok := strings.Cut(strings.Trim(body, "{}\n\""), "#secret=")
	if code != http.StatusOK || !ok {
		t.Fatalf("%d %s", code, body)
	}
	if code, _ := send(t, http.MethodPost, url+"/console/session", `{"secret":"`+again+`"}`, header); code != http.StatusOK {
		t.Errorf("the link for another browser is answered with %d", code)
	}
}

// The API server gets the path as the page sent it, and none of the headers that are about the console. Its answer
// cannot set cookies, open itself to other origins, or run as a page.
func TestForwarded(t *testing.T) {
	var got *http.Request
	local, url := started(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<script>alert(1)</script>")
	})
	token := enter(t, local, url)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/contexts/a%2Fb/api/v1/namespaces/x%2Fy/z?watch=true&q=%20", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Cookie": {"c=d"}, "Referer": {url}, "Origin": {url}, "Accept": {"application/yaml"}}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if want := "/api/v1/namespaces/x%2Fy/z?watch=true&q=%20"; got.RequestURI != want || got.Method != http.MethodPut {
		t.Errorf("%s %s, want %s", got.Method, got.RequestURI, want)
	}
	for name, want := range map[string]string{"Authorization": "Bearer of-the-user", "Accept": "application/yaml", "Cookie": "", "Referer": "", "Origin": ""} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
	for name, want := range map[string]string{"Set-Cookie": "", "Access-Control-Allow-Origin": "", "Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"} {
		if v := a.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

// The files are at most 300 kB, compressed for clients that accept it, and kept by a browser while they are the same.
func TestPages(t *testing.T) {
	h := Pages()
	sum := 0
	for name := range read() {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Root+name, nil)
		r.Header.Set("Accept-Encoding", "br, gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		sum += w.Body.Len()
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		r.Header.Set("If-None-Match", w.Header().Get("Etag"))
		w = httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("%s again: %d", name, w.Code)
		}
	}
	if t.Logf("%d bytes", sum); sum > 300_000 {
		t.Errorf("all files are %d bytes, of 300,000", sum)
	}
}

// A module of the pages imports only names that the other module exports, and uses each of them: a browser finds the first
// fault at run time, and the second one never.
func TestModules(t *testing.T) {
	all := read()
	imports := regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./(\w+\.js)";$`)
	for name, p := range all {
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		if link := `<link rel="modulepreload" href="` + name + `">`; name != "main.js" && !strings.Contains(string(all["index.html"].raw), link) {
			t.Errorf("index.html lacks %s, so a browser finds it late", link)
		}
		source := string(p.raw)
		rest := imports.ReplaceAllString(source, "")
		if strings.Contains(rest, "\nimport ") {
			t.Errorf("%s: an import has another form", name)
		}
		for _, m := range imports.FindAllStringSubmatch(source, -1) {
			from := all[m[2]]
			if from == nil {
				t.Errorf("%s imports %s, which does not exist", name, m[2])
				continue
			}
			for word := range strings.SplitSeq(m[1], ",") {
				exported, local, renamed := strings.Cut(strings.TrimSpace(word), " as ")
				if !renamed {
					local = exported
				}
				if !regexp.MustCompile(`(?m)^export (async )?(function|const|class) ` + exported + `\b`).Match(from.raw) {
					t.Errorf("%s imports %s, which %s does not export", name, exported, m[2])
				}
				if !regexp.MustCompile(`\b` + local + `\b`).MatchString(rest) {
					t.Errorf("%s does not use %s of %s", name, local, m[2])
				}
			}
		}
	}
}
