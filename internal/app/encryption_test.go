package app

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/configfile"
)

// encryptedBy returns an EncryptionConfiguration of Secrets and custom objects with a provider and keys
// of these names. identity allows plain values, too.
func encryptedBy(provider string, identity bool, names ...string) []byte {
	var keys []string
	for _, name := range names {
		secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name)[:1], 32))
		keys = append(keys, fmt.Sprintf("{name: %s, secret: %q}", name, secret))
	}
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets, \"*.example.com\"]\n  providers:\n  - %s: {keys: [%s]}\n",
		provider, strings.Join(keys, ", "))
	if identity {
		text += "  - identity: {}\n"
	}
	return []byte(text)
}

const (
	planted = "planted-plain-text"
	secrets = "/api/v1/namespaces/default/secrets"
)

func secretNamed(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"a":%q}}`, name, base64.StdEncoding.EncodeToString([]byte(planted)))
}

// onDisk reports whether a file of the data directory has a text.
func onDisk(t *testing.T, dir, text string) bool {
	t.Helper()
	for _, content := range tree(t, dir) {
		if strings.Contains(content, text) {
			return true
		}
	}
	return false
}

// No file has a plain value, not even that of a deleted object. Values that were stored before stay
// readable while identity is a provider, and a write without a change encrypts them.
func TestEncryptionOfTheFile(t *testing.T) {
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		dir := t.TempDir()
		coded := base64.StdEncoding.EncodeToString([]byte(planted))
		a := start(t, Options{Dir: dir})
		c := client(t, a, admin(t, a))
		ask(t, c, "POST", a.URL()+secrets, "", secretNamed("old"))
		stop(t, a)
		if !onDisk(t, dir, coded) {
			t.Fatal("the file does not have a plain Secret: the test cannot fail")
		}

		config := write(t, filepath.Join(t.TempDir(), "enc.yaml"), encryptedBy(provider, true, "k1"))
		a = start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config}})
		c = client(t, a, admin(t, a))
		_, old := ask(t, c, "GET", a.URL()+secrets+"/old", "", "")
		before := revisionIn(old)
		if code, answer := ask(t, c, "PUT", a.URL()+secrets+"/old", "", old); code != http.StatusOK || revisionIn(answer) == before {
			t.Errorf("%s: an update without a change does not write a plain value again: %d %s", provider, code, answer)
		}
		_, old = ask(t, c, "GET", a.URL()+secrets+"/old", "", "")
		if _, answer := ask(t, c, "PUT", a.URL()+secrets+"/old", "", old); revisionIn(answer) != revisionIn(old) {
			t.Errorf("%s: an update without a change writes an encrypted value again", provider)
		}
		stop(t, a)

		fresh := t.TempDir()
		a = start(t, Options{Dir: fresh, Encryption: Encryption{ConfigFile: config}})
		c = client(t, a, admin(t, a))
		for _, name := range []string{"a", "b"} {
			if code, answer := ask(t, c, "POST", a.URL()+secrets, "", secretNamed(name)); code != http.StatusCreated {
				t.Fatalf("%d %s", code, answer)
			}
		}
		ask(t, c, "DELETE", a.URL()+secrets+"/b", "", "")
		stop(t, a)
		if onDisk(t, fresh, coded) || onDisk(t, fresh, planted) {
			t.Errorf("%s: a file has a plain Secret", provider)
		}
		if !onDisk(t, fresh, "k8s:enc:"+provider+":v1:k1:") {
			t.Errorf("%s: no file has an encrypted value", provider)
		}
		a = start(t, Options{Dir: fresh, Encryption: Encryption{ConfigFile: config}})
		if code, answer := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+secrets+"/a", "", ""); code != http.StatusOK || !strings.Contains(answer, coded) {
			t.Errorf("%s: after a restart: %d %s", provider, code, answer)
		}
		stop(t, a)
	}
}

func revisionIn(object string) string {
	_, rest, _ := strings.Cut(object, `"resourceVersion":"`)
	revision, _, _ := strings.Cut(rest, `"`)
	return revision
}

// Without its key, an object cannot be read, and all others can. It can be deleted.
func TestLostKey(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(t.TempDir(), "enc.yaml")
	write(t, config, encryptedBy("secretbox", true, "lost"))
	a := start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config}})
	ask(t, client(t, a, admin(t, a)), "POST", a.URL()+secrets, "", secretNamed("lost"))
	stop(t, a)

	write(t, config, encryptedBy("secretbox", true, "new"))
	a = start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config}})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	if code, answer := ask(t, c, "GET", a.URL()+secrets+"/lost", "", ""); code != http.StatusInternalServerError || strings.Contains(answer, planted) {
		t.Errorf("a Secret without its key: %d %s", code, answer)
	}
	if code, answer := ask(t, c, "POST", a.URL()+secrets, "", secretNamed("other")); code != http.StatusCreated {
		t.Errorf("another Secret: %d %s", code, answer)
	}
	if code, answer := ask(t, c, "GET", a.URL()+"/api/v1/namespaces", "", ""); code != http.StatusOK {
		t.Errorf("another kind: %d %s", code, answer)
	}
	if code, answer := ask(t, c, "DELETE", a.URL()+secrets+"/lost?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", ""); code != http.StatusOK {
		t.Errorf("the deletion: %d %s", code, answer)
	}
	if code, answer := ask(t, c, "GET", a.URL()+secrets, "", ""); code != http.StatusOK || !strings.Contains(answer, `"other"`) {
		t.Errorf("the list after the deletion: %d %s", code, answer)
	}
}

// Unreadable limits reject the objects that they could limit, in their namespace.
func TestLostKeyOfLimits(t *testing.T) {
	const (
		in         = "/api/v1/namespaces/default"
		deletion   = "/lost?ignoreStoreReadErrorWithClusterBreakingPotential=true"
		configMap  = `{"metadata":{"generateName":"a-"}}`
		pod        = `{"metadata":{"generateName":"a-"},"spec":{"containers":[{"name":"c","image":"i"}],"serviceAccountName":"default"}}`
		quota      = `{"metadata":{"name":"lost"},"spec":{"hard":{"configmaps":"100"}}}`
		limitRange = `{"metadata":{"name":"lost"},"spec":{"limits":[{"type":"Container","max":{"cpu":"1"}}]}}`
	)
	for _, tt := range []struct {
		limits, limit, limited, object string
		code                           int
		words                          string
	}{
		{"resourcequotas", quota, "configmaps", configMap, http.StatusInternalServerError, `/resourcequotas/default/lost\" cannot be read: `},
		{"limitranges", limitRange, "pods", pod, http.StatusForbidden, `there was an error enforcing limit ranges: \"/registry/limitranges/default/lost\" cannot be read: `},
	} {
		dir, config := t.TempDir(), filepath.Join(t.TempDir(), "enc.yaml")
		keys := func(name string) []byte {
			return bytes.Replace(encryptedBy("secretbox", true, name), []byte("secrets"), []byte(tt.limits), 1)
		}
		write(t, config, keys("lost"))
		o := Options{Dir: dir, Encryption: Encryption{ConfigFile: config}, Admission: Admission{Disable: []string{"ServiceAccount"}}}
		a := start(t, o)
		if code, answer := ask(t, client(t, a, admin(t, a)), "POST", a.URL()+in+"/"+tt.limits, "", tt.limit); code != http.StatusCreated {
			t.Fatal(answer)
		}
		stop(t, a)

		write(t, config, keys("new"))
		a = start(t, o)
		c := client(t, a, admin(t, a))
		if code, answer := ask(t, c, "POST", a.URL()+in+"/"+tt.limited, "", tt.object); code != tt.code || !strings.Contains(answer, tt.words) {
			t.Errorf("%s: %d %s", tt.limits, code, answer)
		}
		if code, answer := ask(t, c, "POST", a.URL()+"/api/v1/namespaces/kube-public/"+tt.limited, "", tt.object); code != http.StatusCreated {
			t.Errorf("%s, in another namespace: %d %s", tt.limits, code, answer)
		}
		if code, answer := ask(t, c, "DELETE", a.URL()+in+"/"+tt.limits+deletion, "", ""); code != http.StatusOK {
			t.Errorf("%s, deletion: %d %s", tt.limits, code, answer)
		}
		creates(t, c, a.URL()+in+"/"+tt.limited, tt.object)
		stop(t, a)
	}
}

// An unreadable policy, binding or webhook configuration rejects all other writes. The server starts, and the object can be deleted.
func TestLostKeyOfAdmission(t *testing.T) {
	const path = "/apis/admissionregistration.k8s.io/v1/"
	for kind, object := range map[string]string{
		"validatingadmissionpolicies":       `{"metadata":{"name":"lost"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["secrets"]}]},"validations":[{"expression":"true"}]}}`,
		"validatingadmissionpolicybindings": `{"metadata":{"name":"lost"},"spec":{"policyName":"a","validationActions":["Deny"]}}`,
		"mutatingwebhookconfigurations":     `{"metadata":{"name":"lost"}}`,
		"validatingwebhookconfigurations":   `{"metadata":{"name":"lost"}}`,
	} {
		dir, config := t.TempDir(), filepath.Join(t.TempDir(), "enc.yaml")
		keys := func(name string) []byte {
			return bytes.Replace(encryptedBy("secretbox", true, name), []byte("secrets"), []byte(kind+".admissionregistration.k8s.io"), 1)
		}
		write(t, config, keys("lost"))
		o := Options{Dir: dir, Encryption: Encryption{ConfigFile: config}}
		a := start(t, o)
		if code, answer := ask(t, client(t, a, admin(t, a)), "POST", a.URL()+path+kind, "", object); code != http.StatusCreated {
			t.Fatal(answer)
		}
		if code, answer := ask(t, client(t, a, admin(t, a)), "DELETE", a.URL()+"/api/v1/namespaces/kube-node-lease", "", ""); code != http.StatusOK {
			t.Fatal(answer)
		}
		for code := http.StatusOK; code != http.StatusNotFound; {
			code, _ = ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/api/v1/namespaces/kube-node-lease", "", "")
		}
		stop(t, a)

		write(t, config, keys("new"))
		a = start(t, o)
		c := client(t, a, admin(t, a))
		if code, answer := ask(t, c, "POST", a.URL()+secrets, "", secretNamed("a")); code != http.StatusForbidden || !strings.Contains(answer, `/lost\" cannot be read: `) {
			t.Errorf("%s: %d %s", kind, code, answer)
		}
		if code, answer := ask(t, c, "GET", a.URL()+"/readyz?verbose", "", ""); code != http.StatusOK {
			t.Errorf("%s: %d %s", kind, code, answer)
		}
		if code, answer := ask(t, c, "DELETE", a.URL()+path+kind+"/lost?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", ""); code != http.StatusOK {
			t.Errorf("%s, deletion: %d %s", kind, code, answer)
		}
		creates(t, c, a.URL()+secrets, secretNamed("a"))
		stop(t, a)
	}
}

// creates makes an object as soon as admission allows it. The caches of admission follow a deletion.
func creates(t *testing.T, c *http.Client, url, object string) {
	t.Helper()
	var code int
	var answer string
	if !poll(t, func() bool {
		code, answer = ask(t, c, "POST", url, "", object)
		return code == http.StatusCreated
	}) {
		t.Errorf("POST %s: %d %s", url, code, answer)
	}
}

// A change of the file takes effect while the server runs. One that is wrong leaves the keys as they
// are. A migration stores all objects with the new key.
func TestReloadOfKeys(t *testing.T) {
	t.Parallel() // it waits most of the time
	dir, config := t.TempDir(), filepath.Join(t.TempDir(), "enc.yaml")
	write(t, config, encryptedBy("aesgcm", false, "k1"))
	a := start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config, Reload: true}})
	c := client(t, a, admin(t, a))
	// await reads until an answer has a text.
	await := func(path, text string) {
		t.Helper()
		var answer string
		if !poll(t, func() bool {
			_, answer = ask(t, c, "GET", a.URL()+path, "", "")
			return strings.Contains(answer, text)
		}) {
			t.Fatalf("%s does not have %s: %s", path, text, answer)
		}
	}
	write(t, config, []byte("kind: EncryptionConfiguration"))
	await("/metrics", `automatic_reloads_total{apiserver_id_hash="`+configfile.Sum([]byte(serverID()))+`",status="failure"} 1`)
	ask(t, c, "POST", a.URL()+secrets, "", secretNamed("a"))
	if !onDisk(t, dir, "k8s:enc:aesgcm:v1:k1:") {
		t.Error("after a wrong configuration the key is no longer in force")
	}
	write(t, config, encryptedBy("aesgcm", false, "k2", "k1"))
	await("/metrics", `status="success"} 1`)
	if code, answer := ask(t, c, "POST", a.URL()+"/apis/storagemigration.k8s.io/v1/storageversionmigrations", "",
		`{"metadata":{"name":"m"},"spec":{"resource":{"group":"","resource":"secrets"}}}`); code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	await("/apis/storagemigration.k8s.io/v1/storageversionmigrations/m", `"type":"Succeeded"`)
	// A key that is missing now is missing at once, also for objects in memory. It may come back.
	await(secrets+"/a", `"kind":"Secret"`)
	write(t, config, encryptedBy("aesgcm", false, "k3"))
	await(secrets+"/a", "data from the storage is not transformable revision=0: no matching prefix found")
	await(secrets, "failed to read one or more secrets from the storage")
	write(t, config, encryptedBy("aesgcm", false, "k3", "k2"))
	await(secrets+"/a", `"kind":"Secret"`)
	stop(t, a)

	write(t, config, encryptedBy("aesgcm", false, "k2"))
	a = start(t, Options{Dir: dir, Encryption: Encryption{ConfigFile: config}})
	defer stop(t, a)
	if code, answer := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+secrets+"/a", "", ""); code != http.StatusOK {
		t.Errorf("after the migration the new key does not read the object: %d %s", code, answer)
	}
}

func TestWrongEncryptionConfigurations(t *testing.T) {
	for text, want := range map[string]string{
		string(encryptedBy("aescbc", true)):                                                                                       "Required value",
		strings.Replace(string(encryptedBy("aescbc", true, "a")), "aescbc", "none", 1):                                            "unknown field",
		string(kmsConfig(`{name: a, endpoint: "unix:///a"}`)):                                                                     `KMS provider "a": KMSv1 is deprecated`,
		string(kmsConfig(`{apiVersion: v2, name: a, endpoint: "http://a"}`)):                                                      `unsupported scheme "http" for KMS provider, only unix is supported`,
		string(kmsConfig(`{apiVersion: v2, name: a, endpoint: "unix:///a", timeout: 0s}`)):                                        "timeout should be a positive value",
		string(kmsConfig(`{apiVersion: v2, name: a, endpoint: "unix:///a", cachesize: 5}`)):                                       "cachesize is not supported in v2",
		string(kmsConfig(`{apiVersion: v2, name: "a:b", endpoint: "unix:///a"}`)):                                                 "invalid KMS provider name a:b, must not contain ':'",
		string(kmsConfig(`{apiVersion: v2, name: a, endpoint: "unix:///a"}`, `{apiVersion: v2, name: a, endpoint: "unix:///b"}`)): "duplicate KMS provider name a, names must be unique",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- {resources: [\"*.*\"], providers: [{identity: {}}]}\n- {resources: [secrets], providers: [{identity: {}}]}\n": `"secrets" is masked by earlier rule "*.*"`,
	} {
		file := write(t, filepath.Join(t.TempDir(), "enc.yaml"), []byte(text))
		e := Encryption{ConfigFile: file}
		if _, err := e.read(nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := (&Encryption{Reload: true}).read(nil, nil); err == nil {
		t.Error("a reload without a file is accepted")
	}
	if _, err := (&Encryption{ConfigFile: filepath.Join(t.TempDir(), "none")}).read(nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
