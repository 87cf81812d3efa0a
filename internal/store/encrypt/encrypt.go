// Package encrypt encrypts stored values, as an EncryptionConfiguration of Kubernetes says.
//
// A Keyring has the keys of each resource. It implements transform.Transformer: values are encrypted on
// their way to a store and decrypted on their way back, so the file of a store, its history and its
// backups have no plain value of a covered resource. The stored bytes are those of kube-apiserver: each
// reads what the other wrote over one etcd.
//
// Readers of a value that no key decrypts fail, and other reads do not. The Keyring reports when such
// values may be readable: after a new configuration, and when a KMS works again.
//
// The package knows keys of the store and bytes. It does not know objects or files. Package kms knows the
// plugins of a KMS.
package encrypt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/encrypt/kms"
)

// marked begins every encrypted value.
const marked = "k8s:enc:"

// Overhead is more than an encrypted value is longer than a plain one, unless the name of a key is very
// long.
const Overhead = kms.Overhead

// Options of a Config. The zero value works.
type Options struct {
	Metrics *Metrics     // nil for none
	Log     *slog.Logger // nil logs nothing
	Gates   *gate.Set
}

// A Config has the keys of an EncryptionConfiguration.
type Config struct {
	rings    map[schema.GroupResource]ring
	plugins  []plugin // in order
	old      bool     // a plugin has version 1 of the protocol
	metrics  *Metrics
	readable chan struct{} // of the Keyring

	in      *apiserver.EncryptionConfiguration
	options Options
}

// A plugin is a KMS plugin, with one of the versions of the protocol.
type plugin interface {
	// Start begins work in the background, until Close.
	Start(context.Context)
	Close() error
	// Check returns the problem of the plugin, and Timeout the time that it may take.
	Check(context.Context) error
	Timeout() time.Duration
	Seal(dst, plain, data []byte) ([]byte, error)
	Open(ctx context.Context, sealed, data []byte) (plain []byte, stale bool, err error)
}

// A ring has the keys of a resource. The first one encrypts.
type ring struct {
	resource string // for metrics
	keys     []*key // in order; nil is identity
}

// A key is a named key of a provider, or a KMS.
type key struct {
	prefix string
	kind   string // the prefix in metrics
	cipher cipher
}

// New returns the Config of an EncryptionConfiguration. Its errors are those of kube-apiserver. A Config
// with a KMS does not work before a Keyring has started it.
func New(in *apiserver.EncryptionConfiguration, o Options) (*Config, error) {
	if errs := validation.ValidateEncryptionConfiguration(in, true); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics("")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &Config{rings: map[schema.GroupResource]ring{}, metrics: o.Metrics, in: in, options: o}
	for _, r := range in.Resources {
		keys, err := c.keys(r.Providers, o)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		for _, name := range r.Resources {
			if err := c.add(schema.ParseGroupResource(name), keys); err != nil {
				return nil, errors.Join(err, c.close())
			}
		}
	}
	return c, nil
}

// Copy returns a Config of the same EncryptionConfiguration, with connections of its own to each KMS. The Keyring
// of a Config closes them, so each Keyring needs its own Config.
func (c *Config) Copy() (*Config, error) { return New(c.in, c.options) }

// add adds the keys of a resource. A rule that an earlier one covers is an error; a resource that is
// named twice has the keys of both.
func (c *Config) add(r schema.GroupResource, keys []*key) error {
	for _, wide := range rulesFor(r) {
		if wide == r {
			continue
		}
		if _, masked := c.rings[wide]; masked {
			return fmt.Errorf("resource %q is masked by earlier rule %q", named(r), named(wide))
		}
	}
	c.rings[r] = ring{keys: slices.Concat(c.rings[r].keys, keys)}
	return nil
}

// named returns a resource as configurations name it.
func named(r schema.GroupResource) string {
	if r.Group == "" && r.Resource == "*" {
		return "*."
	}
	return r.String()
}

// keys returns the keys of providers, and adds their plugins.
func (c *Config) keys(providers []apiserver.ProviderConfiguration, o Options) (all []*key, err error) {
	for _, p := range providers {
		var some []*key
		switch {
		case p.Identity != nil:
			some = []*key{nil}
		case p.AESGCM != nil:
			some, err = keysOf("aesgcm", p.AESGCM.Keys, newGCM)
		case p.AESCBC != nil:
			some, err = keysOf("aescbc", p.AESCBC.Keys, newCBC)
		case p.Secretbox != nil:
			some, err = keysOf("secretbox", p.Secretbox.Keys, newSecretbox)
		default:
			some, err = c.plugin(p.KMS, o)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// plugin returns the key of a KMS, and adds its plugin.
func (c *Config) plugin(in *apiserver.KMSConfiguration, o Options) ([]*key, error) {
	options := kms.Options{Metrics: o.Metrics.Metrics, Log: o.Log, Readable: func() { signal(c.readable) }}
	var p plugin
	var err error
	switch {
	case in.APIVersion != "v1":
		p, err = kms.Open(in, options)
	case !o.Gates.On(gate.KMSv1):
		err = fmt.Errorf("KMS provider %q: KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.", in.Name)
	default:
		o.Log.Warn("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.", "provider", in.Name)
		p, err = kms.OpenEnvelope(in, options)
		c.old = true
	}
	if err != nil {
		return nil, err
	}
	c.plugins = append(c.plugins, p)
	prefix := marked + "kms:" + cmp.Or(in.APIVersion, "v2") + ":" + in.Name + ":"
	return []*key{{prefix: prefix, kind: prefix, cipher: external{p}}}, nil
}

// start starts the plugins.
func (c *Config) start(ctx context.Context) {
	for _, p := range c.plugins {
		p.Start(ctx)
	}
}

// close ends the plugins. It may be called without start.
func (c *Config) close() error {
	var errs []error
	for _, p := range c.plugins {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// check returns the problems of the plugins.
func (c *Config) check(ctx context.Context) error {
	var errs []error
	for i, p := range c.plugins {
		if err := p.Check(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", checkName(i), err))
		}
	}
	return utilerrors.Reduce(utilerrors.NewAggregate(errs))
}

// checkName returns the name of the check of a plugin.
func checkName(i int) string { return fmt.Sprint("kms-provider-", i) }

// grace returns the time for calls that are under way, twice the timeouts of all plugins.
func (c *Config) grace() (d time.Duration) {
	for _, p := range c.plugins {
		d += 2 * p.Timeout()
	}
	return d
}

// rulesFor returns the rules that cover a resource, the narrowest first.
func rulesFor(r schema.GroupResource) [3]schema.GroupResource {
	return [...]schema.GroupResource{r, {Group: r.Group, Resource: "*"}, {Group: "*", Resource: "*"}}
}

// of returns the ring of a resource; ok is false if the configuration does not cover it.
func (c *Config) of(r schema.GroupResource) (found ring, ok bool) {
	for _, rule := range rulesFor(r) {
		if found, ok = c.rings[rule]; ok {
			found.resource = r.String()
			return found, true
		}
	}
	return ring{}, false
}
