// Package clusterauthentication maintains the ConfigMap extension-apiserver-authentication in
// kube-system. Extension API servers read it to authenticate users: it has the CAs of client
// certificates, and the CAs and settings of front proxies.
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

// Name is the name of the controller.
const Name = "cluster_authentication_trust_controller"

// The namespace and name of the ConfigMap.
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
	// lookAgain is the interval at which changes of the CA files are detected.
	lookAgain = time.Minute
	// expiredFor is the time after which an expired CA is removed: clocks differ.
	expiredFor = 5 * time.Minute
)

// Trust is the configuration of authentication that the ConfigMap publishes.
type Trust struct {
	Clients func() *pki.Authorities
	// Proxies is nil without front proxies.
	Proxies      func() *pki.Authorities
	AllowedNames []string
	Headers      authn.ProxyHeaders
	// Reloaded is true if the CAs come from files, which may change.
	Reloaded bool
}

// A Controller publishes a Trust. It has one task.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	trust   Trust
	key     string // of the ConfigMap
}

// New returns the constructor of the controller.
func New(t Trust) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o, queue: q, trust: t, key: o.Lookup("", "configmaps").Key(namespace, configMap)}
	}
}

// Keys returns the keys of the ConfigMap and of its namespace.
func (c *Controller) Keys() []string {
	return []string{c.key, c.objects.Prefix("", "namespaces") + namespace}
}

// See queues the task: the ConfigMap or its namespace has changed or was loaded.
func (c *Controller) See(*controller.Event) { c.queue.Add(controller.Task{}) }

// Do updates the ConfigMap. It runs again to detect changes of the CA files.
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

// combined merges the Trust of this server into the ConfigMap, as several servers may share a
// store. Unreadable old data is an error and is not overwritten.
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

// authorities adds CAs to a PEM bundle, and removes expired ones.
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
		// writes to a bytes.Buffer do not fail
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	}
	return out.String(), nil
}

// union adds values to a JSON list.
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
