package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	upstreamnode "k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/node"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A fleet has the random objects of nodes, in the store and in upstream's graph.
type fleet struct {
	dice
	t       *testing.T
	backend kv.Backend
	set     *resource.Set
	graph   *upstreamnode.Graph
}

var (
	nodeWords  = []string{"n1", "n2", "n3"}
	thingWords = []string{"a", "b", "c", "d", "e"}
	mountWords = []string{"m1", "m2", "m3", "m4", "e", ""} // names of the secrets of volumes
	nodeSpaces = []string{"dev", "ops"}
)

func (f *fleet) write(group, plural, namespace, name string, o any) {
	f.t.Helper()
	var data []byte
	if o != nil {
		var err error
		if data, err = json.Marshal(o); err != nil {
			f.t.Fatal(err)
		}
	}
	key := f.set.Lookup(group, plural).Key(namespace, name)
	current, err := f.backend.Get(f.t.Context(), key, kv.Latest)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		f.t.Fatal(err)
	}
	if o == nil && err != nil {
		return
	}
	if _, err := f.backend.Commit(f.t.Context(), kv.Write{Key: key, Value: data, Expect: current.Revision}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) thing() string     { return f.of(thingWords...) }
func (f *fleet) chance(n int) bool { return f.IntN(n) == 0 }

func (f *fleet) local() *corev1.LocalObjectReference {
	if f.chance(4) {
		return nil
	}
	return &corev1.LocalObjectReference{Name: f.of("a", "b", "c", "d", "e", "")}
}

// source returns a random volume source, of any type that references an object.
func (f *fleet) source() (s corev1.VolumeSource) {
	switch f.IntN(18) {
	case 0:
		s.AzureFile = &corev1.AzureFileVolumeSource{SecretName: f.thing()}
	case 1:
		s.CephFS = &corev1.CephFSVolumeSource{SecretRef: f.local()}
	case 2:
		s.Cinder = &corev1.CinderVolumeSource{SecretRef: f.local()}
	case 3:
		s.FlexVolume = &corev1.FlexVolumeSource{SecretRef: f.local()}
	case 4:
		s.Projected = &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: f.thing()}}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: f.thing()}}},
		}}
	case 5:
		s.RBD = &corev1.RBDVolumeSource{SecretRef: f.local()}
	case 6:
		s.Secret = &corev1.SecretVolumeSource{SecretName: f.thing()}
	case 7:
		s.ScaleIO = &corev1.ScaleIOVolumeSource{SecretRef: f.local()}
	case 8:
		s.ISCSI = &corev1.ISCSIVolumeSource{SecretRef: f.local()}
	case 9:
		s.StorageOS = &corev1.StorageOSVolumeSource{SecretRef: f.local()}
	case 10:
		s.CSI = &corev1.CSIVolumeSource{NodePublishSecretRef: f.local()}
	case 11:
		s.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: f.thing()}}
	case 12:
		s.Ephemeral = &corev1.EphemeralVolumeSource{}
	default:
		s.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: f.of("a", "b")}
	}
	return s
}

func (f *fleet) container() (c corev1.Container) {
	name := func() corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: f.thing()} }
	switch f.IntN(5) {
	case 0:
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name()}}}
	case 1:
		c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name()}}}
	case 2:
		c.Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name()}}}}
	case 3:
		c.Env = []corev1.EnvVar{{Value: "x"}, {ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name()}}}}
	}
	return c
}

// pod returns a random pod, bound to a node or not.
func (f *fleet) pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.of(nodeSpaces...), Name: f.of("p1", "p2", "p3", "p4")}}
	if f.chance(5) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	p.Spec.NodeName, p.Spec.ServiceAccountName = f.of("n1", "n1", "n2", "n2", ""), f.of("a", "b", "")
	if f.chance(3) {
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: f.thing()}, {}}
	}
	p.Spec.Containers = []corev1.Container{f.container()}
	if f.chance(2) {
		p.Spec.InitContainers = []corev1.Container{f.container()}
	}
	if f.chance(3) {
		c := f.container()
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: c.Env, EnvFrom: c.EnvFrom}}}
	}
	for range f.IntN(3) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: f.thing(), VolumeSource: f.source()})
	}
	name := f.thing()
	switch f.IntN(5) {
	case 0:
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
	case 1:
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimTemplateName: &name}}
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: f.of("r", "s"), ResourceClaimName: &name}, {Name: "r"}}
	case 2:
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: name}
	}
	return p
}

func (f *fleet) reference() *corev1.SecretReference {
	if f.chance(5) {
		return nil
	}
	return &corev1.SecretReference{Namespace: f.of("dev", "ops", ""), Name: f.of(mountWords...)}
}

// volume returns a random PersistentVolume, bound to a claim or not.
func (f *fleet) volume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: f.thing()}}
	if !f.chance(4) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: f.of(nodeSpaces...), Name: f.of("a", "b")}
	}
	s := &v.Spec.PersistentVolumeSource
	switch f.IntN(10) {
	case 0:
		namespace := f.of("dev", "ops", "")
		s.AzureFile = &corev1.AzureFilePersistentVolumeSource{SecretName: f.of(mountWords...)}
		if !f.chance(3) {
			s.AzureFile.SecretNamespace = &namespace
		}
	case 1:
		s.CephFS = &corev1.CephFSPersistentVolumeSource{SecretRef: f.reference()}
	case 2:
		s.Cinder = &corev1.CinderPersistentVolumeSource{SecretRef: f.reference()}
	case 3:
		s.FlexVolume = &corev1.FlexPersistentVolumeSource{SecretRef: f.reference()}
	case 4:
		s.RBD = &corev1.RBDPersistentVolumeSource{SecretRef: f.reference()}
	case 5:
		s.ScaleIO = &corev1.ScaleIOPersistentVolumeSource{SecretRef: f.reference()}
	case 6:
		s.ISCSI = &corev1.ISCSIPersistentVolumeSource{SecretRef: f.reference()}
	case 7:
		s.StorageOS = &corev1.StorageOSPersistentVolumeSource{SecretRef: &corev1.ObjectReference{Namespace: f.of("dev", "ops", ""), Name: f.of(mountWords...)}}
	default:
		s.CSI = &corev1.CSIPersistentVolumeSource{
			ControllerPublishSecretRef: f.reference(), ControllerExpandSecretRef: f.reference(),
			NodePublishSecretRef: f.reference(), NodeStageSecretRef: f.reference(), NodeExpandSecretRef: f.reference(),
		}
	}
	return v
}

// happen creates, changes or deletes a random object.
func (f *fleet) happen() {
	gone := f.chance(4)
	switch f.IntN(8) {
	case 0:
		name, of := f.thing(), f.of(nodeWords...)
		if gone {
			f.write("storage.k8s.io", "volumeattachments", "", name, nil)
			f.graph.DeleteVolumeAttachment(name)
			return
		}
		f.write("storage.k8s.io", "volumeattachments", "", name, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{NodeName: of}})
		f.graph.AddVolumeAttachment(name, of)
	case 1:
		name, of := f.thing(), f.of("n1", "n2", "")
		if gone {
			f.write("resource.k8s.io", "resourceslices", "", name, nil)
			f.graph.DeleteResourceSlice(name)
			return
		}
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if of != "" {
			s.Spec.NodeName = &of
		}
		f.write("resource.k8s.io", "resourceslices", "", name, s)
		f.graph.AddResourceSlice(name, of)
	case 2:
		r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: f.of(nodeSpaces...), Name: f.thing()}}
		if gone {
			f.write("certificates.k8s.io", "podcertificaterequests", r.Namespace, r.Name, nil)
			f.graph.DeletePodCertificateRequest(r)
			return
		}
		r.Spec.NodeName = "n1"
		f.write("certificates.k8s.io", "podcertificaterequests", r.Namespace, r.Name, r)
		f.graph.AddPodCertificateRequest(r)
	case 3, 4:
		v := f.volume()
		if gone {
			f.write("", "persistentvolumes", "", v.Name, nil)
			f.graph.DeletePV(v.Name)
			return
		}
		f.write("", "persistentvolumes", "", v.Name, v)
		f.graph.AddPV(v)
	default:
		// A bound pod stays bound. A pod with the same name that follows it is a new object.
		p := f.pod()
		f.write("", "pods", p.Namespace, p.Name, nil)
		f.graph.DeletePod(p.Name, p.Namespace)
		if gone {
			return
		}
		f.write("", "pods", p.Namespace, p.Name, p)
		if p.Spec.NodeName != "" {
			f.graph.AddPod(p)
		}
	}
}

// wants returns a random request, mostly of a node.
func (f *fleet) wants() (*authz.Attributes, authorizer.AttributesRecord) {
	u := &user.DefaultInfo{Name: "system:node:" + f.of("n1", "n1", "n2", "n3"), Groups: []string{"system:nodes"}}
	if f.chance(30) {
		u.Name = f.of("ann", "system:node:", "system:node")
	}
	if f.chance(30) {
		u.Groups = []string{f.of("system:masters", "system:node")}
	}
	kind := [...][2]string{
		{"", "secrets"}, {"", "secrets"}, {"", "configmaps"}, {"", "persistentvolumeclaims"}, {"", "persistentvolumes"}, {"", "serviceaccounts"}, {"", "nodes"}, {"", "pods"},
		{"resource.k8s.io", "resourceclaims"}, {"resource.k8s.io", "resourceslices"}, {"storage.k8s.io", "volumeattachments"}, {"storage.k8s.io", "csinodes"},
		{"coordination.k8s.io", "leases"}, {"certificates.k8s.io", "podcertificaterequests"}, {"", "services"}, {"storage.k8s.io", "csidrivers"}, {"apps", "secrets"},
	}[f.IntN(17)]
	a := authorizer.AttributesRecord{
		User: u, ResourceRequest: true, APIGroup: kind[0], Resource: kind[1], APIVersion: "v1",
		Verb:      f.of("get", "get", "get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "x"),
		Namespace: f.of("dev", "dev", "ops", "", "kube-node-lease"), Name: f.of("a", "b", "c", "d", "e", "p1", "p2", "p1-a", "p2-a", "n1", "n2", ""),
		Subresource: f.of("", "", "", "", "", "status", "token", "eviction", "x"),
	}
	if kind[0] == "" && kind[1] == "serviceaccounts" && f.chance(2) {
		a.Verb, a.Subresource = "create", "token"
	}
	switch kind[1] {
	case "persistentvolumes", "volumeattachments", "resourceslices", "nodes", "csinodes":
		if !f.chance(5) {
			a.Namespace = ""
		}
	}
	if a.Resource == "secrets" && f.chance(2) {
		a.Verb, a.Subresource, a.Name = "get", "", f.of(mountWords...)
	}
	selector := f.of("", "", "spec.nodeName=n1", "spec.nodeName=n2", "spec.nodeName!=n1", "metadata.name=a,spec.nodeName==n1")
	if f.chance(20) {
		a.ResourceRequest, a.Path, selector = false, f.of("/healthz", "/api", "/logs"), ""
	}
	if selector != "" {
		a.FieldSelectorRequirements = fields.ParseSelectorOrDie(selector).Requirements()
	}
	return &authz.Attributes{User: &request.User{Name: u.Name, Groups: u.Groups}, Info: request.Info{
		IsResource: a.ResourceRequest, Verb: a.Verb, Path: a.Path, Group: a.APIGroup, Version: a.APIVersion, Namespace: a.Namespace,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, FieldSelector: selector,
	}}, a
}

// Requests of nodes get the decisions and reasons of upstream's authorizer, while pods and volumes
// change.
func TestNodeAuthorizer(t *testing.T) {
	compareNodes(t, 150, nil)
	for _, text := range []string{"CSIVolumeHealth=true", "KubeletServiceAccountTokenForCredentialProviders=false,PodCertificateRequest=false"} {
		t.Run(text, func(t *testing.T) { compareNodes(t, 20, withGates(t, text)) })
	}
}

func compareNodes(t *testing.T, fleets int, gates *gate.Set) {
	t.Helper()
	const changes, questions = 60, 60
	set := resource.NewSet(builtin.Definitions())
	d := dice{rand.New(rand.NewPCG(18, 37))}
	allowed, unrelated := 0, 0
	for range fleets {
		backend := memkv.New(memkv.Options{})
		f := &fleet{dice: d, t: t, backend: backend, set: set, graph: upstreamnode.NewGraph()}
		theirs := upstreamnode.NewAuthorizer(f.graph, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
		ours := &node.Authorizer{}
		ours.Read(runCache(t, backend), set, gates)
		for range changes {
			f.happen()
			for range questions {
				our, their := f.wants()
				decision, reason, err := ours.Authorize(t.Context(), our)
				want, why, _ := theirs.Authorize(t.Context(), their)
				if err != nil || decisions[decision] != want || reason != why {
					t.Fatalf("%+v of %+v:\n ours %v %q %v\ntheirs %v %q", their, their.User, decision, reason, err, want, why)
				}
				if want == authorizer.DecisionAllow {
					allowed++
				} else if why == fmt.Sprintf("no relationship found between node '%s' and this object", "n1") {
					unrelated++
				}
			}
		}
	}
	if total := fleets * changes * questions; allowed < total/20 || unrelated < total/50 {
		t.Errorf("of %d cases %d were allowed and %d refused as unrelated: too few of one kind", total, allowed, unrelated)
	}
}

// runCache runs a cache of a store until the end of the test.
func runCache(t testing.TB, backend kv.Backend) *watchcache.Cache {
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cache.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return cache
}
