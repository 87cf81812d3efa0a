package releases

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// off turns off the gates whose effect is in the responses to requests.
var off = []string{
	"APIServerIdentity", "AllowUnsafeMalformedObjectDeletion", "ComponentFlagz", "ComponentStatusz", "KubeletServiceAccountTokenForCredentialProviders", "RemoteRequestHeaderUID",
	"StorageVersionHash", "UnauthenticatedHTTP2DOSMitigation", "UnknownVersionInteroperabilityProxy", "WatchList",
}

// requests are sent to both servers, in this order.
var requests = []wire.Step{
	{Method: "GET", Path: "/api/v1"},
	{Method: "GET", Path: "/apis/apps/v1"},
	{Method: "GET", Path: "/flagz", Around: true},
	{Method: "GET", Path: "/statusz", Around: true},
	{Method: "GET", Path: "/livez/poststarthook/start-kube-apiserver-identity-lease-controller"},
	{Method: "GET", Path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:monitoring"},
	{Method: "GET", Path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"},
	{
		Method: "GET", Path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?includeObject=None",
		Header: []wire.Field{{Name: "Accept", Value: "application/json;as=Table;v=v1;g=meta.k8s.io"}},
	},
	{Method: "GET", Path: "/apis/apps/v1/deployments", Header: []wire.Field{{Name: "Authorization", Value: "Bearer wrong"}}},
	{Method: "GET", Path: "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", Watch: true},
	{
		Method: "GET", Path: "/api/v1/namespaces?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", Watch: true,
		Header: []wire.Field{{Name: "Accept-Encoding", Value: "deflate, gzip"}},
	},
	{Method: "GET", Path: "/api/v1/namespaces?watch=1&resourceVersion=0&timeoutSeconds=1", Watch: true, Header: []wire.Field{{Name: "Accept-Encoding", Value: "gzip"}}},
	{Method: "GET", Path: "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=false", Watch: true},
	{Method: "GET", Path: "/api/v1/namespaces?watch=1&allowWatchBookmarks=true&timeoutSeconds=1", Watch: true},
	{Method: "GET", Path: "/api/v1/namespaces?sendInitialEvents=true"},
	{Method: "GET", Path: versions, Header: []wire.Field{{Name: "Accept", Value: "application/json;as=Table;v=v1;g=meta.k8s.io"}}},
	{Method: "GET", Path: versions + "/core.events"},
	{Method: "GET", Path: versions + "/apps.deployments"},
	{Method: "GET", Path: versions + "/apiextensions.k8s.io.customresourcedefinitions"},
	{Method: "GET", Path: versions + "/apiregistration.k8s.io.apiservices"},
	{Method: "GET", Path: "/livez/poststarthook/built-in-resources-storage-version-updater"},
	{Method: "GET", Path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:storage-version-garbage-collector"},
	{Method: "GET", Path: "/livez/poststarthook/start-kube-apiserver-coordinated-leader-election-controller"},
	{Method: "POST", Path: "/apis/coordination.k8s.io/v1/namespaces/default/leases", Body: []byte(`{"metadata":{"name":"a"},"spec":{"strategy":"OldestEmulationVersion","preferredHolder":"b"}}`)},
	{Method: "POST", Path: "/apis/coordination.k8s.io/v1/namespaces/default/leases", Body: []byte(`{"metadata":{"name":"b"},"spec":{"preferredHolder":"b"}}`)},
	{Method: "POST", Path: "/api/v1/namespaces/default/configmaps", Body: []byte(`{"metadata":{"name":"a"}}`)},
	{Method: "DELETE", Path: "/api/v1/namespaces/default/configmaps/a?ignoreStoreReadErrorWithClusterBreakingPotential=true&dryRun=All"},
	{Method: "DELETE", Path: "/api/v1/namespaces/default/configmaps/a", Body: []byte(`{"ignoreStoreReadErrorWithClusterBreakingPotential":true,"preconditions":{"uid":"x"}}`)},
	{Method: "DELETE", Path: "/api/v1/namespaces/default/configmaps?ignoreStoreReadErrorWithClusterBreakingPotential=true&labelSelector=a"},
	{Method: "DELETE", Path: "/api/v1/namespaces/default/configmaps/a?ignoreStoreReadErrorWithClusterBreakingPotential=true"},
	{Method: "POST", Path: "/api/v1/namespaces/default/limitranges", Body: []byte(`{"metadata":{"name":"a"},"spec":{"limits":[{"type":"Pod","max":{"memory":"1Gi"}}]}}`)},
	{Method: "POST", Path: pods, Body: pod("a", `"resources":{"requests":{"cpu":"1"},"limits":{"memory":"1Gi"}},`, ``)},
	{Method: "POST", Path: pods, Body: pod("b", `"resources":{"limits":{"memory":"2Gi"}},`, `"resources":{"limits":{"memory":"1Mi"}},`)},
	{Method: "POST", Path: pods, Body: pod("c", `"securityContext":{"seLinuxChangePolicy":"MountOption"},`, `"resources":{"limits":{"memory":"1Mi"}},`)},
	{Method: "POST", Path: pods, Body: pod("d", ``, `"restartPolicy":"Never","livenessProbe":{"httpGet":{"port":1}},"resources":{"limits":{"memory":"1Mi"}},`)},
	{Method: "PUT", Path: pods + "/d", Body: pod("d", ``, `"restartPolicy":"Never","livenessProbe":{"httpGet":{"port":1,"protocol":"HTTP1"}},"resources":{"limits":{"memory":"1Mi"}},`)},
	{Method: "POST", Path: "/api/v1/nodes", Body: []byte(`{"metadata":{"name":"n"}}`)},
	{Method: "POST", Path: devices, Body: slice(`"nodeName":"n"`)},
	{Method: "POST", Path: devices, Body: slice(`"nodeName":"other"`)},
	{Method: "POST", Path: devices, Body: slice(`"allNodes":true`)},
	{Method: "POST", Path: deployments, Body: []byte(`{"metadata":{"name":"a"},"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"a"}]},"template":` +
		`{"metadata":{"labels":{"a":"b"}},"spec":{"evictionResponders":[{"name":"a","priority":2147483647}],"containers":[{"name":"c","image":"i"}]}}}}`)},
	{Method: "POST", Path: deployments + "?fieldValidation=Strict", Body: []byte(`{"spec":{"zz":1,"aa":2},"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"bb":1}`)},
	{Method: "POST", Path: deployments, Body: []byte(`{"apiVersion":"apps/","kind":"Deployment","metadata":{"name":"a"}}`)},
	{Method: "POST", Path: deployments, Body: []byte(`{"kind":"Other","metadata":{"name":"a","labels":{"a":1e400}}}`)},
	{Method: "POST", Path: configMaps, Body: []byte(`{"metadata":{"name":"frozen"},"immutable":true}`)},
	{Method: "PUT", Path: configMaps + "/frozen", Body: []byte(`{"metadata":{"name":"frozen","resourceVersion":"0"},"immutable":true,"data":{}}`)},
	{Method: "PUT", Path: configMaps + "/frozen?dryRun=All", Body: []byte(`{"metadata":{"name":"frozen","resourceVersion":"0"},"immutable":true}`)},
	{Method: "PUT", Path: configMaps + "/frozen", Body: []byte(`{"metadata":{"name":"frozen"},"immutable":true,"data":{"a":"b"}}`)},
	{Method: "POST", Path: devices, Body: slice(`"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}`)},
}

const (
	pods    = "/api/v1/namespaces/default/pods"
	devices = "/apis/resource.k8s.io/v1/resourceslices"

	configMaps  = "/api/v1/namespaces/default/configmaps"
	deployments = "/apis/apps/v1/namespaces/default/deployments"

	versions = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
)

// pod is a pod with fields of its spec and its container.
func pod(name, spec, container string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{` + spec + `"containers":[{` + container + `"name":"c","image":"i"}]}}`)
}

// slice is a ResourceSlice with a device that takes resources of nodes.
func slice(nodes string) []byte {
	return []byte(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"generateName":"s-"},"spec":{"driver":"d.example.com","pool":{"name":"p","resourceSliceCount":1},` + nodes +
		`,"devices":[{"name":"d","nodeAllocatableResources":{"cpu":{"mapping":{"deviceMultiplier":"1"}}}}]}}`)
}

// TestRequests sends requests whose responses depend on gates.
func TestRequests(t *testing.T) {
	if *reference == "" {
		t.Skip("needs -reference start")
	}
	gates := []string{"--feature-gates=" + strings.Join(off, "=false,") + "=false"}
	for name, flags := range map[string][]string{
		"on": nil, "off": gates, "not compressed": {"--feature-gates=WatchListCompression=false"},
		"fields of pods off": {"--feature-gates=PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false,PodLevelResourcesFixDefaulting=false,PodLevelResourcesFixKubeletQOSClass=false," +
			"SELinuxMount=false,ContainerRestartRules=false,RestartAllContainersOnContainerExits=false"},
		"leaders and storage versions": {
			"--feature-gates=CoordinatedLeaderElection=true,StorageVersionAPI=true",
			"--runtime-config=coordination.k8s.io/v1beta1=true,internal.apiserver.k8s.io/v1alpha1=true",
		},
		"fields of pods and devices on": {"--feature-gates=H2CContainerProbe=true,DRANodeAllocatableResources=true,EvictionRequestAPI=true"},
	} {
		t.Run(name, func(t *testing.T) {
			o := servers.Options{Reference: *reference, Store: "memory", Dir: t.TempDir(), Theirs: flags, Ours: flags}
			o.WithoutControllers()
			p, err := servers.Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			if slices.ContainsFunc(flags, func(f string) bool { return strings.Contains(f, "CoordinatedLeaderElection=true") }) {
				waitForLeader(t, p.Theirs, p.Ours)
			}
			theirs, ours := judge.NewServer(wire.Scope), judge.NewServer(wire.Scope)
			for _, s := range requests {
				s.Header = append(s.Header, wire.Field{Name: "Content-Type", Value: "application/json"})
				for _, d := range judge.Compare(answer(t, theirs, p.Theirs, s), answer(t, ours, p.Ours, s)) {
					t.Errorf("%s %s: %s\n\tKubernetes %s\n\tanykind    %s", s.Method, s.Path, d.Place, d.Theirs, d.Ours)
				}
			}
		})
	}
}

// waitForLeader waits until the controllers that elect leaders have Leases of their own, because the requests list Leases.
func waitForLeader(t *testing.T, clients ...*wire.Client) {
	t.Helper()
	for _, c := range clients {
		if err := servers.Wait(t.Context(), func() bool {
			a := c.Do(t.Context(), wire.Step{Method: "GET", Path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader-election-controller"})
			return a.Code == http.StatusOK
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// answer sends a request, and returns the response with the events until the end of a watch.
func answer(t *testing.T, s *judge.Server, c *wire.Client, step wire.Step) *judge.Normal {
	t.Helper()
	s.Sent(step)
	a := c.Do(t.Context(), step)
	if a.Stream == nil {
		n := s.Normal(a)
		if step.Around && a.Code == http.StatusOK {
			n.Body = nil
		}
		return n
	}
	defer a.Stream.Close()
	ended := func() bool { _, ended := a.Stream.Len(); return ended }
	if err := servers.Wait(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	return s.Events(a)
}
