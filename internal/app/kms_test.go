package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/encrypt/kms/kmstest"
	"github.com/anykind/anykind/internal/store/memkv"
)

// kmsConfig returns an EncryptionConfiguration of Secrets with KMS providers.
func kmsConfig(providers ...string) []byte {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"
	for _, p := range providers {
		text += "  - kms: " + p + "\n"
	}
	return []byte(text)
}

func provider(name string, p *kmstest.Plugin) string {
	return fmt.Sprintf("{apiVersion: v2, name: %s, endpoint: %q, timeout: 500ms}", name, p.Endpoint())
}

func startKMS(t *testing.T) *kmstest.Plugin {
	t.Helper()
	p, err := kmstest.Start(filepath.Join(t.TempDir(), "kms.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// kmsServer is a server with an administrator.
type kmsServer struct {
	*testing.T
	app    *App
	client *http.Client
}

func startWithKMS(t *testing.T, dir, config string, reload bool) kmsServer {
	t.Helper()
	a := start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config, Reload: reload}})
	return kmsServer{t, a, client(t, a, admin(t, a))}
}

// want sends a request whose answer must have a code and a text.
func (s kmsServer) want(method, path, body string, code int, text string) string {
	s.Helper()
	got, answer := ask(s.T, s.client, method, s.app.URL()+path, "", body)
	if got != code || !strings.Contains(answer, text) {
		s.Errorf("%s %s: %d %s, want %d %s", method, path, got, answer, code, text)
	}
	return answer
}

// await reads until the answer has a code and a text.
func (s kmsServer) await(path string, code int, text string) string {
	s.Helper()
	var got int
	var answer string
	if !poll(s.T, func() bool {
		got, answer = ask(s.T, s.client, "GET", s.app.URL()+path, "", "")
		return got == code && strings.Contains(answer, text)
	}) {
		s.Fatalf("%s: %d %s, want %d %s", path, got, answer, code, text)
	}
	return answer
}

// A server reads after a restart what it encrypted with a KMS, and its file has no plain value. The
// plugin has a health check, and metrics.
func TestKMS(t *testing.T) {
	plugin, dir := startKMS(t), t.TempDir()
	config := write(t, filepath.Join(t.TempDir(), "enc.yaml"), kmsConfig(provider("a", plugin)))
	s := startWithKMS(t, dir, config, false)
	s.want("POST", secrets, secretNamed("a"), 201, "")
	s.want("GET", "/readyz?verbose", "", 200, "[+]etcd-readiness ok\n[+]kms-providers ok\n[+]informer-sync ok")
	s.want("GET", "/healthz/kms-providers", "", 200, "ok")
	s.want("GET", "/livez/kms-providers", "", 404, "")
	metrics := s.want("GET", "/metrics", "", 200, "")
	for _, want := range []string{
		`apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:kms:v2:a:"} 1`,
		`apiserver_storage_transformation_duration_seconds_count{transformation_type="to_storage",transformer_prefix="k8s:enc:kms:v2:a:"} 1`,
		`# HELP apiserver_storage_data_key_generation_duration_seconds [ALPHA]`,
		`apiserver_storage_data_key_generation_duration_seconds_count 1`,
		`apiserver_storage_data_key_generation_failures_total 0`,
		`apiserver_storage_envelope_transformation_cache_misses_total 0`,
		`apiserver_envelope_encryption_dek_source_cache_size{provider_name="a"} 1`,
		`apiserver_envelope_encryption_kms_operations_latency_seconds_count{grpc_status_code="OK",method_name="/v2.KeyManagementService/Status",provider_name="a"} 1`,
		`apiserver_envelope_encryption_key_id_hash_total{apiserver_id_hash="sha256:`,
		`apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds{apiserver_id_hash="sha256:`,
		`apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{apiserver_id_hash="sha256:`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no metric %s", want)
		}
	}
	stop(t, s.app)
	if onDisk(t, dir, planted) || !onDisk(t, dir, "k8s:enc:kms:v2:a:") {
		t.Error("the file has a plain Secret, or no encrypted one")
	}

	s = startWithKMS(t, dir, config, false)
	defer stop(t, s.app)
	s.want("GET", secrets+"/a", "", 200, `"a"`)
	if n := plugin.Decrypts.Load(); n != 1 {
		t.Errorf("%d calls to decrypt", n)
	}
}

// With the feature gate KMSv1, version 1 of the protocol encrypts: each write has a key of its own. Each plugin has a check.
func TestKMSv1(t *testing.T) {
	plugin, dir := startKMS(t), t.TempDir()
	old := strings.Replace(provider("a", plugin), "v2", "v1", 1)
	config := write(t, filepath.Join(t.TempDir(), "enc.yaml"), kmsConfig(old, provider("b", plugin)))
	begin := func(reload bool) kmsServer {
		a := start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config, Reload: reload}, Gates: gate.With(map[gate.Name]bool{gate.KMSv1: true})})
		return kmsServer{t, a, client(t, a, admin(t, a))}
	}
	s := begin(false)
	s.want("POST", secrets, secretNamed("a"), 201, "")
	s.want("POST", secrets, secretNamed("b"), 201, "")
	s.want("GET", "/readyz?verbose", "", 200, "[+]etcd-readiness ok\n[+]kms-provider-0 ok\n[+]kms-provider-1 ok\n[+]informer-sync ok")
	s.want("GET", "/metrics", "", 200, "apiserver_envelope_encryption_dek_cache_fill_percent 0.00")
	release := plugin.Hang()
	s.want("PUT", secrets+"/a", secretNamed("a"), 200, "") // nothing changes
	s.want("PATCH", secrets+"/a", `{"metadata":{"labels":{"a":"b"}}}`, 500, "DeadlineExceeded")
	s.want("GET", secrets+"/a", "", 200, `"a"`)
	release()
	stop(t, s.app)
	if onDisk(t, dir, planted) || !onDisk(t, dir, "k8s:enc:kms:v1:a:") {
		t.Error("the file has a plain Secret, or no encrypted one")
	}

	before := plugin.Decrypts.Load()
	s = begin(true)
	defer stop(t, s.app)
	s.want("GET", secrets, "", 200, `"name":"b"`)
	if n := plugin.Decrypts.Load() - before; n < 2 {
		t.Errorf("%d calls to decrypt two values", n)
	}
	s.want("GET", "/healthz/kms-providers", "", 200, "ok")
}

// While the plugin is down, objects that were read before are served, others are not, and other kinds
// are as always. A server that starts meanwhile serves everything once the plugin is back.
func TestKMSDown(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*kmstest.Plugin) (end func()){
		"killed": func(p *kmstest.Plugin) func() {
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			return func() {
				if err := p.Resume(); err != nil {
					t.Error(err)
				}
			}
		},
		"hung": (*kmstest.Plugin).Hang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugin, dir := startKMS(t), t.TempDir()
			config := write(t, filepath.Join(t.TempDir(), "enc.yaml"), kmsConfig(provider("a", plugin)))
			s := startWithKMS(t, dir, config, false)
			s.want("POST", secrets, secretNamed("old"), 201, "")
			s.want("POST", secrets, secretNamed("gone"), 201, "")
			end := fail(plugin)
			s.want("GET", secrets, "", 200, `"old"`)
			s.want("POST", secrets, secretNamed("new"), 201, "") // for three minutes
			s.want("GET", secrets+"/new", "", 200, "")
			stop(t, s.app)

			s = startWithKMS(t, dir, config, false)
			defer stop(t, s.app)
			s.want("GET", secrets+"/old", "", 500, "data from the storage is not transformable revision=0: failed to decrypt DEK, error: rpc error: code = ")
			s.want("GET", secrets, "", 500, "failed to decrypt DEK")
			s.want("POST", secrets, secretNamed("newer"), 500, "KMS provider a: the KMS plugin has not answered yet")
			s.want("DELETE", secrets+"/gone", "", 500, "failed to decrypt DEK")
			s.want("DELETE", secrets+"/gone?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", 200, "")
			s.want("GET", secrets+"/gone", "", 404, "")
			s.want("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"c"}}`, 201, "")
			s.want("GET", "/api/v1/namespaces", "", 200, "default")
			s.want("GET", "/livez", "", 200, "ok")
			s.want("GET", "/healthz", "", 500, "[-]kms-providers failed: reason withheld")
			s.want("GET", "/readyz/kms-providers", "", 500, "rpc error: code = DeadlineExceeded")
			end()
			s.await(secrets, 200, `"new"`)
			s.await("/readyz", 200, "")
			s.want("POST", secrets, secretNamed("newer"), 201, "")
			s.want("DELETE", secrets+"/old", "", 200, "")
		})
	}
}

// A new key of the KMS is in force after the next poll. Writers do not notice. An update without a change
// and a migration store objects with it, after which the old key is not needed.
func TestRotationAtTheKMS(t *testing.T) {
	t.Parallel()
	plugin, dir := startKMS(t), t.TempDir()
	config := filepath.Join(t.TempDir(), "enc.yaml")
	write(t, config, kmsConfig(provider("a", plugin)))
	s := startWithKMS(t, dir, config, true)
	s.want("POST", secrets, secretNamed("a"), 201, "")
	s.want("POST", secrets, secretNamed("b"), 201, "")
	s.want("GET", "/readyz?verbose", "", 200, "[+]poststarthook/start-encryption-provider-config-automatic-reload ok")
	old := plugin.KeyID()

	var writers sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			for i := 0; ; i++ {
				s.want("POST", secrets, secretNamed(fmt.Sprintf("w%d-%d", w, i)), 201, "")
				select {
				case <-done:
					return
				case <-again.C:
				}
			}
		})
	}
	plugin.Rotate()
	encrypts := plugin.Encrypts.Load()
	// The check polls the plugin, as health checks of a cluster do.
	if !poll(t, func() bool {
		s.want("GET", "/healthz/kms-providers", "", 200, "ok")
		return plugin.Encrypts.Load() > encrypts
	}) {
		t.Error("the new key does not come into force")
	}
	close(done)
	writers.Wait()

	object := s.want("GET", secrets+"/a", "", 200, "")
	if again := s.want("PUT", secrets+"/a", object, 200, ""); revisionIn(again) == revisionIn(object) {
		t.Error("an update without a change does not write an old value again")
	}
	s.want("POST", "/apis/storagemigration.k8s.io/v1/storageversionmigrations", `{"metadata":{"name":"m"},"spec":{"resource":{"group":"","resource":"secrets"}}}`, 201, "")
	s.await("/apis/storagemigration.k8s.io/v1/storageversionmigrations/m", 200, `"type":"Succeeded"`)
	stop(t, s.app)

	plugin.Lose(old)
	s = startWithKMS(t, dir, config, false)
	defer stop(t, s.app)
	s.want("GET", secrets, "", 200, `"w3-0"`)
	if _, answer := ask(t, s.client, "PUT", s.app.URL()+secrets+"/b", "", s.want("GET", secrets+"/b", "", 200, "")); revisionIn(answer) == "" {
		t.Errorf("an update after the migration: %s", answer)
	}
}

// A reload replaces a plugin by another one, whose predecessor is no longer called. A plugin that does
// not answer is not put in force. An object whose key was missing is served after the reload that adds it.
func TestReloadOfKMS(t *testing.T) {
	t.Parallel()
	first, second, dir := startKMS(t), startKMS(t), t.TempDir()
	config := filepath.Join(t.TempDir(), "enc.yaml")
	write(t, config, kmsConfig(provider("first", first)))
	s := startWithKMS(t, dir, config, true)
	s.want("POST", secrets, secretNamed("a"), 201, "")
	write(t, config, kmsConfig(provider("second", second), provider("first", first)))
	s.await("/metrics", 200, `status="success"} 1`)
	s.want("POST", secrets, secretNamed("b"), 201, "")
	if !onDisk(t, dir, "k8s:enc:kms:v2:second:") {
		t.Error("the new provider does not encrypt")
	}
	s.want("GET", secrets, "", 200, `"name":"a"`)
	write(t, config, kmsConfig(provider("second", second)))
	s.await("/metrics", 200, `status="success"} 2`)
	s.await(secrets+"/a", 500, "no matching prefix found") // although it was in memory
	stop(t, s.app)

	s = startWithKMS(t, dir, config, true)
	defer stop(t, s.app)
	s.want("GET", secrets+"/a", "", 500, "no matching prefix found")
	s.want("GET", secrets+"/b", "", 200, "")
	write(t, config, kmsConfig(provider("second", second), provider("first", first)))
	s.await(secrets, 200, `"name":"a"`)
	write(t, config, kmsConfig(provider("second", second)))
	s.await("/metrics", 200, `status="success"} 2`)
	if !poll(t, func() bool {
		s.want("GET", "/healthz/kms-providers", "", 200, "ok")
		return first.Connections.Load() == 0
	}) {
		t.Fatal("the connection to a plugin that was replaced stays open")
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	write(t, config, kmsConfig(provider("first", first)))
	s.await("/metrics", 200, `status="failure"} 1`)
	s.want("POST", secrets, secretNamed("c"), 201, "")
}

// Another server of the store encrypts with a seed of its own. While the plugin hangs, its objects are
// unreadable here, and all others are not affected: neither their writes nor their watches.
func TestKMSOfAnotherServer(t *testing.T) {
	t.Parallel()
	store := memkv.New(memkv.Options{})
	defer store.Close()
	plugin := startKMS(t)
	config := write(t, filepath.Join(t.TempDir(), "enc.yaml"), kmsConfig(provider("a", plugin)))
	var servers [2]kmsServer
	for i := range servers {
		a := start(t, Options{Backend: nextDoor{store}, Encryption: Encryption{ConfigFile: config}})
		defer stop(t, a)
		servers[i] = kmsServer{t, a, client(t, a, admin(t, a))}
	}
	here, there := servers[0], servers[1]
	here.want("GET", secrets, "", 200, `"items":[]`)
	for _, s := range servers {
		s.await("/readyz", 200, "") // it has a seed
	}
	release := plugin.Hang()
	there.want("POST", secrets, secretNamed("there"), 201, "")
	here.want("POST", secrets, secretNamed("here"), 201, "")
	here.want("GET", secrets+"/there", "", 500, "failed to decrypt DEK")
	here.want("GET", secrets+"/here", "", 200, "")
	began := time.Now()
	for i := range 20 {
		there.want("PUT", secrets+"/there", secretNamed("there"), 200, "")
		here.want("POST", "/api/v1/namespaces/default/configmaps", fmt.Sprintf(`{"metadata":{"name":"c%d"}}`, i), 201, "")
		here.want("GET", "/api/v1/namespaces/default/configmaps", "", 200, fmt.Sprintf(`"c%d"`, i))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("writes beside a KMS that hangs took %v", took)
	}
	release()
	here.await(secrets, 200, `"there"`)
}

// Definitions and objects that another part of the server relies on are read again, too, once the plugin
// answers.
func TestKMSOfDefinitions(t *testing.T) {
	t.Parallel()
	plugin, dir := startKMS(t), t.TempDir()
	text := strings.Replace(string(kmsConfig(provider("a", plugin))), "[secrets]", `["*.apiextensions.k8s.io", "*.rbac.authorization.k8s.io", "*.example.com"]`, 1)
	config := write(t, filepath.Join(t.TempDir(), "enc.yaml"), []byte(text))
	s := startWithKMS(t, dir, config, false)
	const (
		crds   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		things = "/apis/example.com/v1/things"
		rbac   = "/apis/rbac.authorization.k8s.io/v1/"
	)
	s.want("POST", crds, `{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, 201, "")
	s.want("POST", things, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"}}`, 201, "")
	s.want("POST", rbac+"clusterroles", `{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]}`, 201, "")
	s.want("POST", rbac+"clusterrolebindings", `{"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"alice"}]}`, 201, "")
	stop(t, s.app)

	release := plugin.Hang()
	s = startWithKMS(t, dir, config, false)
	defer stop(t, s.app)
	s.want("GET", things, "", 404, "")
	allowed := func() bool {
		_, answer := ask(t, s.client, "POST", s.app.URL()+"/apis/authorization.k8s.io/v1/subjectaccessreviews", "",
			`{"spec":{"user":"alice","resourceAttributes":{"namespace":"default","verb":"list","resource":"configmaps"}}}`)
		return strings.Contains(answer, `"allowed":true`)
	}
	if allowed() {
		t.Error("a role that cannot be read grants something")
	}
	release()
	s.await(things, 200, `"name":"t"`)
	if !poll(t, allowed) {
		t.Fatal("a role that can be read again grants nothing")
	}
}

// A file is restored, opened and saved with the KMS that encrypted its values: each has connections of its own.
func TestRestoreWithKMS(t *testing.T) {
	dir, plugin := t.TempDir(), startKMS(t)
	config := write(t, filepath.Join(dir, encryptionFile), kmsConfig(provider("one", plugin)))
	data := filepath.Join(dir, "old")
	s := startWithKMS(t, data, config, false)
	s.want(http.MethodPost, inSecrets, `{"metadata":{"name":"a"},"stringData":{"k":"hidden"}}`, http.StatusCreated, "")
	stop(t, s.app)
	for _, o := range []Options{{Dir: filepath.Join(dir, "new"), Restore: data}, {Open: data}} {
		o.Encryption = Encryption{ConfigFile: config}
		a := start(t, o)
		s = kmsServer{t, a, client(t, a, admin(t, a))}
		s.want(http.MethodGet, inSecrets+"/a", "", http.StatusOK, "aGlkZGVu")
		if o.Open == "" {
			s.want(http.MethodPost, inSecrets, `{"metadata":{"name":"b"}}`, http.StatusCreated, "")
		}
		stop(t, a)
	}
}
