package etcd

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/encrypt/kms/kmstest"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var bothWays = flag.Bool("both-ways", false, "build the published kube-apiserver, and run it and anykind over one etcd")

// anykind serves the objects of a kube-apiserver over the same etcd, and the reverse: both serve each
// object equally, whichever wrote it, changed it, or watches it.
func TestBothWays(t *testing.T) {
	if !*bothWays {
		t.Skip("building kube-apiserver takes minutes; make both-ways does")
	}
	servedBothWays(t)
}

// The same holds for encrypted objects. etcd has none of their values.
func TestBothWaysEncrypted(t *testing.T) {
	if !*bothWays {
		t.Skip("building kube-apiserver takes minutes; make both-ways does")
	}
	plugin, err := kmstest.Start(filepath.Join(t.TempDir(), "kms.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer plugin.Stop()
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, encryption, plugin.Endpoint()), 0o600); err != nil {
		t.Fatal(err)
	}
	m := servedBothWays(t, "--encryption-provider-config="+config)
	database, err := os.ReadFile(filepath.Join(m.Dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	// A value that write has stored, and a custom object.
	for _, plain := range []string{`"kind":"Thing"`, "v1\x12\tConfigMap"} {
		if bytes.Contains(database, []byte(plain)) {
			t.Errorf("etcd has %q", plain)
		}
	}
	for _, provider := range []string{"aescbc:v1", "aesgcm:v1", "secretbox:v1", "kms:v2:both"} {
		if !bytes.Contains(database, []byte("k8s:enc:"+provider+":")) {
			t.Errorf("no value is encrypted by %s", provider)
		}
	}
	if plugin.Decrypts.Load() < 2 {
		t.Error("the servers have not read the values of each other")
	}
}

// encryption encrypts all objects.
const encryption = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, "*.coordination.k8s.io", "*.before.example.com", "*.anykind.example.com", "*.kube.example.com"]
  providers: [{kms: {apiVersion: v2, name: both, endpoint: %q}}]
- resources: [configmaps]
  providers: [{aescbc: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}]
- resources: ["*.apps", namespaces]
  providers: [{secretbox: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}]
- resources: ["*.*"]
  providers: [{aesgcm: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}]
`

// servedBothWays checks that a kube-apiserver and anykind over one etcd, both with flags, serve the
// objects of each other.
func servedBothWays(t *testing.T, flags ...string) *Member {
	t.Helper()
	m := StartMember(t)
	kube := startKube(t, m.Client, flags...)
	// Objects from before anykind's start are served, also those in a snapshot of etcd.
	write(t, kube, kube, "before")
	sameOpened(t, kube, m, flags...)
	_, anykind := run(t, append(flags, "--etcd-servers", m.Client)...)
	for path := range paths("before") {
		same(t, kube, anykind, path)
	}
	for _, from := range []struct {
		name        string
		here, there process.API
	}{{"anykind", anykind, kube}, {"kube", kube, anykind}} {
		t.Run("written by "+from.name, func(t *testing.T) {
			write(t, from.here, from.there, from.name)
			for path := range paths(from.name) {
				same(t, kube, anykind, path)
			}
			for _, path := range slices.Sorted(maps.Keys(paths(from.name))) {
				change(t, from.there, from.here, path, from.name)
				same(t, kube, anykind, path)
			}
			remove(t, from.there, from.here, from.name)
		})
	}
	for path := range paths("before") {
		same(t, kube, anykind, path)
	}
	if len(flags) == 0 {
		stored(t, m)
		corrupt(t, m, kube, anykind)
	}
	return m
}

// startKube starts a kube-apiserver on an etcd.
func startKube(t *testing.T, etcd string, flags ...string) process.API {
	t.Helper()
	program, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, program, etcd, flags...)
}

// startProgram starts a program, a kube-apiserver, on an etcd.
func startProgram(t *testing.T, program, etcd string, flags ...string) process.API {
	t.Helper()
	dir := t.TempDir()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, tokens, at := filepath.Join(dir, "service.key"), filepath.Join(dir, "tokens.csv"), freeURL(t)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(signer, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tokens, []byte("admin-token,admin,1,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	cmd := exec.Command(program, append(flags,
		"--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", at.Port(), "--cert-dir", filepath.Join(dir, "certs"),
		"--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
		"--service-account-key-file", signer, "--service-account-signing-key-file", signer, "--service-account-issuer", "https://localhost")...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			said := log.String()
			t.Logf("kube-apiserver: ...%s", said[max(0, len(said)-2000):])
		}
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	api := process.API{Client: &http.Client{Transport: &authorized{transport}}, URL: "https://" + at.Host}
	eventually(t, func(ctx context.Context) error {
		_, err := api.Read(ctx, "/readyz")
		return err
	})
	return api
}

// An authorized transport adds the administrator's token.
type authorized struct{ *http.Transport }

func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer admin-token")
	return a.Transport.RoundTrip(r)
}

// eventually retries until success: kube-apiserver serves a kind some time after its definition.
func eventually(t *testing.T, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if pause(ctx) != nil {
			t.Fatal(err)
		}
	}
}

func collectionOf(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// kinds are the kinds of the objects, by plural.
var kinds = map[string]string{
	"namespaces": "Namespace", "configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount",
	"services": "Service", "events": "Event", "leases": "Lease", "endpointslices": "EndpointSlice",
	"customresourcedefinitions": "CustomResourceDefinition", "things": "Thing", "hubs": "Hub",
}

// paths are the objects of a writer, by path. They are in the writer's own namespace, and of its own
// kinds.
func paths(who string) map[string]map[string]any {
	ns := "/namespaces/" + who
	group := who + ".example.com"
	objects := map[string]string{
		"/api/v1" + ns:                                         `{"metadata":{"labels":{"a":"b"}}}`,
		"/api/v1" + ns + "/configmaps/c":                       `{"data":{"k":"v"},"binaryData":{"b":"AAEC/w=="},"immutable":false}`,
		"/api/v1" + ns + "/secrets/s":                          `{"type":"example.com/t","data":{"k":"AAEC/w=="}}`,
		"/api/v1" + ns + "/serviceaccounts/a":                  `{"automountServiceAccountToken":false,"secrets":[{"name":"s"}]}`,
		"/api/v1" + ns + "/services/v":                         `{"spec":{"clusterIP":"None","ports":[{"port":80,"targetPort":"http"}],"selector":{"a":"b"}}}`,
		"/api/v1" + ns + "/events/e":                           `{"involvedObject":{"namespace":"` + who + `","name":"c","kind":"ConfigMap"},"reason":"R","message":"m","type":"Normal","count":3,"firstTimestamp":"2026-01-02T03:04:05Z"}`,
		"/apis/coordination.k8s.io/v1" + ns + "/leases/l":      `{"spec":{"holderIdentity":"h","leaseDurationSeconds":7,"renewTime":"2026-01-02T03:04:05.000006Z"}}`,
		"/apis/discovery.k8s.io/v1" + ns + "/endpointslices/e": `{"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"conditions":{"ready":true}}],"ports":[{"name":"http","port":8080,"protocol":"TCP"}]}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things." + group: `{"spec":{"group":"` + group + `","scope":"Namespaced",
			"names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList","shortNames":["th"]},
			"versions":[
				{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
				 "additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}],
				 "selectableFields":[{"jsonPath":".spec.color"}],
				 "schema":{"openAPIV3Schema":{"type":"object","properties":{
					"spec":{"type":"object","properties":{"size":{"type":"integer","default":7,"maximum":100},"color":{"type":"string"},
						"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"port":{"x-kubernetes-int-or-string":true}},
						"x-kubernetes-validations":[{"rule":"self.size < 50","message":"too large"}]},
					"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}},
				{"name":"v1alpha1","served":true,"storage":false,"deprecated":true,
				 "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hubs." + group: `{"spec":{"group":"` + group + `","scope":"Cluster",
			"names":{"plural":"hubs","singular":"hub","kind":"Hub","listKind":"HubList"},
			"versions":[{"name":"v1","served":true,"storage":true,
				"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
		"/apis/" + group + "/v1" + ns + "/things/t":       `{"spec":{"color":"red","any":{"x":[1,2.5,null,"s"]},"port":"http"}}`,
		"/apis/" + group + "/v1alpha1" + ns + "/things/u": `{"spec":{"size":3,"other":true}}`,
		"/apis/" + group + "/v1/hubs/h":                   `{"spec":{"large":9007199254740991,"small":-0.5}}`,
	}
	all := map[string]map[string]any{}
	for path, text := range objects {
		var o map[string]any
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			panic(fmt.Sprintf("%s: %v", path, err)) // written here
		}
		metadata, _ := o["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
			o["metadata"] = metadata
		}
		metadata["name"] = path[strings.LastIndexByte(path, '/')+1:]
		parts := strings.Split(strings.Replace(strings.TrimPrefix(path, "/"), "api/", "apis/", 1), "/")
		o["kind"] = kinds[parts[len(parts)-2]]
		if o["apiVersion"] = parts[1]; strings.Contains(parts[1], ".") {
			o["apiVersion"] = parts[1] + "/" + parts[2]
		}
		all[path] = o
	}
	return all
}

// write creates the objects of a writer, definitions and namespaces first, and waits for those on both
// servers.
func write(t *testing.T, here, there process.API, who string) {
	t.Helper()
	first := func(path string) bool {
		return strings.Contains(path, "customresourcedefinitions") || strings.HasSuffix(path, "/namespaces/"+who)
	}
	objects := paths(who)
	for _, early := range []bool{true, false} {
		for _, path := range slices.Sorted(maps.Keys(objects)) {
			if first(path) != early {
				continue
			}
			eventually(t, func(ctx context.Context) error {
				err := here.Do(ctx, http.MethodPost, collectionOf(path), objects[path], nil)
				if code(err) == http.StatusBadRequest || code(err) == http.StatusUnprocessableEntity {
					t.Fatal(err)
				}
				return err
			})
		}
		if early {
			for _, kind := range []string{"/v1/things", "/v1alpha1/things", "/v1/hubs"} {
				for _, api := range []process.API{here, there} {
					eventually(t, func(ctx context.Context) error {
						_, err := api.Read(ctx, "/apis/"+who+".example.com"+kind)
						return err
					})
				}
			}
		}
	}
}

// same compares an object on both servers, at one revision.
func same(t *testing.T, kube, anykind process.API, path string) {
	t.Helper()
	var want, got map[string]any
	eventually(t, func(ctx context.Context) error {
		want, got = nil, nil
		if err := kube.Do(ctx, http.MethodGet, path, nil, &want); err != nil {
			return err
		}
		if err := anykind.Do(ctx, http.MethodGet, path, nil, &got); err != nil {
			t.Fatal(err)
		}
		if a, b := revisionOf(want), revisionOf(got); a != b {
			return fmt.Errorf("%s is at %s, and at %s", path, a, b) // it is being written
		}
		return nil
	})
	if !reflect.DeepEqual(want, got) {
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		t.Errorf("%s\nkube-apiserver: %s\nanykind:        %s", path, a, b)
	}
}

func revisionOf(o map[string]any) string {
	metadata, _ := o["metadata"].(map[string]any)
	revision, _ := metadata["resourceVersion"].(string)
	return revision
}

// change patches an object through one server, and sees the change in a watch of the other.
func change(t *testing.T, through, watching process.API, path, who string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var before map[string]any
	if err := watching.Do(ctx, http.MethodGet, path, nil, &before); err != nil {
		t.Fatal(err)
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, watching.URL+collectionOf(path)+
		"?watch=1&fieldSelector=metadata.name%3D"+name+"&resourceVersion="+revisionOf(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := watching.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	label := "changed-what-" + who + "-wrote"
	patch := map[string]any{"metadata": map[string]any{"labels": map[string]any{label: "yes"}}}
	if err := through.Do(ctx, http.MethodPatch, path, patch, nil); err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	events := json.NewDecoder(stream.Body)
	for {
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ Labels map[string]string }
			}
		}
		if err := events.Decode(&e); err != nil {
			t.Errorf("%s: the other server has not told its watch: %v", path, err)
			return
		}
		if e.Object.Metadata.Labels[label] == "yes" {
			return
		}
	}
}

// remove deletes objects through one server, and checks that the other no longer has them. Only
// anykind runs the namespace controller.
func remove(t *testing.T, through, other process.API, who string) {
	t.Helper()
	group := "/apis/" + who + ".example.com/v1"
	for _, path := range []string{
		"/api/v1/namespaces/" + who + "/configmaps/c", group + "/namespaces/" + who + "/things/t", group + "/hubs/h",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hubs." + who + ".example.com", "/api/v1/namespaces/" + who,
	} {
		if err := through.Do(t.Context(), http.MethodDelete, path, nil, nil); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, api := range []process.API{through, other} {
			eventually(t, func(ctx context.Context) error {
				if err := api.Do(ctx, http.MethodGet, path, nil, nil); code(err) != http.StatusNotFound {
					return fmt.Errorf("%s was deleted: %v", path, err)
				}
				return nil
			})
		}
	}
}

// stored logs the encoding of each object that the servers stored.
func stored(t *testing.T, m *Member) {
	t.Helper()
	client := m.client()
	defer client.Close()
	for _, key := range []string{
		"configmaps/before/c", "before.example.com/things/before/t", "before.example.com/things/before/u",
		"apiextensions.k8s.io/customresourcedefinitions/things.before.example.com",
		"apiextensions.k8s.io/customresourcedefinitions/things.anykind.example.com",
		"apiextensions.k8s.io/customresourcedefinitions/things.kube.example.com",
	} {
		found, err := client.Get(t.Context(), "/registry/"+key)
		if err != nil || len(found.Kvs) != 1 {
			t.Errorf("%s is not in etcd: %v", key, err)
			continue
		}
		t.Logf("%s: %.110q", key, found.Kvs[0].Value)
	}
}
