// Package delegation follows the ConfigMap extension-apiserver-authentication of the cluster that
// this server extends. The ConfigMap has the CAs for client certificates and the settings of front
// proxies.
//
// A missing or invalid entry leaves the previous value in force. The package does not authenticate
// requests.
package delegation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/network/pki"
)

const (
	namespace = "kube-system"
	folder    = "/api/v1/namespaces/" + namespace + "/configmaps"
)

// A Trust holds the settings of the ConfigMap.
type Trust struct {
	client *cluster.Client
	log    *slog.Logger
	state  atomic.Pointer[state]
}

// A state is the result of the last read. The pointer to the CAs of proxies changes with every
// change of the proxy settings, so that no result is cached across such a change.
type state struct {
	data             map[string]string // as last read
	clients, proxies *pki.Authorities
	frontProxies     authn.Proxies
}

// New returns the Trust of a cluster. It trusts no certificate until it is loaded.
func New(client *cluster.Client, log *slog.Logger) *Trust {
	t := &Trust{client: client, log: log}
	none := pki.NewAuthorities()
	t.state.Store(&state{clients: none, proxies: none})
	return t
}

// Clients returns the CAs for client certificates.
func (t *Trust) Clients() *pki.Authorities { return t.state.Load().clients }

// Proxies returns the CAs of front proxies. Said restricts them further.
func (t *Trust) Proxies() *pki.Authorities { return t.state.Load().proxies }

// FrontProxies returns the allowed names and headers of front proxies with a certificate of Proxies.
func (t *Trust) FrontProxies() authn.Proxies { return t.state.Load().frontProxies }

// Load reads the ConfigMap. A missing ConfigMap is no error: it may be created later.
func (t *Trust) Load(ctx context.Context) error {
	var found corev1.ConfigMap
	err := t.client.Get(ctx, folder+"/"+authn.ConfigMap, &found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("unable to get configmap/%s in %s; usually fixed by 'kubectl create rolebinding -n %[2]s ROLEBINDING_NAME --role=%[1]s-reader --serviceaccount=YOUR_NS:YOUR_SA': %[3]w",
			authn.ConfigMap, namespace, err)
	case err != nil:
		return fmt.Errorf("unable to get configmap/%s in %s: %w", authn.ConfigMap, namespace, err)
	}
	return t.Set(ctx, &found)
}

// Follow reads the ConfigMap after each change until ctx ends.
func (t *Trust) Follow(ctx context.Context) {
	cluster.Follow(ctx, t.client, cluster.Collection{Path: folder, FieldSelector: "metadata.name=" + authn.ConfigMap}, t, t.log)
}

// Replace implements cluster.Observer.
func (t *Trust) Replace(ctx context.Context, all []*corev1.ConfigMap) error {
	for _, one := range all {
		if err := t.Set(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements cluster.Observer. The settings stay in force: the cluster recreates the
// ConfigMap.
func (t *Trust) Delete(context.Context, *corev1.ConfigMap) error { return nil }

// Set implements cluster.Observer. It only logs an invalid ConfigMap: a retry would fail again.
func (t *Trust) Set(_ context.Context, found *corev1.ConfigMap) error {
	if found.Name != authn.ConfigMap {
		return nil
	}
	old := t.state.Load()
	if maps.Equal(old.data, found.Data) {
		return nil
	}
	next, err := old.with(found.Data)
	if err != nil {
		t.log.Error("the ConfigMap has invalid authentication settings; the previous ones stay in effect", "configmap", authn.ConfigMap, "error", err)
	}
	t.state.Store(next)
	t.log.Info("read the authentication settings of the cluster", "configmap", authn.ConfigMap)
	return nil
}

// with returns the state after data. An error comes with the state of all valid entries.
func (s *state) with(data map[string]string) (*state, error) {
	next := &state{data: maps.Clone(data), clients: s.clients, proxies: s.proxies, frontProxies: s.frontProxies}
	var errs []error
	authorities := func(key string, before *pki.Authorities) *pki.Authorities {
		if data[key] == "" || data[key] == s.data[key] {
			return before
		}
		certificates, err := pki.ParseAuthorities(key, []byte(data[key]))
		if err != nil {
			errs = append(errs, err)
			return before
		}
		return pki.NewAuthorities(certificates...)
	}
	next.clients = authorities(authn.ClientCAKey, s.clients)
	next.proxies = authorities(authn.ProxyCAKey, s.proxies)
	frontProxies, err := proxiesOf(data)
	if err != nil {
		errs = append(errs, err)
	} else {
		next.frontProxies = frontProxies
		if !slices.Equal(frontProxies.AllowedNames, s.frontProxies.AllowedNames) && next.proxies == s.proxies {
			next.proxies = pki.NewAuthorities(s.proxies.Certificates...)
		}
	}
	return next, errors.Join(errs...)
}

// proxiesOf parses the allowed names and headers of front proxies.
func proxiesOf(data map[string]string) (frontProxies authn.Proxies, err error) {
	for key, into := range map[string]*[]string{
		authn.AllowedNamesKey: &frontProxies.AllowedNames, authn.UsernameHeadersKey: &frontProxies.Headers.Username, authn.UIDHeadersKey: &frontProxies.Headers.UID,
		authn.GroupHeadersKey: &frontProxies.Headers.Group, authn.ExtraHeadersPrefixKey: &frontProxies.Headers.ExtraPrefix,
	} {
		if data[key] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data[key]), into); err != nil {
			return frontProxies, fmt.Errorf("%s: %w", key, err)
		}
	}
	return frontProxies, nil
}
