package serviceaccount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	storedobjects "github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// stored gives access to the objects that tokens depend on.
type stored struct {
	cache                          *watchcache.Cache
	accounts, secrets, pods, nodes kind
	validating, mutating           kind
	gates                          *gate.Set
}

// A kind has the cached objects of one resource.
type kind struct {
	*watchcache.Resource
	definition *resource.Definition
}

func newStored(p Dependencies) stored {
	of := func(d *resource.Definition) kind { return kind{p.Cache.Resource(d.StoragePrefix), d} }
	return stored{
		cache: p.Cache, accounts: of(p.Accounts), secrets: of(p.Secrets), pods: of(p.Pods), nodes: of(p.Nodes),
		validating: of(p.ValidatingWebhooks), mutating: of(p.MutatingWebhooks), gates: p.Gates,
	}
}

// keys are the store keys of the objects that a token depends on; "" for none.
type keys struct{ account, secret, pod, node, validating, mutating string }

func (s *stored) keysOf(v *verdict) (k keys) {
	if v.legacy {
		return keys{
			account: s.accounts.definition.Key(v.Namespace, v.AccountName),
			secret:  s.secrets.definition.Key(v.Namespace, v.SecretName),
		}
	}
	c := &v.Kubernetes
	k.account = s.accounts.definition.Key(c.Namespace, c.Account.Name)
	if c.Secret != nil {
		k.secret = s.secrets.definition.Key(c.Namespace, c.Secret.Name)
	}
	switch {
	case c.Pod != nil:
		k.pod = s.pods.definition.Key(c.Namespace, c.Pod.Name) // the node is informational
	case c.Node != nil:
		k.node = s.nodes.definition.Key("", c.Node.Name)
	}
	if c.Validating != nil {
		k.validating = s.validating.definition.Key("", c.Validating.Name)
	}
	if c.Mutating != nil {
		k.mutating = s.mutating.definition.Key("", c.Mutating.Name)
	}
	return k
}

// fresh waits until the cache has all earlier deletions, also of other servers. While the store is
// unavailable, the cached state counts.
func (s *stored) fresh(ctx context.Context) { _ = storedobjects.Fresh(ctx, s.cache) }

var errInvalidated = errors.New("service account token has been invalidated")

// check checks that all objects that a token depends on exist and were not deleted before a time.
func (s *stored) check(ctx context.Context, v *verdict, before time.Time) error {
	s.fresh(ctx)
	c := &v.Kubernetes
	account, err := s.account(ctx, v.keys.account, c.Account.Name)
	switch {
	case err != nil:
		return err
	case account.UID() != c.Account.UID:
		return fmt.Errorf("service account UID (%s) does not match claim (%s)", account.UID(), c.Account.UID)
	case deleted(account, before):
		return fmt.Errorf("service account %s/%s has been deleted", c.Namespace, c.Account.Name)
	}
	if err := s.secrets.check(ctx, v.keys.secret, c.Secret, before, "secret UID (%s) does not match service account secret ref claim (%s)"); err != nil {
		return err
	}
	if err := s.pods.check(ctx, v.keys.pod, c.Pod, before, "pod UID (%s) does not match service account pod ref claim (%s)"); err != nil {
		return err
	}
	if err := s.nodes.check(ctx, v.keys.node, c.Node, before, "node UID (%s) does not match service account node ref claim (%s)"); err != nil {
		return err
	}
	return s.checkWebhook(ctx, v, before)
}

// checkWebhook checks the webhook configuration that a token is bound to.
func (s *stored) checkWebhook(ctx context.Context, v *verdict, before time.Time) error {
	c := &v.Kubernetes
	switch {
	case c.Validating == nil && c.Mutating == nil:
		return nil
	case !s.gates.On(gate.APIServerWebhookAuthenticationToken):
		return fmt.Errorf("feature gate %q is disabled, but token is webhook bound", gate.APIServerWebhookAuthenticationToken)
	case len(c.Attestations[reviewedGroups]) == 0:
		return fmt.Errorf("bound object was a webhook config, but %q attestation is missing", reviewedGroups)
	}
	const other = " UID (%s) does not match service account validating ref claim (%s)" // of both kinds
	if err := s.validating.check(ctx, v.keys.validating, c.Validating, before, "ValidatingWebhookConfiguration"+other); err != nil {
		return err
	}
	return s.mutating.check(ctx, v.keys.mutating, c.Mutating, before, "MutatingWebhookConfiguration"+other)
}

// account returns the service account at a key.
func (s *stored) account(ctx context.Context, key, name string) (*watchcache.Object, error) {
	if name == "" {
		return nil, errors.New("resource name may not be empty")
	}
	o, err := s.accounts.Get(ctx, key)
	if err == nil && o == nil {
		err = status.NotFound(s.accounts.definition.GroupResource(), name)
	}
	return o, err
}

// check checks that the object at a key is the one that the token is bound to. other is the error
// for a different object.
func (k kind) check(ctx context.Context, key string, ref *Reference, before time.Time, other string) error {
	if key == "" {
		return nil
	}
	o, err := k.Get(ctx, key)
	switch {
	case err != nil || o == nil:
		return errInvalidated
	case o.UID() != ref.UID:
		return fmt.Errorf(other, o.UID(), ref.UID)
	case deleted(o, before):
		return errInvalidated
	}
	return nil
}

// deleted reports whether the deletion time of an object is before a time.
func deleted(o *watchcache.Object, before time.Time) bool {
	if !o.Deleting() {
		return false
	}
	var m struct{ DeletionTimestamp metav1.Time }
	data, err := o.JSON()
	if err == nil {
		data, err = object.Field(data, "metadata")
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return err != nil || m.DeletionTimestamp.Time.Before(before)
}
