package builtin

import (
	"context"
	"net"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	deployments "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	replicasets "k8s.io/kubernetes/pkg/registry/apps/replicaset/storage"
	statefulsets "k8s.io/kubernetes/pkg/registry/apps/statefulset/storage"
	controllers "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	services "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// Some decisions are not in strategies but in storages: a Service gets addresses before its
// validation, and a Scale is a view of another object. For these, the tests call upstream's storages,
// with dry runs over a store of one object.

// A storageOf creates the writing part of a storage, over a store.
type storageOf func(generic.RESTOptionsGetter) (any, error)

// dryRun prevents changes.
var dryRun = []string{metav1.DryRunAll}

// serviceRange is kube-apiserver's default; serviceRange6 is the second range of a dual-stack cluster.
var (
	serviceRange  = net.IPNet{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(24, 32)}
	serviceRange6 = net.IPNet{IP: net.ParseIP("fd00::"), Mask: net.CIDRMask(112, 128)}
)

func serviceStorage(o generic.RESTOptionsGetter) (any, error) { return serviceStorageOf(o, false) }

func dualServiceStorage(o generic.RESTOptionsGetter) (any, error) { return serviceStorageOf(o, true) }

func serviceStorageOf(o generic.RESTOptionsGetter, dual bool) (any, error) {
	families := map[api.IPFamily]ipallocator.Interface{}
	var err error
	if families[api.IPv4Protocol], err = ipallocator.NewInMemory(&serviceRange); err != nil {
		return nil, err
	}
	if dual {
		if families[api.IPv6Protocol], err = ipallocator.NewInMemory(&serviceRange6); err != nil {
			return nil, err
		}
	}
	ports, err := portallocator.NewInMemory(utilnet.PortRange{Base: 30000, Size: 2768})
	if err != nil {
		return nil, err
	}
	main, _, _, err := services.NewREST(o, api.IPv4Protocol, families, ports, nil, nil, nil)
	return main, err
}

func deploymentScale(o generic.RESTOptionsGetter) (any, error) {
	s, err := deployments.NewStorage(o)
	return s.Scale, err
}

func replicaSetScale(o generic.RESTOptionsGetter) (any, error) {
	s, err := replicasets.NewStorage(o)
	return s.Scale, err
}

func statefulSetScale(o generic.RESTOptionsGetter) (any, error) {
	s, err := statefulsets.NewStorage(o)
	return s.Scale, err
}

func controllerScale(o generic.RESTOptionsGetter) (any, error) {
	s, err := controllers.NewStorage(o)
	return s.Scale, err
}

// A backed is a storage over a store whose content the test sets.
type backed struct {
	make  storageOf
	store oneObject
	made  any
}

// storages returns the storages, by resource and subresource. They are the same in all versions of a
// kind.
func storages() map[string]map[string]*backed {
	return map[string]map[string]*backed{
		"services":               {"": {make: serviceStorage}},
		"deployments":            {"scale": {make: deploymentScale}},
		"replicasets":            {"scale": {make: replicaSetScale}},
		"statefulsets":           {"scale": {make: statefulSetScale}},
		"replicationcontrollers": {"scale": {make: controllerScale}},
	}
}

// with returns the storage with one object in its store, or none.
func (b *backed) with(k *Kind, old runtime.Object) (_ any, err error) {
	b.store.object = old
	if b.made == nil {
		b.made, err = b.make(generic.RESTOptions{
			StorageConfig: &storagebackend.ConfigForResource{
				Config:        storagebackend.Config{Codec: legacyscheme.Codecs.LegacyCodec(k.gvk().GroupVersion())},
				GroupResource: schema.GroupResource{Group: k.Group, Resource: k.Plural},
			},
			ResourcePrefix: k.Plural,
			Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
				func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
				return &b.store, func() {}, nil
			},
		})
	}
	return b.made, err
}

// oneObject is a store with at most one object. It implements only the methods that a dry run calls.
type oneObject struct {
	storage.Interface
	object runtime.Object
}

func (s *oneObject) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (s *oneObject) Get(_ context.Context, key string, o storage.GetOptions, into runtime.Object) error {
	switch {
	case s.object != nil:
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(s.object.DeepCopyObject()).Elem())
		return nil
	case o.IgnoreNotFound:
		return nil
	}
	return storage.NewKeyNotFoundError(key, 0)
}

// do writes as the handler of a request does.
func (b *backed) do(ctx context.Context, k *Kind, old, obj runtime.Object, name string) (runtime.Object, error) {
	s, err := b.with(k, old)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return s.(rest.Creater).Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	}
	out, _, err := s.(rest.Updater).Update(ctx, name, rest.DefaultUpdatedObjectInfo(obj), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	return out, err
}

// scales is the kind of the bodies of scale subresources.
var scales = &Kind{Group: "autoscaling", Version: "v1", Kind: "Scale", Plural: "scales", scheme: legacyscheme.Scheme, codecs: &legacyscheme.Codecs}

// scale returns the Scale of an object.
func (k *Kind) scale(ctx context.Context, o Object) (Object, error) {
	old, err := k.decode(o)
	if err != nil {
		return nil, err
	}
	s, err := k.storages["scale"].with(k, old)
	if err != nil {
		return nil, err
	}
	obj, err := s.(rest.Getter).Get(k.context(ctx, Case{Kind: k, Old: o}), nameOf(o), &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return scales.stored(obj)
}
