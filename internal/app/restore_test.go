package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// A new store has the objects of a file, with their resourceVersions. It is written and read as any other.
func TestRestoreStore(t *testing.T) {
	dir := t.TempDir()
	old, data := encryptedSecrets(t, dir), filepath.Join(dir, "old")
	a := start(t, Options{Dir: data, Encryption: old})
	must(t, a, "POST", inConfigMaps, mapOf("a", "v"))
	must(t, a, "POST", inSecrets, `{"metadata":{"name":"s"},"stringData":{"k":"hidden"}}`)
	must(t, a, "POST", definitions, namespacedKind("Widget"))
	must(t, a, "POST", "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
	paths := []string{inConfigMaps + "/a", inSecrets + "/s", "/apis/example.com/v1/namespaces/default/widgets/w"}
	before := map[string]string{}
	for _, p := range paths {
		before[p] = must(t, a, "GET", p, "")
	}
	stop(t, a)

	fresh := filepath.Join(dir, "new")
	if _, err := Start(t.Context(), Options{Dir: fresh, Restore: data}); err == nil || !strings.Contains(err.Error(), "/registry/secrets/default/s cannot be decrypted: give the EncryptionConfiguration") {
		t.Errorf("without the keys: %v", err)
	}
	o := Options{Dir: fresh, Restore: data, Encryption: old}
	for range 2 {
		a = start(t, o)
		for _, p := range paths {
			if got := must(t, a, "GET", p, ""); got != before[p] {
				t.Errorf("%s is %s and was %s", p, got, before[p])
			}
		}
		must(t, a, "PATCH", "/apis/example.com/v1/namespaces/default/widgets/w", `{"metadata":{"labels":{"a":"b"}}}`)
		before[paths[2]] = must(t, a, "GET", paths[2], "")
		stop(t, a)
		o.Restore = ""
	}
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Dir: fresh, Restore: data, Encryption: old}, "has a store already: leave out --restore to serve it"},
		{Options{Restore: data}, "--restore needs a store in --data-dir"},
		{Options{Dir: fresh, Restore: data, InMemory: true}, "--restore needs a store in --data-dir"},
		{Options{Dir: fresh, Restore: data, Open: data}, "mutually exclusive"},
		{Options{Dir: filepath.Join(dir, "other"), Restore: filepath.Join(dir, "none")}, "no such file"},
		{Options{Dir: filepath.Join(dir, "other"), Restore: filepath.Join(dir, encryptionFile)}, "is no backup of anykind and no snapshot of etcd"},
	} {
		if a, err := Start(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
			if err == nil {
				stop(t, a)
			}
		}
	}
}

// A server opens and restores the backups of a store in memory and of a fork. The backup of a fork is encrypted like
// the store of its server.
func TestBackupOfMemory(t *testing.T) {
	dir := t.TempDir()
	keys := encryptedSecrets(t, dir)
	kms := Encryption{ConfigFile: write(t, filepath.Join(dir, "kms.yaml"), kmsConfig(provider("one", startKMS(t))))}
	for _, o := range []Options{
		{Encryption: keys}, {Encryption: keys, Dir: filepath.Join(dir, "data")}, {Encryption: kms, Dir: filepath.Join(dir, "with KMS")},
	} {
		keys := o.Encryption
		a := start(t, o)
		must(t, a, "POST", inSecrets, `{"metadata":{"name":"s"},"stringData":{"k":"hidden"}}`)
		must(t, a, "POST", inConfigMaps, mapOf("a", "v"))
		c := client(t, a, admin(t, a))
		from := forkOf(t, c, a.URL(), `{"name":"one"}`)
		if o.Dir == "" { // its own store
			from = a.URL()
		}
		answers(t, c, "PATCH", from+inConfigMaps+"/a", "", `{"data":{"k":"changed"}}`, 200)
		code, file := ask(t, c, "GET", from+"/backup", "", "")
		if code != 200 || strings.Contains(file, "aGlkZGVu") || !strings.Contains(file, "changed") {
			t.Fatalf("%d, %d bytes, or a plain Secret", code, len(file))
		}
		stop(t, a)
		saved := write(t, filepath.Join(t.TempDir(), "backup.db"), []byte(file))
		for _, o := range []Options{{Open: saved, Encryption: keys}, {Restore: saved, Dir: t.TempDir(), Encryption: keys}} {
			a := start(t, o)
			if got := must(t, a, "GET", inSecrets+"/s", "") + must(t, a, "GET", inConfigMaps+"/a", ""); !strings.Contains(got, "aGlkZGVu") || !strings.Contains(got, "changed") {
				t.Error(got)
			}
			stop(t, a)
		}
	}
}
