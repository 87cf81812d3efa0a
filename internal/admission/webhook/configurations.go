package webhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/admission/match"
	client "github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// configurations are the stored configurations of one kind, and those from files.
type configurations struct {
	read        func(data []byte) (name string, webhooks []definition, err error)
	credentials func(client.Config) *client.Credentials
	log         *slog.Logger

	stored     *stored.Follower
	unreadable stored.Unreadable
	// all has all webhooks, and static those from files.
	all, static match.Index[*hook]

	mu     sync.Mutex
	byKey  map[string]configuration // the stored ones
	inFile []match.Entry[*hook]
}

// A configuration is a list of webhooks.
type configuration struct {
	name     string
	webhooks []match.Entry[*hook]
}

// follow starts to follow the stored configurations of a kind.
func (c *configurations) follow(o *Options, plural string) {
	c.byKey, c.log = map[string]configuration{}, o.Log
	c.stored = stored.Follow(o.Cache, o.Kinds, []schema.GroupResource{{Group: admissionv1.GroupName, Resource: plural}}, c.apply)
}

func (c *configurations) apply(_ int, changes stored.Changes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes.Anew() {
		clear(c.byKey)
		c.unreadable.Clear("")
	}
	for o, exists := range changes.All() {
		if exists {
			c.set(o)
		} else {
			delete(c.byKey, o.Key)
			c.unreadable.Set(o, nil)
		}
	}
	c.index()
}

func (c *configurations) set(o *watchcache.Object) {
	data, err := o.JSON()
	if err == nil {
		var made configuration
		if made, err = c.make(data, ""); err == nil {
			c.byKey[o.Key] = made
			c.unreadable.Set(o, nil)
			return
		}
	}
	delete(c.byKey, o.Key)
	c.unreadable.Set(o, err)
	c.log.Error("a webhook configuration cannot be read, and writes are rejected", "key", o.Key, "error", err)
}

// make decodes a configuration from JSON. prefix begins the ids of its webhooks.
func (c *configurations) make(data []byte, prefix string) (made configuration, err error) {
	var webhooks []definition
	if made.name, webhooks, err = c.read(data); err != nil {
		return made, err
	}
	names := map[string]int{}
	for i := range webhooks {
		d := &webhooks[i]
		d.configuration = made.name
		made.webhooks = append(made.webhooks, d.entry(fmt.Sprintf("%s%s/%s/%d", prefix, made.name, d.name, names[d.name]), c.credentials))
		names[d.name]++
	}
	return made, nil
}

// index sorts the webhooks in calling order: those from files first, then by the name of the
// configuration.
func (c *configurations) index() {
	all := slices.Clone(c.inFile)
	byName := slices.Collect(maps.Values(c.byKey))
	order.Stable(byName, func(a, b configuration) int { return cmp.Compare(a.name, b.name) })
	for _, of := range byName {
		all = append(all, of.webhooks...)
	}
	for i := range all {
		h := *all[i].Of // a copy: calls may still use the old place
		h.place = i
		all[i].Of = &h
	}
	c.static.Replace(all[:len(c.inFile)])
	c.all.Replace(all)
}

func readMutating(data []byte) (string, []definition, error) {
	var in admissionv1.MutatingWebhookConfiguration
	if err := json.Unmarshal(data, &in); err != nil {
		return "", nil, err
	}
	all := make([]definition, len(in.Webhooks))
	for i := range in.Webhooks {
		w := &in.Webhooks[i]
		all[i] = definition{
			name: w.Name, client: &w.ClientConfig, rules: w.Rules, failure: w.FailurePolicy, match: w.MatchPolicy,
			namespaces: w.NamespaceSelector, objects: w.ObjectSelector, sideEffects: w.SideEffects, timeout: w.TimeoutSeconds,
			versions: w.AdmissionReviewVersions, reinvocation: w.ReinvocationPolicy, conditions: w.MatchConditions,
		}
	}
	return in.Name, all, nil
}

func readValidating(data []byte) (string, []definition, error) {
	var in admissionv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal(data, &in); err != nil {
		return "", nil, err
	}
	all := make([]definition, len(in.Webhooks))
	for i := range in.Webhooks {
		w := &in.Webhooks[i]
		all[i] = definition{
			name: w.Name, client: &w.ClientConfig, rules: w.Rules, failure: w.FailurePolicy, match: w.MatchPolicy,
			namespaces: w.NamespaceSelector, objects: w.ObjectSelector, sideEffects: w.SideEffects, timeout: w.TimeoutSeconds,
			versions: w.AdmissionReviewVersions, conditions: w.MatchConditions,
		}
	}
	return in.Name, all, nil
}
