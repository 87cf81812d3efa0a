package builtin

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	evaluator "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/usage"
	kinds "github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

var quotaObjects = flag.Int("quota-objects", 3000, "random objects to compare with Kubernetes' quota evaluators")

// noon is the time at which pods are measured.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// names are resource names for quotas.
var names = []corev1.ResourceName{
	"pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
	"limits.cpu", "limits.memory", "limits.ephemeral-storage", "hugepages-2Mi", "requests.hugepages-2Mi", "limits.hugepages-2Mi",
	"requests.example.com/gpu", "example.com/gpu", "requests.example.com/tpu", "limits.example.com/gpu",
	"requests.deviceclass.resource.kubernetes.io/a", "requests.deviceclass.resource.kubernetes.io/b", "requests.deviceclass.resource.kubernetes.io/none",
	"deviceclass.resource.kubernetes.io/a", "requests.kubernetes.io/x", "a.deviceclass.resource.k8s.io/devices",
	"services", "services.nodeports", "services.loadbalancers", "persistentvolumeclaims", "requests.storage", "storage",
	"gold.storageclass.storage.k8s.io/requests.storage", "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
	"configmaps", "secrets", "replicationcontrollers", "resourcequotas", "count/pods", "count/services", "count/persistentvolumeclaims",
	"count/resourceclaims.resource.k8s.io", "count/resourceclaims", "count/configmaps", "count/secrets", "count/deployments.apps", "count/deployments",
	"count/crontabs.stable.example.com",
}

// scopes returns scope selectors for quotas.
func scopes() (all []corev1.ScopedResourceSelectorRequirement) {
	for _, name := range []corev1.ResourceQuotaScope{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass", "None"} {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	for _, name := range []corev1.ResourceQuotaScope{"PriorityClass", "VolumeAttributesClass"} {
		all = append(all,
			corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpDoesNotExist},
			corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpIn, Values: []string{"a", "c"}},
			corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpNotIn, Values: []string{"a", "c"}})
	}
	return all
}

// classes returns DeviceClasses. The first has an extended resource.
func classes() []*resourcev1.DeviceClass {
	return []*resourcev1.DeviceClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/gpu")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
	}
}

// A measured resource has random objects, and both evaluators.
type measured struct {
	kind   schema.GroupResource
	random func(*rand.Rand) runtime.Object
	theirs quota.Evaluator
	ours   usage.Evaluator
}

// Random objects have the same usage, scopes and missing constraints by our evaluators as by
// Kubernetes'.
func TestQuotaEvaluators(t *testing.T) {
	devices := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	evaluators := evaluators(t)
	evaluators.Now = func() time.Time { return noon }
	for _, c := range classes() {
		devices.OnAdd(c, true)
	}
	object := func(*rand.Rand) runtime.Object { return &corev1.ConfigMap{} }
	all := []measured{
		{kind: corev1.Resource("pods"), random: randomPod, theirs: evaluator.NewPodEvaluator(nil, testingclock.NewFakeClock(noon))},
		{kind: corev1.Resource("services"), random: randomService, theirs: evaluator.NewServiceEvaluator(nil)},
		{kind: corev1.Resource("persistentvolumeclaims"), random: randomVolume, theirs: evaluator.NewPersistentVolumeClaimEvaluator(nil)},
		{kind: resourcev1.Resource("resourceclaims"), random: randomClaim, theirs: evaluator.NewResourceClaimEvaluator(nil, devices, nil, nil)},
		{kind: corev1.Resource("configmaps"), random: object, theirs: generic.NewObjectCountEvaluator(corev1.Resource("configmaps"), nil, corev1.ResourceConfigMaps)},
		{kind: corev1.Resource("secrets"), random: object, theirs: generic.NewObjectCountEvaluator(corev1.Resource("secrets"), nil, corev1.ResourceSecrets)},
		{kind: schema.GroupResource{Group: "apps", Resource: "deployments"}, random: object, theirs: generic.NewObjectCountEvaluator(schema.GroupResource{Group: "apps", Resource: "deployments"}, nil, "")},
	}
	for _, m := range all {
		t.Run(m.kind.String(), func(t *testing.T) {
			var err error
			if m.ours, err = evaluators.Of(t.Context(), m.kind); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if theirs, ours := len(m.theirs.MatchingResources([]corev1.ResourceName{name})) > 0, m.ours.Limits(name); theirs != ours {
					t.Errorf("%s: Kubernetes says %v, anykind %v", name, theirs, ours)
				}
			}
			for seed := range *quotaObjects {
				if m.compare(t, m.random(rand.New(rand.NewPCG(uint64(seed), 1)))); t.Failed() {
					t.Fatalf("with seed %d", seed)
				}
			}
		})
	}
}

// evaluators returns the evaluators of a server with the classes.
func evaluators(t *testing.T) *usage.Evaluators {
	backend, set := memkv.New(memkv.Options{}), kinds.NewSet(builtin.Definitions())
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	for _, c := range classes() {
		c.APIVersion, c.Kind = "resource.k8s.io/v1", "DeviceClass"
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backend.Commit(ctx, kv.Write{Key: set.Lookup("resource.k8s.io", "deviceclasses").Key("", c.Name), Value: data}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cache.Fresh(ctx); err != nil {
		t.Fatal(err)
	}
	return usage.New(cache, set)
}

func (m measured) compare(t *testing.T, o runtime.Object) {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	read, err := m.ours.Read(t.Context(), func(into any) error { return json.Unmarshal(data, into) })
	if err != nil {
		t.Fatal(err)
	}
	used, err := m.theirs.Usage(o)
	if err != nil {
		t.Fatal(err)
	}
	if theirs, ours := usage.Text(used), usage.Text(read.Usage()); theirs != ours {
		t.Errorf("%s\nuses %s by Kubernetes,\n     %s by anykind", data, theirs, ours)
	}
	for _, s := range scopes() {
		in, err := m.theirs.MatchingScopes(o, []corev1.ScopedResourceSelectorRequirement{s})
		ours, other := read.InScope(s)
		if (len(in) > 0) != ours || (err == nil) != (other == nil) {
			t.Errorf("%s\nis in %v: %v by Kubernetes (%v), %v by anykind (%v)", data, s, len(in) > 0, err, ours, other)
		}
	}
	if theirs, ours := fmt.Sprint(m.theirs.Constraints(names, o)), fmt.Sprint(read.Lacks(names)); theirs != ours {
		t.Errorf("%s\nlacks %q by Kubernetes, %q by anykind", data, theirs, ours)
	}
}

// some returns a random one of the values.
func some[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func amounts(r *rand.Rand) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "deviceclass.resource.kubernetes.io/b"} {
		if r.IntN(3) == 0 {
			list[name] = resource.MustParse(some(r, "0", "1", "100m", "2", "1Gi", "1500M", "3.5"))
		}
	}
	if len(list) == 0 {
		return nil // as after decoding
	}
	return list
}

func randomContainers(r *rand.Rand, most int, init bool) (all []corev1.Container) {
	for i := range r.IntN(most + 1) {
		c := corev1.Container{Name: fmt.Sprint(some(r, "c", "d"), i), Resources: corev1.ResourceRequirements{Requests: amounts(r), Limits: amounts(r)}}
		if init {
			c.Name = "i" + c.Name
			c.RestartPolicy = some(r, nil, ptr.To(corev1.ContainerRestartPolicyAlways))
		}
		all = append(all, c)
	}
	return all
}

func statuses(r *rand.Rand, of []corev1.Container) (all []corev1.ContainerStatus) {
	for _, c := range of {
		if r.IntN(2) == 0 {
			s := corev1.ContainerStatus{Name: c.Name, AllocatedResources: some(r, nil, amounts(r))}
			if r.IntN(2) == 0 {
				s.Resources = &corev1.ResourceRequirements{Requests: amounts(r), Limits: amounts(r)}
			}
			all = append(all, s)
		}
	}
	return all
}

func randomPod(r *rand.Rand) runtime.Object {
	p := &corev1.Pod{}
	p.Spec.Containers, p.Spec.InitContainers = randomContainers(r, 3, false), randomContainers(r, 3, true)
	if r.IntN(4) == 0 {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts(r), Limits: amounts(r)}
	}
	p.Spec.Overhead = some(r, nil, nil, amounts(r))
	p.Spec.ActiveDeadlineSeconds = some(r, nil, ptr.To[int64](0), ptr.To[int64](5))
	p.Spec.PriorityClassName = some(r, "", "a", "b")
	p.Status.Phase = some(r, "", corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed)
	p.Status.QOSClass = some(r, "", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable)
	p.Status.ContainerStatuses, p.Status.InitContainerStatuses = statuses(r, p.Spec.Containers), statuses(r, p.Spec.InitContainers)
	if r.IntN(5) == 0 {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: some(r, corev1.PodReasonInfeasible, corev1.PodReasonDeferred)}}
	}
	if r.IntN(5) == 0 {
		p.DeletionTimestamp = &metav1.Time{Time: noon.Add(time.Duration(r.IntN(120)-90) * time.Second)}
		p.DeletionGracePeriodSeconds = some(r, nil, ptr.To[int64](0), ptr.To[int64](30))
	}
	if r.IntN(3) == 0 {
		term := corev1.PodAffinityTerm{Namespaces: some(r, nil, []string{"n"}), NamespaceSelector: some(r, nil, nil, &metav1.LabelSelector{})}
		p.Spec.Affinity = some(r, &corev1.Affinity{},
			&corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}},
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}}}})
	}
	return p
}

func randomService(r *rand.Rand) runtime.Object {
	s := &corev1.Service{}
	s.Spec.Type = some(r, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	s.Spec.AllocateLoadBalancerNodePorts = some(r, nil, ptr.To(true), ptr.To(false))
	for i := range r.IntN(4) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: int32(i), NodePort: some[int32](r, 0, 30000)})
	}
	return s
}

func randomVolume(r *rand.Rand) runtime.Object {
	v := &corev1.PersistentVolumeClaim{}
	class := some(r, nil, ptr.To(""), ptr.To("gold"), ptr.To("silver"))
	v.Spec.StorageClassName, v.Spec.VolumeAttributesClassName = class, some(r, nil, ptr.To(""), ptr.To("a"), ptr.To("b"))
	if r.IntN(4) == 0 {
		v.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: some(r, "gold", "")}
	}
	size := func() corev1.ResourceList {
		return some(r, nil, corev1.ResourceList{"storage": resource.MustParse(some(r, "1", "1.5", "1700m", "2Gi", "0.5Gi", "1G"))})
	}
	v.Spec.Resources.Requests, v.Status.AllocatedResources = size(), size()
	v.Status.CurrentVolumeAttributesClassName = some(r, nil, ptr.To("a"), ptr.To("c"))
	if r.IntN(3) == 0 {
		v.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: some(r, "", "b", "c")}
	}
	return v
}

func randomClaim(r *rand.Rand) runtime.Object {
	c := &resourcev1.ResourceClaim{}
	mode := func() resourcev1.DeviceAllocationMode {
		return some(r, resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeAll, "Other")
	}
	for range r.IntN(4) {
		var request resourcev1.DeviceRequest
		if r.IntN(2) == 0 {
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: some(r, "a", "b", "c"), AllocationMode: mode(), Count: r.Int64N(4)}
		}
		for range r.IntN(3) {
			request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{DeviceClassName: some(r, "a", "b", "c"), AllocationMode: mode(), Count: r.Int64N(4)})
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, request)
	}
	return c
}
