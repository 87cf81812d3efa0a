package oracle

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/encrypt/kms/kmstest"
)

// Each of the two decrypts values of the other, with each provider and for each form of a rule. A
// value with a wrong bit, or of another key of the store, is the same for both.
func TestEncryption(t *testing.T) {
	secret := func(seed byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{seed}, 32)) }
	config := fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{aescbc: {keys: [{name: a, secret: %[1]q}, {name: b, secret: %[2]q}]}}, {identity: {}}]
- resources: [configmaps, events]
  providers: [{aesgcm: {keys: [{name: a, secret: %[1]q}]}}, {aescbc: {keys: [{name: a, secret: %[2]q}]}}]
- resources: ["*.apps"]
  providers: [{secretbox: {keys: [{name: "a:b", secret: %[1]q}]}}, {identity: {}}]
- resources: [pods]
  providers: [{identity: {}}, {aesgcm: {keys: [{name: a, secret: %[1]q}]}}]
- resources: ["*.batch"]
  providers: [{kms: {apiVersion: v2, name: oracle, endpoint: %[3]q}}, {identity: {}}]
- resources: ["*.autoscaling"]
  providers: [{kms: {apiVersion: v1, name: old, endpoint: %[3]q}}, {identity: {}}]
- resources: ["*.policy"]
  providers: [{secretbox: {keys: [{name: a, secret: %[1]q}]}}, {kms: {apiVersion: v2, name: second, endpoint: %[3]q}}]
- resources: ["*.*"]
  providers: [{aesgcm: {keys: [{name: all, secret: %[2]q}]}}, {identity: {}}]
`, secret(1), secret(2), startKMS(t).Endpoint())
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.KMSv1, true)
	theirs, err := encryptionconfig.LoadEncryptionConfig(t.Context(), file, false, "")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseEncryption(config)
	if err != nil {
		t.Fatal(err)
	}
	ours := keyring(t, parsed)
	transformers := encryptionconfig.StaticTransformers(theirs.Transformers)
	r := rand.New(rand.NewPCG(1, 2))
	resources := map[string]schema.GroupResource{
		"/registry/secrets/default/a":                                {Resource: "secrets"},
		"/registry/configmaps/default/a":                             {Resource: "configmaps"},
		"/registry/events/default/a":                                 {Resource: "events"},
		"/registry/deployments/default/a":                            {Group: "apps", Resource: "deployments"},
		"/registry/horizontalpodautoscalers/default/a":               {Group: "autoscaling", Resource: "horizontalpodautoscalers"},
		"/registry/jobs/default/a":                                   {Group: "batch", Resource: "jobs"},
		"/registry/poddisruptionbudgets/default/a":                   {Group: "policy", Resource: "poddisruptionbudgets"},
		"/registry/pods/default/a":                                   {Resource: "pods"},
		"/registry/services/specs/default/a":                         {Resource: "services"},
		"/registry/minions/a":                                        {Resource: "nodes"},
		"/registry/stable.example.com/crontabs/a":                    {Group: "stable.example.com", Resource: "crontabs"},
		"/registry/apiextensions.k8s.io/customresourcedefinitions/a": {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	}
	for _, key := range slices.Sorted(maps.Keys(resources)) {
		resource := resources[key]
		their := transformers.TransformerForResource(resource)
		for size := range 70 {
			plain := []byte(`{"a":"` + string(bytes.Repeat([]byte("x"), size)) + `"}`)
			mine, err := ours.Encode(t.Context(), key, plain)
			if err != nil {
				t.Fatal(err)
			}
			if got, stale, err := their.TransformFromStorage(context.Background(), mine, value.DefaultContext(key)); err != nil || stale || !bytes.Equal(got, plain) {
				t.Fatalf("%s: kube-apiserver reads %q, stale %v, %v", key, got, stale, err)
			}
			sealed, err := their.TransformToStorage(context.Background(), plain, value.DefaultContext(key))
			if err != nil {
				t.Fatal(err)
			}
			if got := ours.Decode(t.Context(), key, sealed); !bytes.Equal(got, plain) || outdated(t, ours, key, sealed) {
				t.Fatalf("%s: read %q, outdated %v", key, got, outdated(t, ours, key, sealed))
			}
			// Damage, values of other keys, and values that are not encrypted.
			for _, damaged := range [][]byte{flip(r, sealed), flip(r, mine), sealed[:r.IntN(len(sealed))], plain} {
				compareDecryption(t, ours, their, key, damaged)
			}
		}
	}
}

// compareDecryption reads a value with both. The value may be damaged.
func compareDecryption(t *testing.T, ours *encrypt.Keyring, theirs value.Transformer, key string, stored []byte) {
	t.Helper()
	want, stale, err := decrypt(theirs, key, stored)
	got := ours.Decode(t.Context(), key, stored)
	switch {
	case err != nil && bytes.HasPrefix(got, []byte("{")):
		t.Fatalf("%s: %q is read as %q, want %v", key, stored, got, err)
	case err == nil && !bytes.Equal(got, want):
		t.Fatalf("%s: %q is read as %q, want %q", key, stored, got, want)
	case err == nil && stale != outdated(t, ours, key, stored):
		t.Fatalf("%s: %q is outdated: %v, want %v", key, stored, !stale, stale)
	}
}

// A value of a KMS with any damage is the same for both: they accept the same messages.
func TestDamagedValuesOfKMS(t *testing.T) {
	const at = "/registry/secrets/default/a"
	ours, theirs := both(t, fmt.Sprintf("{kms: {apiVersion: v2, name: damaged, endpoint: %q}}", startKMS(t).Endpoint()))
	sealed, err := theirs.TransformToStorage(t.Context(), []byte(`{"a":1}`), value.DefaultContext(at))
	if err != nil {
		t.Fatal(err)
	}
	prefix := []byte("k8s:enc:kms:v2:damaged:")
	message := bytes.TrimPrefix(sealed, prefix)
	r := rand.New(rand.NewPCG(3, 4))
	readable := 0
	for range 3000 {
		damaged := bytes.Clone(message)
		switch r.IntN(5) {
		case 0:
			damaged = flip(r, damaged)
		case 1: // a part twice
			from := r.IntN(len(damaged))
			damaged = slices.Insert(damaged, from, damaged[from:from+r.IntN(len(damaged)-from)]...)
		case 2: // a field that is unknown, of another type, or again
			damaged = append(damaged, byte(r.IntN(64)), byte(r.IntN(4)), byte(r.IntN(256)), byte(r.IntN(256)))
		case 3:
			from := r.IntN(len(damaged))
			damaged = slices.Delete(damaged, from, min(from+1+r.IntN(8), len(damaged)))
		case 4: // a field with a number that may be too large
			damaged = append(binary.AppendUvarint(damaged, uint64(r.Uint32()>>r.IntN(32))<<3), 0)
		}
		stored := slices.Concat(prefix, damaged)
		compareDecryption(t, ours, theirs, at, stored)
		if bytes.HasPrefix(ours.Decode(t.Context(), at, stored), []byte("{")) {
			readable++
		}
	}
	if readable == 0 || readable > 2000 {
		t.Errorf("%d of 3000 damaged values can be read: the test compares too little", readable)
	}
}

// Values of a plain AES key are read, as servers before v1.29 wrote them, and are outdated. So are those
// of an old key of the KMS.
func TestOldValuesOfKMS(t *testing.T) {
	const at, name = "/registry/secrets/default/a", "without-kdf"
	plain := []byte(`{"a":1}`)
	plugin := startKMS(t)
	provider := fmt.Sprintf("{kms: {apiVersion: v2, name: %s, endpoint: %q}}", name, plugin.Endpoint())
	done := encryptionconfig.SetKDFForTests(name, false)
	ours, theirs := both(t, provider)
	stored, err := theirs.TransformToStorage(t.Context(), plain, value.DefaultContext(at))
	done()
	if err != nil {
		t.Fatal(err)
	}
	if got := ours.Decode(t.Context(), at, stored); !bytes.Equal(got, plain) || !outdated(t, ours, at, stored) {
		t.Errorf("read %q, outdated %v", got, outdated(t, ours, at, stored))
	}
	if stored, err = ours.Encode(t.Context(), at, plain); err != nil {
		t.Fatal(err)
	}
	plugin.Rotate()
	ours, theirs = both(t, provider)
	if _, stale, err := theirs.TransformFromStorage(t.Context(), stored, value.DefaultContext(at)); err != nil || !stale {
		t.Fatalf("stale %v, %v", stale, err)
	}
	compareDecryption(t, ours, theirs, at, stored)
}

// Values of a key that is no longer the first one are outdated for both, also where the keys have one
// name, or names that begin alike.
func TestOldKeys(t *testing.T) {
	parse := func(keys string) (*encrypt.Keyring, value.Transformer) {
		return both(t, "{aesgcm: {keys: ["+keys+"]}}")
	}
	key := func(name string, seed byte) string {
		return fmt.Sprintf("{name: %q, secret: %q}", name, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{seed}, 32)))
	}
	const at = "/registry/secrets/default/a"
	plain := []byte(`{"a":1}`)
	for _, old := range []string{key("b", 2), key("a", 2), key("a:b", 2)} {
		before, _ := parse(old)
		now, theirs := parse(key("a", 1) + ", " + old)
		stored, err := before.Encode(t.Context(), at, plain)
		if err != nil {
			t.Fatal(err)
		}
		want, stale, err := theirs.TransformFromStorage(t.Context(), stored, value.DefaultContext(at))
		if err != nil || !stale {
			t.Fatalf("%s: kube-apiserver reads %q, stale %v, %v", old, want, stale, err)
		}
		if got := now.Decode(t.Context(), at, stored); !bytes.Equal(got, want) || !outdated(t, now, at, stored) {
			t.Errorf("%s: read %q, outdated %v", old, got, outdated(t, now, at, stored))
		}
	}
}

// both returns our encryption of Secrets by a provider, and theirs.
func both(t *testing.T, provider string) (*encrypt.Keyring, value.Transformer) {
	t.Helper()
	config := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: [" + provider + "]\n"
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, err := encryptionconfig.LoadEncryptionConfig(t.Context(), file, false, "")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseEncryption(config)
	if err != nil {
		t.Fatal(err)
	}
	return keyring(t, parsed), encryptionconfig.StaticTransformers(theirs.Transformers).TransformerForResource(schema.GroupResource{Resource: "secrets"})
}

func keyring(t *testing.T, c *encrypt.Config) *encrypt.Keyring {
	t.Helper()
	k := encrypt.NewKeyring(t.Context(), c, builtin.Stored(nil), nil)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// outdated reports whether a value that can be read is outdated.
func outdated(t *testing.T, k *encrypt.Keyring, key string, stored []byte) bool {
	t.Helper()
	stale, err := k.Outdated(t.Context(), key, stored)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return stale
}

func startKMS(t *testing.T) *kmstest.Plugin {
	t.Helper()
	p, err := kmstest.Start(filepath.Join(t.TempDir(), "kms.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// decrypt decrypts a value. kube-apiserver panics on the beginning of a value of AES-CBC.
func decrypt(t value.Transformer, key string, sealed []byte) (plain []byte, stale bool, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return t.TransformFromStorage(context.Background(), sealed, value.DefaultContext(key))
}

func parseEncryption(config string) (*encrypt.Config, error) {
	in, err := configfile.Decode[*apiserver.EncryptionConfiguration]([]byte(config), "EncryptionConfiguration")
	if err != nil {
		return nil, err
	}
	return encrypt.New(in, encrypt.Options{Gates: gate.With(map[gate.Name]bool{gate.KMSv1: true})})
}

// flip returns a copy of data with a flipped bit.
func flip(r *rand.Rand, data []byte) []byte {
	out := bytes.Clone(data)
	out[r.IntN(len(out))] ^= 1 << r.IntN(8)
	return out
}
