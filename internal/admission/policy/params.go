package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// params reads the parameters of policies, of any kind, and caches them.
type params struct {
	Dependencies

	mu         sync.RWMutex
	remembered map[string]remembered // by the keys of objects
}

// remembered is an object, decoded in a version. It is read-only.
type remembered struct {
	of      *watchcache.Object
	version *resource.Version
	decoded object.Tree
}

// mostRemembered limits the number of cached parameters.
const mostRemembered = 1000

// decode returns an object as parameters. The result is cached for some minutes, until the object
// or its kind changes. Objects that a conversion webhook converts are not cached here: the watch
// cache knows how long a conversion is valid.
func (p *params) decode(ctx context.Context, k *paramKind, o *watchcache.Object) (object.Tree, error) {
	p.mu.RLock()
	known := p.remembered[o.Key]
	p.mu.RUnlock()
	if known.of == o && known.version == k.version {
		return known.decoded, nil
	}
	t, err := p.Decode(ctx, k.definition, k.version, o)
	if err != nil || k.definition.Convert != nil {
		return t, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.remembered == nil {
		p.remembered = map[string]remembered{}
		time.AfterFunc(idleAfter, p.forget)
	}
	if _, there := p.remembered[o.Key]; there || len(p.remembered) < mostRemembered {
		p.remembered[o.Key] = remembered{o, k.version, t}
	}
	return t, nil
}

// forget drops all cached parameters.
func (p *params) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remembered = nil
}

// A paramKind is the kind of the parameters of a policy, nil for none.
type paramKind struct {
	definition *resource.Definition
	version    *resource.Version
}

// kind finds the kind of a policy's parameters.
func (p *params) kind(named *admissionregistrationv1.ParamKind) (*paramKind, error) {
	if named == nil {
		return nil, nil
	}
	gv, err := schema.ParseGroupVersion(named.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("failed to parse paramKind APIVersion: %w", err)
	}
	if group := p.Catalog.Set().Group(gv.Group); group != nil {
		for _, d := range group.Definitions {
			if v := d.Version(gv.Version); d.Kind == named.Kind && v != nil && v.Served && v.Creater == nil && v.Reader == nil {
				return &paramKind{d, v}, nil
			}
		}
	}
	return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gv.WithKind(named.Kind))
}

var errNoParams = errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")

// none stands for a policy without parameters: it is evaluated once.
var none = []object.Tree{nil}

// of returns the parameters of a policy, which is evaluated once for each of them. namespace is the
// namespace of the write.
func (p *params) of(ctx context.Context, k *paramKind, from *admissionregistrationv1.ParamRef, namespace string) ([]object.Tree, error) {
	if k == nil || from == nil {
		return none, nil
	}
	in, err := k.namespace(from, namespace)
	if err != nil {
		return nil, err
	}
	var all []object.Tree
	switch {
	case from.Name != "" && from.Selector != nil:
		return nil, errors.New("paramRef.name and paramRef.selector are mutually exclusive")
	case from.Name != "":
		all, err = p.named(ctx, k, in, from.Name)
	case from.Selector != nil:
		all, err = p.selected(ctx, k, in, from.Selector)
	default:
		return nil, errors.New("one of name or selector must be provided")
	}
	if err == nil && len(all) == 0 && from.ParameterNotFoundAction != nil && *from.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errNoParams
	}
	return all, err
}

// namespace returns the namespace of the parameters, "" for cluster-scoped ones.
func (k *paramKind) namespace(from *admissionregistrationv1.ParamRef, namespace string) (string, error) {
	switch {
	case !k.definition.Namespaced && from.Namespace != "":
		return "", errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !k.definition.Namespaced:
		return "", nil
	case from.Namespace != "":
		return from.Namespace, nil
	case namespace == "":
		return "", errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	return namespace, nil
}

// named returns the parameters of that name. On a miss it refreshes the cache: another server may
// have created them a moment ago.
func (p *params) named(ctx context.Context, k *paramKind, namespace, name string) ([]object.Tree, error) {
	objects, key := p.Cache.Resource(k.definition.StoragePrefix), k.definition.Key(namespace, name)
	found, err := objects.Get(ctx, key)
	if err == nil && found == nil {
		if _, err = p.Cache.Fresh(ctx); err == nil {
			found, err = objects.Get(ctx, key)
		}
	}
	if err != nil || found == nil {
		return nil, err
	}
	t, err := p.decode(ctx, k, found)
	if err != nil {
		return nil, err
	}
	return []object.Tree{t}, nil
}

// selected returns the parameters that match a selector, sorted by name.
func (p *params) selected(ctx context.Context, k *paramKind, namespace string, by *metav1.LabelSelector) ([]object.Tree, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, err
	}
	snapshot, err := p.Cache.Resource(k.definition.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	var all []object.Tree
	for o := range snapshot.Scan(k.definition.NamespacePrefix(namespace), "") {
		if err := o.Err(); err != nil {
			return nil, err // its labels are unknown
		}
		if !selector.Matches(o.Labels()) {
			continue
		}
		t, err := p.decode(ctx, k, o)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
