// Package clusterauthentication keeps the ConfigMap extension-apiserver-authentication in
// kube-system. It tells other API servers how to know the users of this one: by which
// authorities, and which front proxies are believed.
package clusterauthentication

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object"
)

// Name is what the controller is called.
const Name = "cluster_authentication_trust_controller"

// Where the ConfigMap is.
const (
	namespace = "kube-system"
	configMap = authn.ConfigMap
)

// Keys of its data.
const (
	clientCAs    = authn.ClientCAKey
	proxyCAs     = authn.ProxyCAKey
	allowedNames = authn.AllowedNamesKey
	usernames    = authn.UsernameHeadersKey
	uids         = authn.UIDHeadersKey
	groups       = authn.GroupHeadersKey
	extras       = authn.ExtraHeadersPrefixKey
)

const (
	// lookAgain is how long a change of the files of authorities may go unnoticed.
	lookAgain = time.Minute
	// expiredFor is how long an authority that has expired is still named: clocks differ.
	expiredFor = 5 * time.Minute
)

// Trust is how this server knows users.
type Trust struct {
	Clients func() *pki.Authorities
	// Proxies is nil if no front proxy is believed.
	Proxies      func() *pki.Authorities
	AllowedNames []string
	Headers      authn.ProxyHeaders
	// Reloaded says that the authorities come from files, which may change.
	Reloaded bool
}

// A Controller publishes a Trust. It has one task.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	trust   Trust
	key     string // of the ConfigMap
}

// New returns what makes the controller.
func New(t Trust) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o, queue: q, trust: t, key: o.Lookup("", "configmaps").Key(namespace, configMap)}
	}
}

// Keys returns that of the ConfigMap, and of the namespace that it needs.
func (c *Controller) Keys() []string {
	return []string{c.key, c.objects.Prefix("", "namespaces") + namespace}
}

// See looks at the ConfigMap when it was changed, and at the start, when its namespace is seen.
func (c *Controller) See(*controller.Event) { c.queue.Add(controller.Task{}) }

// Do makes the ConfigMap what it is to be, and looks again whether the authorities are still
// the same.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if c.trust.Reloaded {
		c.queue.After(t, lookAgain)
	}
	return c.objects.InNamespace(ctx, namespace, func() error { return c.publish(ctx) })
}

func (c *Controller) publish(ctx context.Context) error {
	found, err := c.objects.Read(ctx, c.key)
	if err != nil {
		return err
	}
	d := c.objects.Lookup("", "configmaps")
	if found == nil {
		data, err := c.combined(nil)
		if err != nil {
			return err
		}
		return c.objects.Create(ctx, d, namespace, object.Tree{
			"metadata": object.Tree{"name": configMap, "namespace": namespace}, "data": data,
		})
	}
	var failed error
	err = c.objects.Change(ctx, d, c.key, found.UID, "", func(t object.Tree) bool {
		before, _ := t["data"].(object.Tree)
		data, err := c.combined(before)
		if failed = err; err != nil || object.Equal(t["data"], data) {
			return false
		}
		t["data"] = data
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}

// combined returns what the ConfigMap says, and what this server says: several servers may
// share a store. What was there and cannot be read is an error, not lost.
func (c *Controller) combined(before object.Tree) (object.Tree, error) {
	text := func(key string) string { s, _ := before[key].(string); return s }
	data := object.Tree{}
	clients, err := c.authorities(text(clientCAs), c.trust.Clients())
	if err != nil {
		return nil, err
	}
	if clients != "" {
		data[clientCAs] = clients
	}
	own := Trust{}
	var authorities *pki.Authorities
	if c.trust.Proxies != nil {
		own, authorities = c.trust, c.trust.Proxies()
	}
	proxies, err := c.authorities(text(proxyCAs), authorities)
	if err != nil || proxies == "" {
		return data, err
	}
	data[proxyCAs] = proxies
	for key, more := range map[string][]string{
		allowedNames: own.AllowedNames, usernames: own.Headers.Username, uids: own.Headers.UID,
		groups: own.Headers.Group, extras: own.Headers.ExtraPrefix,
	} {
		list, err := union(text(key), more)
		if err != nil {
			return nil, err
		}
		if key != uids || list != "[]" {
			data[key] = list
		}
	}
	return data, nil
}

// authorities adds authorities to some in PEM, and leaves out those that have expired.
func (c *Controller) authorities(before string, more *pki.Authorities) (string, error) {
	var certificates []*x509.Certificate
	if before != "" {
		var err error
		if certificates, err = pki.ParseAuthorities(configMap, []byte(before)); err != nil {
			return "", err
		}
	}
	if more != nil {
		certificates = append(certificates, more.Certificates...)
	}
	var out bytes.Buffer
	var seen []*x509.Certificate
	for _, cert := range certificates {
		if c.objects.Now().Sub(cert.NotAfter) >= expiredFor || slices.ContainsFunc(seen, cert.Equal) {
			continue
		}
		seen = append(seen, cert)
		// A bytes.Buffer takes everything.
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	}
	return out.String(), nil
}

// union adds values to a list in JSON.
func union(before string, more []string) (string, error) {
	list := []string{}
	if before != "" {
		if err := json.Unmarshal([]byte(before), &list); err != nil {
			return "", err
		}
	}
	out := []string{}
	for _, value := range append(list, more...) {
		if !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	data, err := json.Marshal(out)
	return string(data), err
}
