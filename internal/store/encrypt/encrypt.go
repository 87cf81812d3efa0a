// Package encrypt encrypts stored values, as an EncryptionConfiguration of Kubernetes says.
//
// A Keyring has the keys of each resource. It implements transform.Transformer: values are encrypted on
// their way to a store and decrypted on their way back, so the file of a store, its history and its
// backups have no plain value of a covered resource. The stored bytes are those of kube-apiserver: each
// reads what the other wrote over one etcd.
//
// A value that no key decrypts stays as it is. Its readers fail, and other reads do not.
//
// The package knows keys of the store and bytes. It does not know objects, files or the processes that
// hold keys of a KMS.
package encrypt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"

	"github.com/anykind/anykind/internal/object/resource"
)

// marked begins every encrypted value.
const marked = "k8s:enc:"

// Overhead is more than an encrypted value is longer than a plain one, unless the name of a key is very
// long.
const Overhead = 1 << 10

// A Config has the keys of an EncryptionConfiguration.
type Config struct {
	rings map[schema.GroupResource]ring
}

// A ring has the keys of a resource. The first one encrypts; "plain" values are read if it may.
type ring struct {
	keys  []*key // in order; nil is identity
	plain bool   // values that are not encrypted are read
}

// A key is a named key of a provider.
type key struct {
	prefix string
	cipher cipher
}

// New returns the Config of an EncryptionConfiguration. Its errors are those of kube-apiserver.
func New(in *apiserver.EncryptionConfiguration) (*Config, error) {
	if errs := validation.ValidateEncryptionConfiguration(in, true); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	c := &Config{rings: map[schema.GroupResource]ring{}}
	for _, r := range in.Resources {
		ring, err := newRing(r.Providers)
		if err != nil {
			return nil, err
		}
		for _, name := range r.Resources {
			if err := c.add(schema.ParseGroupResource(name), ring); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// add adds the ring of a resource. A rule that an earlier one covers is an error; a resource that is
// named twice has the keys of both.
func (c *Config) add(r schema.GroupResource, keys ring) error {
	for _, wide := range []schema.GroupResource{{Group: r.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if wide == r {
			continue
		}
		if _, masked := c.rings[wide]; masked {
			return fmt.Errorf("resource %q is masked by earlier rule %q", named(r), named(wide))
		}
	}
	before := c.rings[r]
	c.rings[r] = ring{slices.Concat(before.keys, keys.keys), before.plain || keys.plain}
	return nil
}

// named returns a resource as configurations name it.
func named(r schema.GroupResource) string {
	if r.Group == "" && r.Resource == "*" {
		return "*."
	}
	return r.String()
}

func newRing(providers []apiserver.ProviderConfiguration) (out ring, err error) {
	for _, p := range providers {
		switch {
		case p.Identity != nil:
			out.keys, out.plain = append(out.keys, nil), true
		case p.AESGCM != nil:
			err = out.add("aesgcm", p.AESGCM.Keys, newGCM)
		case p.AESCBC != nil:
			err = out.add("aescbc", p.AESCBC.Keys, newCBC)
		case p.Secretbox != nil:
			err = out.add("secretbox", p.Secretbox.Keys, newSecretbox)
		default:
			err = fmt.Errorf("provider kms %q: anykind does not support KMS yet: use aescbc, aesgcm or secretbox", p.KMS.Name)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// of returns the ring of a resource; ok is false if the configuration does not cover it.
func (c *Config) of(r schema.GroupResource) (found ring, ok bool) {
	for _, rule := range []schema.GroupResource{r, {Group: r.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if found, ok = c.rings[rule]; ok {
			return found, true
		}
	}
	return ring{}, false
}

// A Keyring encrypts and decrypts the values of a store with the newest configuration.
type Keyring struct {
	config   atomic.Pointer[Config]
	builtIn  map[string]schema.GroupResource // by the prefix of the keys
	external func(key string) string         // the key in the store that authenticates a value
}

// NewKeyring returns a Keyring for the keys of the built-in kinds and of all custom ones. external
// returns the name of a key in the store; nil if it is the key. Ciphers may authenticate that name.
func NewKeyring(c *Config, kinds []*resource.Definition, external func(key string) string) *Keyring {
	k := &Keyring{builtIn: map[string]schema.GroupResource{}, external: external}
	for _, d := range kinds {
		if _, ok := k.builtIn[d.StoragePrefix]; d.Plural != "" && (!ok || d.Group == "") { // events have two groups
			k.builtIn[d.StoragePrefix] = d.GroupResource()
		}
	}
	k.config.Store(c)
	return k
}

// Use puts a configuration in force, for values that are read or written from now on.
func (k *Keyring) Use(c *Config) { k.config.Store(c) }

// ringOf returns the ring of a key; ok is false if its values are plain.
func (k *Keyring) ringOf(key string) (ring, bool) {
	group, plural, _ := resource.SplitCustom(key)
	if r, ok := k.builtIn[resource.Root+group+"/"]; ok {
		return k.config.Load().of(r)
	}
	if r, ok := k.builtIn[resource.CustomPrefix(group, plural)]; ok {
		return k.config.Load().of(r)
	}
	if !strings.Contains(group, ".") || strings.HasPrefix(group, ".") { // an internal key
		return ring{}, false
	}
	return k.config.Load().of(schema.GroupResource{Group: group, Resource: plural})
}

func (k *Keyring) authenticated(key string) []byte {
	if k.external != nil {
		key = k.external(key)
	}
	return []byte(key)
}

// Encode implements transform.Transformer.
func (k *Keyring) Encode(name string, plain []byte) []byte {
	r, ok := k.ringOf(name)
	if !ok || r.keys[0] == nil {
		return plain
	}
	first := r.keys[0]
	return first.cipher.seal([]byte(first.prefix), plain, k.authenticated(name))
}

// Decode implements transform.Transformer.
func (k *Keyring) Decode(name string, stored []byte) []byte {
	if !bytes.HasPrefix(stored, []byte(marked)) {
		if r, ok := k.ringOf(name); ok && !r.plain {
			return unreadable
		}
		return stored
	}
	r, _ := k.ringOf(name)
	for _, key := range r.keys {
		if key == nil || !bytes.HasPrefix(stored, []byte(key.prefix)) {
			continue
		}
		// Two keys may have one name: the first one is new, the other old.
		if plain, ok := key.cipher.open(stored[len(key.prefix):], k.authenticated(name)); ok {
			return plain
		}
	}
	return stored
}

// unreadable is the value of a plain object where only encrypted ones may be read.
var unreadable = []byte(marked + "none: the stored value is not encrypted, and the resource has no provider identity")

// Outdated reports whether a value must be written again, although it does not change: another key or
// another provider encrypts values of the resource now.
func (k *Keyring) Outdated(name string, stored []byte) bool {
	r, ok := k.ringOf(name)
	encrypted := bytes.HasPrefix(stored, []byte(marked))
	switch {
	case !ok:
		return false
	case r.keys[0] == nil:
		return encrypted
	case !bytes.HasPrefix(stored, []byte(r.keys[0].prefix)):
		return true
	}
	// A later key may have the same name, or one that begins like it.
	first := r.keys[0]
	_, ok = first.cipher.open(stored[len(first.prefix):], k.authenticated(name))
	return !ok
}
