package builtin

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// modify merges fields into the spec of a Service.
func (s shop) modify(t *testing.T, name, spec string) (object.Tree, error) {
	t.Helper()
	target := registry.StorageTarget(s.kind, "default", name)
	var change object.Tree
	if err := utiljson.Unmarshal([]byte(spec), &change); err != nil {
		t.Fatal(err)
	}
	result, err := s.Modify(t.Context(), target, func(old object.Tree) (object.Tree, error) {
		now := object.CloneTree(old)
		maps.Copy(kind.Child(now, "spec"), change)
		now, _, err := target.Version.Schema.Complete(now)
		return now, err
	}, registry.WriteOptions{})
	return result.Tree, err
}

// givenTo formats the allocations of a Service: an address of a range as 4 or 6, a port of the
// range as N, and the health check port as H.
func givenTo(service object.Tree) string {
	var out []string
	for _, ip := range kind.Texts(service, "spec", "clusterIPs") {
		switch {
		case strings.HasPrefix(ip, "10.0.0."):
			out = append(out, "4")
		case strings.HasPrefix(ip, "fd00::"):
			out = append(out, "6")
		default:
			out = append(out, ip)
		}
	}
	for _, p := range kind.List(service, "spec", "ports") {
		if p.(map[string]any)["nodePort"] != nil {
			out = append(out, "N")
		}
	}
	if kind.Value(service, "spec", "healthCheckNodePort") != nil {
		out = append(out, "H")
	}
	return strings.Join(out, " ")
}

// After each change of a Service, exactly its allocations are recorded.
func TestServiceTypesGiveAndRelease(t *testing.T) {
	const (
		cluster      = `{"type":"ClusterIP"}`
		node         = `{"type":"NodePort"}`
		balancer     = `{"type":"LoadBalancer","externalTrafficPolicy":"Cluster"}`
		local        = `{"type":"LoadBalancer","externalTrafficPolicy":"Local"}`
		portless     = `{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false}`
		external     = `{"type":"ExternalName","externalName":"a.b"}`
		headlessType = `{"clusterIP":"None","clusterIPs":["None"]}`
		twoPorts     = `{"ports":[{"port":80,"name":"a"},{"port":81,"name":"b"}]}`
		bothSame     = `{"ports":[{"port":80,"name":"a"},{"port":80,"name":"b","protocol":"UDP"}]}`
		dual         = `{"ipFamilyPolicy":"RequireDualStack"}`
		single       = `{"ipFamilyPolicy":"SingleStack"}`
	)
	for _, tt := range []struct{ name, steps, want string }{
		{"to a port and back", node + cluster, "4 | 4 N | 4"},
		{"through all types", node + local + balancer + external + cluster, "4 | 4 N | 4 N H | 4 N |  | 4"},
		{"a name gets all at once", external + local, "4 |  | 4 N H"},
		{"a load balancer without ports", portless + `{"allocateLoadBalancerNodePorts":true}` + `{"allocateLoadBalancerNodePorts":false}`, "4 | 4 | 4 N | 4 N"},
		{"ports come and go", node + twoPorts + `{"ports":[{"port":81,"name":"b"}]}`, "4 | 4 N | 4 N N | 4 N"},
		{"a port for two protocols", bothSame + node, "4 | 4 | 4 N N"},
		{"families", dual + node + single, "4 | 4 6 | 4 6 N | 4 N"},
		{"two families go with the type", dual + external + cluster, "4 | 4 6 |  | 4"},
		{"an address stays", headlessType, "4 | ! may not change once set"},
		{"a port of another range", node + `{"ports":[{"port":80,"nodePort":1}]}`, "4 | 4 N | ! provided port is not in the valid range. The range of valid ports is 30000-32767"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ports := allocation.PortRange{Base: 30000, Size: 2768}
			backend, all := shops(t, 1, "10.0.0.0/24,fd00::/112", ports)
			service, err := all[0].create(t.Context(), "a", `{"ports":[{"port":80}]}`)
			got := []string{givenTo(service)}
			if err != nil {
				t.Fatal(err)
			}
			for step := range strings.SplitSeq(strings.ReplaceAll(tt.steps, "}{", "}\n{"), "\n") {
				if service, err = all[0].modify(t, "a", step); err != nil {
					got = append(got, "! "+err.Error()[strings.LastIndex(err.Error(), ": ")+2:])
				} else {
					got = append(got, givenTo(service))
				}
				audit(t, backend, ports)
			}
			same(t, tt.steps, strings.Join(got, " | "), tt.want)
			if err := all[0].delete(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if addresses, nodePorts := audit(t, backend, ports); addresses+nodePorts > 0 {
				t.Errorf("%d addresses and %d ports are left", addresses, nodePorts)
			}
		})
	}
}

// A port in a Service whose type does not hold it is requested like any other.
func TestAPortThatWasNotHeld(t *testing.T) {
	ports := allocation.PortRange{Base: 30000, Size: 100}
	_, all := shops(t, 1, "10.0.0.0/24", ports)
	for _, name := range []string{"a", "b"} {
		spec := `{"type":"ExternalName","externalName":"a.b","ports":[{"port":80,"nodePort":30001}]}`
		if _, err := all[0].create(t.Context(), name, spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := all[0].modify(t, "a", `{"type":"NodePort"}`); err != nil {
		t.Error(err)
	}
	if _, err := all[0].modify(t, "b", `{"type":"NodePort"}`); err == nil || !strings.Contains(err.Error(), "provided port is already allocated") {
		t.Errorf("two have one port: %v", err)
	}
}

// A Service without allocations, stored by an earlier version, gets them at its next write. Its
// existing values are reserved until then.
func TestStoredServicesAreGivenTheirs(t *testing.T) {
	ports := allocation.PortRange{Base: 30000, Size: 2}
	backend, all := shops(t, 1, "10.0.0.0/24", ports)
	for name, spec := range map[string]string{
		"bare":  `{"type":"LoadBalancer","externalTrafficPolicy":"Cluster","sessionAffinity":"None","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"port":80,"protocol":"TCP"}]}`,
		"ports": `{"type":"NodePort","externalTrafficPolicy":"Cluster","sessionAffinity":"None","ports":[{"port":80,"protocol":"TCP","nodePort":30001}]}`,
	} {
		value := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q,"namespace":"default","uid":"u","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":%s}`, name, spec)
		commit(t, backend, "/registry/services/specs/default/"+name, value)
	}
	for _, want := range []string{"bare 4 N", "ports 4 N"} {
		name, _, _ := strings.Cut(want, " ")
		service, err := all[0].modify(t, name, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "given", name+" "+givenTo(service), want)
	}
	audit(t, backend, ports)
	if _, err := all[0].create(t.Context(), "more", `{"type":"NodePort","ports":[{"port":80}]}`); err == nil || !strings.Contains(err.Error(), "failed to allocate a nodePort: range is full") {
		t.Error(err)
	}
}
