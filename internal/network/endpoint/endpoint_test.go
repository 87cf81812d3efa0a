package endpoint_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/endpoint"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// resolver returns a Resolver over objects, each a Service or an EndpointSlice.
func resolver(t *testing.T, objects []string) *endpoint.Resolver {
	t.Helper()
	backend := memkv.New(memkv.Options{})
	r := &endpoint.Resolver{
		Cache:          watchcache.New(backend, watchcache.Options{}),
		Services:       &resource.Definition{Plural: "services", Kind: "Service", Namespaced: true, StoragePrefix: "/registry/services/"},
		EndpointSlices: &resource.Definition{Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true, StoragePrefix: "/registry/endpointslices/"},
	}
	for i, o := range objects {
		key := r.Services.Key("ns", "hooks")
		if strings.Contains(o, "EndpointSlice") {
			key = r.EndpointSlices.Key("ns", fmt.Sprint("s", i))
		}
		if _, err := backend.Commit(t.Context(), kv.Write{Key: key, Value: []byte(o)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		backend.Close()
	})
	return r
}

func service(spec string) string {
	return `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"ns","name":"hooks"},"spec":` + spec + `}`
}

func slice(of, addressType, endpoints, ports string) string {
	return fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"ns","name":"s","labels":{"kubernetes.io/service-name":%q}},
		"addressType":%q,"endpoints":[%s],"ports":[%s]}`, of, addressType, endpoints, ports)
}

// The results for port 443 of the Service hooks.
func TestResolve(t *testing.T) {
	clusterIP := service(`{"type":"ClusterIP","clusterIP":"10.0.0.1","ports":[{"name":"metrics","port":1},{"name":"hook","port":443}]}`)
	headless := service(`{"type":"ClusterIP","clusterIP":"None","ports":[{"name":"hook","port":443}]}`)
	none := service(`{"type":"ClusterIP","ports":[{"name":"hook","port":443}]}`)
	const hook = `{"name":"metrics","port":9},{"name":"hook","port":8443}`
	for _, tt := range []struct {
		name    string
		objects []string
		want    string
		err     string
	}{
		{name: "no service", err: `service "hooks" not found`},
		{name: "no such port", objects: []string{service(`{"type":"ClusterIP","clusterIP":"10.0.0.1","ports":[{"port":80}]}`)},
			err: `no service port 443 found for service "hooks"`},
		{name: "an address that leads nowhere", objects: []string{clusterIP}, err: `no endpoints available for service "hooks"`},
		{name: "no address and no endpoints", objects: []string{none}, err: `no endpoints available for service "hooks"`},
		{name: "headless without endpoints", objects: []string{headless}, err: `no endpoints available for service "hooks"`},
		{name: "endpoints, by the name of the port", objects: []string{clusterIP, slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]},{"addresses":["10.1.0.2","10.1.0.3"]}`, hook)},
			want: "10.1.0.1:8443 10.1.0.2:8443"},
		{name: "headless with endpoints", objects: []string{headless, slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]}`, hook)}, want: "10.1.0.1:8443"},
		{name: "a port without a name", objects: []string{
			service(`{"type":"ClusterIP","ports":[{"port":443}]}`), slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]}`, `{"name":"","port":7}`)},
			want: "10.1.0.1:7"},
		{name: "only who is ready", objects: []string{clusterIP, slice("hooks", "IPv4",
			`{"addresses":["10.1.0.1"],"conditions":{"ready":false}},{"addresses":["10.1.0.2"],"conditions":{"ready":true}},{"addresses":["10.1.0.3"],"conditions":{}}`, hook)},
			want: "10.1.0.2:8443 10.1.0.3:8443"},
		{name: "no ready endpoint", objects: []string{clusterIP, slice("hooks", "IPv4", `{"addresses":["10.1.0.1"],"conditions":{"ready":false}}`, hook)},
			err: `no endpoints available for service "hooks"`},
		{name: "many slices", objects: []string{clusterIP,
			slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]}`, hook), slice("other", "IPv4", `{"addresses":["10.1.0.2"]}`, hook), slice("hooks", "IPv4", `{"addresses":["10.1.0.3"]}`, hook)},
			want: "10.1.0.1:8443 10.1.0.3:8443"},
		{name: "the family that the service prefers", objects: []string{
			service(`{"type":"ClusterIP","ipFamilies":["IPv6","IPv4"],"ports":[{"name":"hook","port":443}]}`),
			slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]}`, hook), slice("hooks", "IPv6", `{"addresses":["fd00::1"]}`, hook)},
			want: "[fd00::1]:8443"},
		{name: "the other slice, without a ready endpoint in the first", objects: []string{
			service(`{"type":"ClusterIP","ipFamilies":["IPv6","IPv4"],"ports":[{"name":"hook","port":443}]}`),
			slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]}`, hook), slice("hooks", "IPv6", `{"addresses":["fd00::1"],"conditions":{"ready":false}}`, hook)},
			want: "10.1.0.1:8443"},
		{name: "a port of a node is one of the service", objects: []string{service(`{"type":"NodePort","clusterIP":"10.0.0.1","ports":[{"port":443,"nodePort":30443}]}`),
			slice("hooks", "IPv4", `{"addresses":["10.1.0.1"]}`, `{"name":"","port":7}`)}, want: "10.1.0.1:7"},
		{name: "a name outside, whatever its ports", objects: []string{service(`{"type":"ExternalName","externalName":"hooks.example.com"}`)}, want: "hooks.example.com:443"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := resolver(t, tt.objects).Resolve(t.Context(), egress.Service{Namespace: "ns", Name: "hooks", Port: 443})
			slices.Sort(got)
			if strings.Join(got, " ") != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got  %v, %v\nwant %v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// The results with ClusterIPs.
func TestClusterIPs(t *testing.T) {
	for _, tt := range []struct{ service, want string }{
		{`{"type":"ClusterIP","clusterIP":"10.0.0.1","ports":[{"name":"hook","port":443}]}`, "10.0.0.1:443"},
		{`{"type":"NodePort","clusterIP":"fd00::1","ports":[{"port":443,"nodePort":30443}]}`, "[fd00::1]:443"},
		{`{"type":"ExternalName","externalName":"hooks.example.com"}`, "hooks.example.com:443"},
		{`{"type":"ClusterIP","clusterIP":"None","ports":[{"port":443}]}`, `cannot route to service with ClusterIP "None"`},
		{`{"type":"ClusterIP","clusterIP":"10.0.0.1","ports":[{"port":80}]}`, `no service port 443 found for service "hooks"`},
	} {
		r := resolver(t, []string{service(tt.service)})
		r.ClusterIPs = true
		addresses, err := r.Resolve(t.Context(), egress.Service{Namespace: "ns", Name: "hooks", Port: 443})
		got := strings.Join(addresses, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.service, got, tt.want)
		}
	}
}
