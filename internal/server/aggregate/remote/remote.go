// Package remote reads and deletes the objects of other API servers for controllers, as the
// controllers' ServiceAccounts. These servers are behind this one, or share its store.
//
// It gives remote objects keys and Definitions like those of stored objects, and translates
// operations on a key into HTTP requests. It knows paths and the formats of lists and watches,
// but not the controllers.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
	"github.com/anykind/anykind/internal/server/peer"
)

// discoveryTimeout limits a controller's wait for discovery.
const discoveryTimeout = 10 * time.Second

// Servers are the API servers behind this one, and the other servers of its store. It implements
// controller.Aggregated.
type Servers struct {
	aggregator *aggregate.Aggregator
	library    *published.Library
	peers      *peer.Proxy // nil for none
	user       *request.User
	log        *slog.Logger
}

// New returns the servers of an Aggregator, with the kinds that they publish, and peers for the kinds
// that only those serve. peers may be nil. Failed watches are logged.
func New(a *aggregate.Aggregator, l *published.Library, peers *peer.Proxy, log *slog.Logger) *Servers {
	return &Servers{aggregator: a, library: l, peers: peers, user: aggregate.Self(), log: log}
}

// As implements controller.Aggregated.
func (o *Servers) As(account string) controller.Aggregated {
	own := *o
	own.user = &request.User{
		Name:   "system:serviceaccount:kube-system:" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", request.Authenticated},
	}
	return &own
}

// Any implements controller.Aggregated. A server with a proxy for peers may have some at any time.
func (o *Servers) Any(ctx context.Context) bool {
	return o.peers != nil || o.aggregator.Services(ctx).Remote()
}

// Kinds implements controller.Aggregated. The Definition of a kind has all its versions, the
// preferred one first: objects are read in that one.
func (o *Servers) Kinds(ctx context.Context) ([]*resource.Definition, error) {
	var kinds []*resource.Definition
	o.peers.Others(ctx, func(of schema.GroupVersionResource, found object.Tree) {
		kinds = add(kinds, of.GroupVersion(), kind.ValueOf[apidiscoveryv2.APIResourceDiscovery](found))
	})
	services := o.aggregator.Services(ctx)
	if !services.Remote() {
		return kinds, nil
	}
	found := o.library.Versions(ctx, services, discoveryTimeout)
	var failed []schema.GroupVersion
	for s := range services.Remotes() {
		gv := s.GroupVersion()
		v := found[gv]
		if v.Err != nil {
			failed = append(failed, gv)
			continue
		}
		for i := range v.Resources {
			kinds = add(kinds, gv, &v.Resources[i])
		}
	}
	return kinds, failedDiscovery(failed)
}

// add adds a version of a resource to the kinds.
func add(kinds []*resource.Definition, gv schema.GroupVersion, r *apidiscoveryv2.APIResourceDiscovery) []*resource.Definition {
	if !slices.Contains(r.Verbs, "delete") || !slices.Contains(r.Verbs, "list") || r.ResponseKind == nil {
		return kinds
	}
	version := &resource.Version{Name: gv.Version, Served: true}
	for _, d := range kinds {
		if d.Group == gv.Group && d.Plural == r.Resource {
			d.Versions = append(d.Versions, version)
			return kinds
		}
	}
	version.Storage = true
	return append(kinds, &resource.Definition{
		Group: gv.Group, Plural: r.Resource, Kind: r.ResponseKind.Kind, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
		Verbs: r.Verbs, Versions: []*resource.Version{version},
		StoragePrefix: controller.OthersRoot + gv.Group + "/" + gv.Version + "/" + r.Resource + "/",
	})
}

// failedDiscovery returns the error about versions without discovery, in Kubernetes' words.
func failedDiscovery(versions []schema.GroupVersion) error {
	if len(versions) == 0 {
		return nil
	}
	var all []string
	for _, gv := range versions {
		all = append(all, fmt.Sprintf("%s: stale GroupVersion discovery: %s", gv, gv))
	}
	slices.Sort(all)
	return fmt.Errorf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s", len(all), strings.Join(all, ", ")) //nolint:revive // Kubernetes' words
}

// A place is a parsed key, or a parsed prefix of keys.
type place struct {
	schema.GroupVersionResource
	rest []string // namespace and name, or one of them, or none
}

var errNoKey = errors.New("not the key of an object of another server")

func parse(key string) (place, error) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(key, controller.OthersRoot), "/"), "/")
	if !controller.IsOthers(key) || len(parts) < 3 || len(parts) > 5 {
		return place{}, errNoKey
	}
	return place{schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, parts[3:]}, nil
}

// root returns the path of the version.
func (p place) root() string { return "/apis/" + p.Group + "/" + p.Version }

// objects returns the path of the collection, in the namespace that rest names, if any.
func (p place) objects() string {
	if len(p.rest) == 1 {
		return p.root() + "/namespaces/" + p.rest[0] + "/" + p.Resource
	}
	return p.root() + "/" + p.Resource
}

// object returns the path of an object and its name.
func (p place) object() (path, name string) {
	switch len(p.rest) {
	case 2:
		return p.root() + "/namespaces/" + p.rest[0] + "/" + p.Resource + "/" + p.rest[1], p.rest[1]
	case 1:
		return p.root() + "/" + p.Resource + "/" + p.rest[0], p.rest[0]
	}
	return p.root() + "/" + p.Resource, ""
}
