package oracle

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/store/encrypt"
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
- resources: ["*.*"]
  providers: [{aesgcm: {keys: [{name: all, secret: %[2]q}]}}, {identity: {}}]
`, secret(1), secret(2))
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
	ours := encrypt.NewKeyring(parsed, builtin.Stored(), nil)
	transformers := encryptionconfig.StaticTransformers(theirs.Transformers)
	r := rand.New(rand.NewPCG(1, 2))
	resources := map[string]schema.GroupResource{
		"/registry/secrets/default/a":                                {Resource: "secrets"},
		"/registry/configmaps/default/a":                             {Resource: "configmaps"},
		"/registry/events/default/a":                                 {Resource: "events"},
		"/registry/deployments/default/a":                            {Group: "apps", Resource: "deployments"},
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
			mine := ours.Encode(key, plain)
			if got, stale, err := their.TransformFromStorage(context.Background(), mine, value.DefaultContext(key)); err != nil || stale || !bytes.Equal(got, plain) {
				t.Fatalf("%s: kube-apiserver reads %q, stale %v, %v", key, got, stale, err)
			}
			sealed, err := their.TransformToStorage(context.Background(), plain, value.DefaultContext(key))
			if err != nil {
				t.Fatal(err)
			}
			if got := ours.Decode(key, sealed); !bytes.Equal(got, plain) || ours.Outdated(key, sealed) {
				t.Fatalf("%s: read %q, outdated %v", key, got, ours.Outdated(key, sealed))
			}
			// Damage, values of other keys, and values that are not encrypted.
			for _, damaged := range [][]byte{flip(r, sealed), flip(r, mine), sealed[:r.IntN(len(sealed))], plain} {
				want, stale, err := decrypt(their, key, damaged)
				got := ours.Decode(key, damaged)
				switch {
				case err != nil && bytes.HasPrefix(got, []byte("{")):
					t.Fatalf("%s: %q is read as %q, want %v", key, damaged, got, err)
				case err == nil && !bytes.Equal(got, want):
					t.Fatalf("%s: %q is read as %q, want %q", key, damaged, got, want)
				case err == nil && stale != ours.Outdated(key, damaged):
					t.Fatalf("%s: %q is outdated: %v, want %v", key, damaged, ours.Outdated(key, damaged), stale)
				}
			}
		}
	}
}

// Values of a key that is no longer the first one are outdated for both, also where the keys have one
// name, or names that begin alike.
func TestOldKeys(t *testing.T) {
	parse := func(keys string) (*encrypt.Keyring, value.Transformer) {
		config := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: [{aesgcm: {keys: [" + keys + "]}}]\n"
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
		secrets := schema.GroupResource{Resource: "secrets"}
		return encrypt.NewKeyring(parsed, builtin.Stored(), nil), encryptionconfig.StaticTransformers(theirs.Transformers).TransformerForResource(secrets)
	}
	key := func(name string, seed byte) string {
		return fmt.Sprintf("{name: %q, secret: %q}", name, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{seed}, 32)))
	}
	const at = "/registry/secrets/default/a"
	plain := []byte(`{"a":1}`)
	for _, old := range []string{key("b", 2), key("a", 2), key("a:b", 2)} {
		before, _ := parse(old)
		now, theirs := parse(key("a", 1) + ", " + old)
		stored := before.Encode(at, plain)
		want, stale, err := theirs.TransformFromStorage(t.Context(), stored, value.DefaultContext(at))
		if err != nil || !stale {
			t.Fatalf("%s: kube-apiserver reads %q, stale %v, %v", old, want, stale, err)
		}
		if got := now.Decode(at, stored); !bytes.Equal(got, want) || !now.Outdated(at, stored) {
			t.Errorf("%s: read %q, outdated %v", old, got, now.Outdated(at, stored))
		}
	}
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
	return encrypt.New(in)
}

// flip returns a copy of data with a flipped bit.
func flip(r *rand.Rand, data []byte) []byte {
	out := bytes.Clone(data)
	out[r.IntN(len(out))] ^= 1 << r.IntN(8)
	return out
}
