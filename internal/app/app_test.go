package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authn/oidc"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/apiregistration"
	"github.com/anykind/anykind/internal/builtin/flowcontrol"
	"github.com/anykind/anykind/internal/builtin/scheduling"
	"github.com/anykind/anykind/internal/controller/legacytoken"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/boltkv"
)

func start(t testing.TB, o Options) *App {
	t.Helper()
	a, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func stop(t testing.TB, a *App) {
	t.Helper()
	if err := a.Stop(context.Background()); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// awaitStart waits until a new App has made its initial writes: a service account and a ConfigMap for
// each namespace, the status of its ServiceCIDR and of FlowSchemas, its endpoint, and its
// authentication settings.
func awaitStart(t testing.TB, a *App) {
	t.Helper()
	awaitStartAs(t, a, nil)
}

// awaitStartAs is awaitStart for an App with a RuntimeConfig.
func awaitStartAs(t testing.TB, a *App, config builtin.RuntimeConfig) {
	t.Helper()
	kinds := builtin.Definitions()
	if err := config.Apply(kinds, nil); err != nil {
		t.Fatal(err)
	}
	// Each group version has an APIService, except for those of apiregistration.k8s.io. The
	// definitions add one.
	services := 1
	for _, g := range resource.NewSet(kinds).Groups() {
		if g.Name != apiregistration.Group {
			services += len(g.Versions)
		}
	}
	missing := 2*len(builtin.SystemNamespaces()) + 3 +
		len(flowcontrol.Schemas()) + len(flowcontrol.Levels()) + len(scheduling.System) + services
	aggregated := resource.NewSet(kinds).Group("rbac.authorization.k8s.io") == nil
	begin := []string{
		"/registry/serviceaccounts/", "/registry/endpointslices/", "/registry/prioritylevelconfigurations/",
		"/registry/priorityclasses/", "/registry/apiregistration.k8s.io/",
	}
	missing++ // the ConfigMap of legacy token tracking
	for batch, err := range a.backend.Watch(t.Context(), "", 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if strings.HasSuffix(e.Key, "/"+legacytoken.TrackingConfigMap) {
				missing--
			}
			ready := strings.HasPrefix(e.Key, "/registry/servicecidrs/") && e.Prev != nil ||
				strings.HasPrefix(e.Key, "/registry/flowschemas/") && strings.Contains(string(e.Value), `"Found"`)
			if ready || strings.HasSuffix(e.Key, "/kube-root-ca.crt") || strings.HasSuffix(e.Key, "/extension-apiserver-authentication") || slices.ContainsFunc(begin, func(b string) bool { return strings.HasPrefix(e.Key, b) }) {
				missing--
			}
			// The role admin aggregates edit, and edit aggregates view, once the controller is done.
			if strings.HasSuffix(e.Key, "/clusterroles/admin") && strings.Contains(string(e.Value), "resourcequotas/status") {
				aggregated = true
			}
		}
		if missing == 0 && aggregated {
			return
		}
	}
}

// admin returns the certificate of the administrator.
func admin(t testing.TB, a *App) *tls.Certificate {
	t.Helper()
	return certificate(t, a.identity.kubeconfig.Certificate, a.identity.kubeconfig.Key)
}

// pairOf converts a key pair to a client certificate.
func pairOf(t *testing.T, p *pki.Pair) *tls.Certificate {
	t.Helper()
	return certificate(t, p.CertPEM(), p.KeyPEM())
}

func certificate(t testing.TB, cert, key []byte) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// client returns a client of an App; the certificate may be nil.
func client(t testing.TB, a *App, as *tls.Certificate) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CA())
	config := &tls.Config{RootCAs: roots}
	if as != nil {
		config.Certificates = []tls.Certificate{*as}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a request and returns the code and the body of the response.
func ask(t testing.TB, c *http.Client, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

// poll calls done until it returns true, and reports whether it did within a minute. The pauses between the calls grow to
// half a second: a page of metrics takes a tenth of one with the race detector.
func poll(t testing.TB, done func() bool) bool {
	t.Helper()
	pause := 10 * time.Millisecond
	for deadline := time.Now().Add(time.Minute); !done(); <-time.After(pause) {
		if t.Context().Err() != nil || time.Now().After(deadline) {
			return false
		}
		pause = min(2*pause, time.Second/2)
	}
	return true
}

// tree returns the contents of all files below a directory, by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = "directory"
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func authority(t *testing.T) *pki.PKI {
	t.Helper()
	p, err := pki.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A failed start has an error of one line, and leaves no changes.
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	one, other := authority(t).Admin(), authority(t).Admin()
	cert := write(t, in("tls/cert.pem"), one.CertPEM())
	key := write(t, in("tls/key.pem"), one.KeyPEM())
	otherKey := write(t, in("tls/other.pem"), other.KeyPEM())
	damaged := filepath.Dir(write(t, in("damaged/"+boltkv.FileName), []byte(strings.Repeat("not a store ", 1000))))
	kubeconfig := write(t, in("home/config"), []byte("kind: Config\nclusters: []\n"))

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	running := start(t, Options{Dir: in("running")})
	defer stop(t, running)
	awaitStart(t, running)

	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"port in use", Options{Dir: in("new"), Address: taken.Addr().String()}, "another program is using the port"},
		{"not an address", Options{Dir: in("new"), Address: "here"}, `cannot listen on "here": want host:port`},
		{"address of another machine", Options{Dir: in("new"), Address: "192.0.2.1:0"}, "this machine does not have the address"},
		{"directory in use", Options{Dir: in("running")}, in("running") + " is in use by another process"},
		{"damaged store", Options{Dir: damaged}, damaged + " is damaged at "},
		{"a file in place of the directory", Options{Dir: cert}, cert},
		{"key of another certificate", Options{Dir: in("new"), CertFile: cert, KeyFile: otherKey},
			"the private key in " + otherKey + " does not match the certificate in " + cert},
		{"certificate without key", Options{Dir: in("new"), CertFile: cert}, "want both a certificate file"},
		{"no such certificate", Options{Dir: in("new"), CertFile: in("none"), KeyFile: key}, in("none")},
		{"no authorities", Options{Dir: in("new"), ClientCAFile: key}, key + " has no PEM certificate"},
		{"no authorities of proxies", Options{Dir: in("new"), Authentication: Authentication{FrontProxy: FrontProxy{CAFile: key}}}, key + " has no PEM certificate"},
		{"no authentication configuration", Options{Dir: in("new"), Authentication: Authentication{ConfigFile: in("none")}},
			"failed to load authentication configuration from file \"" + in("none") + "\": open " + in("none")},
		{"an issuer by name only", Options{Dir: in("new"), Authentication: Authentication{OIDC: oidc.Flags{IssuerURL: "https://a", Given: true}}},
			"oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{"no such version of reviews", Options{Dir: in("new"), Authentication: Authentication{Webhook: TokenWebhook{ConfigFile: kubeconfig, Version: "v2"}}},
			`unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"`},
		{"no tokens", Options{Dir: in("new"), TokenFile: in("none")}, in("none")},
		{"no such admission plugin", Options{Dir: in("new"), Admission: Admission{Disable: []string{"Namespaces"}}},
			`disable-admission-plugins plugin "Namespaces" is unknown`},
		{"no such controller", Options{Dir: in("new"), Controllers: []string{"*", "-garbage"}},
			`"garbage" is not in the list of known controllers`},
		{"another kubeconfig", Options{Dir: in("new"), Kubeconfig: kubeconfig}, "anykind did not write " + kubeconfig},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := tree(t, dir)
			a, err := Start(t.Context(), test.o)
			if err == nil {
				stop(t, a)
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q\nwant %q", err, test.want)
			}
			if after := tree(t, dir); !maps.Equal(before, after) {
				t.Errorf("files were changed: %v", keys(before, after))
			}
		})
	}
}

// keys returns the paths that differ.
func keys(before, after map[string]string) (paths []string) {
	for path, data := range after {
		if was, ok := before[path]; !ok || was != data {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: filepath.Join(dir, "data")}); err == nil || !strings.Contains(err.Error(), "is not writable") {
		t.Errorf("error %v", err)
	}
}

// Objects and credentials are the same after a restart.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	a := start(t, o)
	ca := string(a.CA())
	code, body := ask(t, client(t, a, admin(t, a)), "POST", a.URL()+"/api/v1/namespaces/default/configmaps", "",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"},"data":{"a":"b"}}`)
	if code != http.StatusCreated {
		t.Fatalf("create: %d %s", code, body)
	}
	stop(t, a)

	a = start(t, o)
	defer stop(t, a)
	if got := string(a.CA()); got != ca {
		t.Error("another authority after the restart")
	}
	code, body = ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/api/v1/namespaces/default/configmaps/kept", "", "")
	if code != http.StatusOK || !strings.Contains(body, `"a":"b"`) {
		t.Errorf("after the restart: %d %s", code, body)
	}
	if data, err := os.ReadFile(o.Kubeconfig); err != nil || !strings.Contains(string(data), a.URL()) {
		t.Errorf("kubeconfig: %v %s", err, data)
	}
}

func TestInMemoryKeepsCredentialsOnly(t *testing.T) {
	dir := t.TempDir()
	stop(t, start(t, Options{Dir: dir, InMemory: true}))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != credentials {
		t.Errorf("left in the data directory: %v, %v", entries, err)
	}
}

func TestSystemNamespacesExist(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	code, body := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/api/v1/namespaces", "", "")
	var list struct {
		Items []struct {
			Metadata struct {
				Name          string
				ManagedFields json.RawMessage
			}
			Status struct{ Phase string }
		}
	}
	if err := json.Unmarshal([]byte(body), &list); code != 200 || err != nil {
		t.Fatalf("%d %s", code, body)
	}
	var names []string
	made := regexp.MustCompile(`^\[\{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":\{"f:metadata":\{"f:labels":` +
		`\{"\.":\{\},"f:kubernetes.io/metadata.name":\{\}\}\}\},"manager":"kube-apiserver","operation":"Update","time":"[^"]+"\}\]$`)
	for _, n := range list.Items {
		names = append(names, n.Metadata.Name+" "+n.Status.Phase)
		if !made.Match(n.Metadata.ManagedFields) {
			t.Errorf("%s is managed by %s", n.Metadata.Name, n.Metadata.ManagedFields)
		}
	}
	want := "default Active, kube-node-lease Active, kube-public Active, kube-system Active"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("namespaces: %s", got)
	}
}

// A missing namespace is reported before other validation errors.
func TestMissingNamespaceComesFirst(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	code, body := ask(t, client(t, a, admin(t, a)), "POST", a.URL()+"/api/v1/namespaces/missing/services", "",
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"A_"},"spec":{"type":"Other"}}`)
	if want := `"message":"namespaces \"missing\" not found"`; code != 404 || !strings.Contains(body, want) {
		t.Errorf("%d %s", code, body)
	}
}

// Users come from client certificates of the server's CA, those of other configured CAs, and tokens.
func TestWho(t *testing.T) {
	dir := t.TempDir()
	theirs := authority(t)
	eve, err := theirs.Client("eve", "devs")
	if err != nil {
		t.Fatal(err)
	}
	boss, err := theirs.Client("boss", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, Options{
		ClientCAFile: write(t, filepath.Join(dir, "ca.pem"), theirs.CA()),
		TokenFile:    write(t, filepath.Join(dir, "tokens"), []byte("s3cret,root,1,system:masters\nhush,bob,2,devs\n")),
	})
	defer stop(t, a)
	tests := []struct {
		name, token string
		as          *tls.Certificate
		code        int
		body        string
	}{
		{"administrator", "", admin(t, a), 200, `"NamespaceList"`},
		{"administrator by token", "s3cret", nil, 200, `"NamespaceList"`},
		{"administrator by another authority", "", pairOf(t, boss), 200, `"NamespaceList"`},
		{"user", "hush", nil, 403, `User \"bob\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope`},
		{"user by another authority", "", pairOf(t, eve), 403, `User \"eve\" cannot list`},
		{"an unknown token", "wrong", nil, 401, `"Unauthorized"`},
		{"certificate of an unknown authority", "", pairOf(t, authority(t).Admin()), 401, `"Unauthorized"`},
		{"anonymous", "", nil, 401, `"Unauthorized"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, body := ask(t, client(t, a, test.as), "GET", a.URL()+"/api/v1/namespaces", test.token, "")
			if code != test.code || !strings.Contains(body, test.body) {
				t.Errorf("answered %d %s", code, body)
			}
		})
	}
}

func TestOwnServingCertificate(t *testing.T) {
	dir := t.TempDir()
	donor := start(t, Options{Dir: dir})
	certificate, err := donor.identity.tls.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, donor)
	pair := filepath.Join(dir, credentials, "serving.pem")
	a := start(t, Options{CertFile: pair, KeyFile: pair})
	defer stop(t, a)
	answer, err := client(t, a, nil).Get(a.URL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if shown := answer.TLS.PeerCertificates[0]; !shown.Equal(certificate.Leaf) {
		t.Errorf("served with %v", shown.Subject)
	}
}

func TestHealth(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	for _, page := range []string{"readyz", "livez"} {
		want, err := os.ReadFile(filepath.Join("testdata", page+".txt")) // responses of kube-apiserver
		if err != nil {
			t.Fatal(err)
		}
		code, body := ask(t, client(t, a, nil), "GET", a.URL()+"/"+page+"?verbose", "", "")
		if code != 200 || body != string(want) {
			t.Errorf("%s: %d %s", page, code, body)
		}
	}
	code, body := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/debug/store", "", "")
	if code != 200 || !strings.Contains(body, "store is at revision ") {
		t.Errorf("/debug/store: %d %s", code, body)
	}
	code, body = ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/", "", "")
	for _, path := range []string{"/api", "/apis", "/livez/etcd", "/readyz/shutdown", "/metrics", "/version"} {
		if code != 200 || !strings.Contains(body, `"`+path+`"`) {
			t.Errorf("/ does not list %s: %d %s", path, code, body)
		}
	}
}

// An App whose store fails reports it, and becomes unhealthy.
func TestPartThatFails(t *testing.T) {
	a := start(t, Options{})
	if code, body := ask(t, client(t, a, nil), "GET", a.URL()+"/livez", "", ""); code != 200 || body != "ok" {
		t.Errorf("/livez: %d %s", code, body)
	}
	if err := a.backend.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-a.Failed(); err == nil {
		t.Error("failed without an error")
	}
	if code, body := ask(t, client(t, a, nil), "GET", a.URL()+"/livez", "", ""); code != 500 || !strings.Contains(body, "[-]etcd failed") {
		t.Errorf("/livez: %d %s", code, body)
	}
	stop(t, a)
}

// A cancelled start leaves nothing running.
func TestStartIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkStart(b *testing.B) {
	for name, o := range map[string]func() Options{
		"memory": func() Options { return Options{} },
		"first":  func() Options { return Options{Dir: filepath.Join(b.TempDir(), "data")} },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				a, err := Start(b.Context(), o())
				if err != nil {
					b.Fatal(err)
				}
				if err := a.Stop(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
