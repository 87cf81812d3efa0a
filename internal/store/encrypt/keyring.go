package encrypt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/resource"
)

// A Keyring encrypts and decrypts the values of a store with the newest configuration.
type Keyring struct {
	config   atomic.Pointer[Config]
	covered  sync.Map                        // schema.GroupResource of the rules of all configurations so far
	builtIn  map[string]schema.GroupResource // by the prefix of the keys
	external func(key string) string         // the key in the store that authenticates a value
	readable chan struct{}
	rekeyed  chan struct{}

	closed  context.Context // done after Close
	close   context.CancelFunc
	closing sync.WaitGroup // former configurations
}

// NewKeyring returns a Keyring for the keys of the built-in kinds and of all custom ones. external
// returns the name of a key in the store; nil if it is the key. Ciphers may authenticate that name.
//
// It polls each KMS once, and then in the background until Close. The Config must have no other Keyring; a Copy of it may.
func NewKeyring(ctx context.Context, c *Config, kinds []*resource.Definition, external func(key string) string) *Keyring {
	k := &Keyring{builtIn: map[string]schema.GroupResource{}, external: external, readable: make(chan struct{}, 1), rekeyed: make(chan struct{}, 1)}
	k.closed, k.close = context.WithCancel(context.WithoutCancel(ctx))
	for _, d := range kinds {
		if _, ok := k.builtIn[d.StoragePrefix]; d.Plural != "" && (!ok || d.Group == "") { // events have two groups
			k.builtIn[d.StoragePrefix] = d.GroupResource()
		}
	}
	c.readable = k.readable
	c.start(ctx)
	k.cover(c)
	k.config.Store(c)
	return k
}

// Close ends the calls of KMS plugins.
func (k *Keyring) Close() error {
	k.close()
	k.closing.Wait()
	return k.config.Load().close()
}

// minHealthy is the shortest time for the plugins of a new configuration to become healthy.
const minHealthy = 10 * time.Second

// Use puts a configuration in force, for values that are read or written from now on. Its plugins must
// become healthy first; with an error, the one before stays in force, and the new one is closed.
func (k *Keyring) Use(ctx context.Context, c *Config) error {
	c.readable = k.readable
	c.start(ctx)
	if err := c.untilHealthy(ctx); err != nil {
		return errors.Join(err, c.close())
	}
	k.cover(c)
	old := k.config.Swap(c)
	k.closing.Go(func() {
		select {
		case <-time.After(old.grace()):
		case <-k.closed.Done():
		}
		_ = old.close() // its connections are not used any more
	})
	signal(k.rekeyed)
	return nil
}

func (c *Config) untilHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(c.grace(), minHealthy))
	defer cancel()
	for {
		err := c.check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("health check for new transformers failed: %w", err)
		}
	}
}

// A Check returns the problems of KMS plugins.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Checks returns the checks of the KMS plugins: one for all of them, also of later configurations, or one for each if
// a plugin has version 1 of the protocol and there are no later configurations.
func (k *Keyring) Checks(reloads bool) (all []Check) {
	c := k.config.Load()
	switch {
	case reloads || len(c.plugins) > 0 && !c.old:
		return []Check{{"kms-providers", func(ctx context.Context) error { return k.config.Load().check(ctx) }}}
	case len(c.plugins) == 0:
		return nil
	}
	for i, p := range c.plugins {
		all = append(all, Check{checkName(i), p.Check})
	}
	return all
}

// Readable receives after values that could not be decrypted may have become readable.
func (k *Keyring) Readable() <-chan struct{} { return k.readable }

// Rekeyed receives after another configuration was put in force. Values with a prefix that Covers accepts may have become
// readable or unreadable.
func (k *Keyring) Rekeyed() <-chan struct{} { return k.rekeyed }

// Covers reports whether a configuration so far has a rule for the values with a prefix.
func (k *Keyring) Covers(prefix string) bool {
	r, ok := k.resourceOf(prefix)
	if !ok {
		return false
	}
	for _, rule := range rulesFor(r) {
		if _, ok := k.covered.Load(rule); ok {
			return true
		}
	}
	return false
}

func (k *Keyring) cover(c *Config) {
	for rule := range c.rings {
		k.covered.Store(rule, true)
	}
}

// Lost reports whether the error of a read tells that no key for the value is there any more, and not that a KMS does not
// answer.
func Lost(err error) bool { return errors.Is(err, errNoKey) || errors.Is(err, errEncrypted) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// ringOf returns the ring of a key; ok is false if its values are plain.
func (k *Keyring) ringOf(key string) (ring, bool) {
	r, ok := k.resourceOf(key)
	if !ok {
		return ring{}, false
	}
	return k.config.Load().of(r)
}

// resourceOf returns the resource of a key; ok is false for an internal key.
func (k *Keyring) resourceOf(key string) (schema.GroupResource, bool) {
	group, plural, _ := resource.SplitCustom(key)
	if r, ok := k.builtIn[resource.Root+group+"/"]; ok {
		return r, true
	}
	if r, ok := k.builtIn[resource.CustomPrefix(group, plural)]; ok {
		return r, true
	}
	return schema.GroupResource{Group: group, Resource: plural}, strings.Contains(group, ".") && !strings.HasPrefix(group, ".")
}

func (k *Keyring) authenticated(key string) []byte {
	if k.external != nil {
		key = k.external(key)
	}
	return []byte(key)
}

// Encode implements transform.Transformer.
func (k *Keyring) Encode(_ context.Context, name string, plain []byte) (stored []byte, err error) {
	r, ok := k.ringOf(name)
	if !ok {
		return plain, nil
	}
	m, start, first := k.config.Load().metrics, time.Now(), r.keys[0]
	if first == nil {
		m.record(r.resource, "to_storage", "", start, nil)
		return plain, nil
	}
	stored, err = first.cipher.seal([]byte(first.prefix), plain, k.authenticated(name))
	m.record(r.resource, "to_storage", first.kind, start, err)
	return stored, err
}

// Decode implements transform.Transformer.
func (k *Keyring) Decode(ctx context.Context, name string, stored []byte) []byte {
	plain, err := k.Open(ctx, name, stored)
	switch {
	case err == nil:
		return plain
	case Encrypted(stored):
		return stored
	}
	return unreadable
}

// Encrypted reports whether a stored value is encrypted.
func Encrypted(stored []byte) bool { return bytes.HasPrefix(stored, []byte(marked)) }

// Open returns the plain form of a stored value.
func (k *Keyring) Open(ctx context.Context, name string, stored []byte) (plain []byte, err error) {
	plain, _, err = k.read(ctx, name, stored)
	return plain, err
}

// unreadable is the value of a plain object where only encrypted ones may be read.
var unreadable = []byte(marked + "none: the stored value is not encrypted, and the resource has no provider identity")

// Outdated implements transform.Former: another key or another provider encrypts values of the resource
// now.
func (k *Keyring) Outdated(ctx context.Context, name string, stored []byte) (bool, error) {
	_, stale, err := k.read(ctx, name, stored)
	return stale, err
}

var (
	errEncrypted = errors.New("identity transformer tried to read encrypted data")
	errNoKey     = errors.New("no matching prefix found")
)

// read decrypts a value. stale reports that Encode would use another key.
func (k *Keyring) read(ctx context.Context, name string, stored []byte) (plain []byte, stale bool, err error) {
	r, ok := k.ringOf(name)
	encrypted := Encrypted(stored)
	switch {
	case !ok && encrypted:
		return nil, false, errEncrypted
	case !ok:
		return stored, false, nil
	}
	m, start := k.config.Load().metrics, time.Now()
	var errs []error
	for i, key := range r.keys {
		if key == nil && !encrypted {
			m.record(r.resource, "from_storage", "identity", start, nil)
			return stored, i > 0, nil
		}
		if key == nil || !bytes.HasPrefix(stored, []byte(key.prefix)) {
			continue
		}
		// Two keys may have one name: the first one is new, the other old.
		plain, stale, err := key.cipher.open(ctx, stored[len(key.prefix):], k.authenticated(name))
		m.record(r.resource, "from_storage", key.kind, start, err)
		if err == nil {
			return plain, stale || i > 0, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		m.record(r.resource, "from_storage", "unknown", start, errNoKey)
		return nil, false, errNoKey
	}
	return nil, false, utilerrors.Reduce(utilerrors.NewAggregate(errs))
}
