package servicerepair

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// in runs a test in a world with objects stored before the controller starts.
func in(t *testing.T, stored map[string]string, test func(w *controllertest.World)) {
	synctest.Test(t, func(t *testing.T) {
		var w *controllertest.World
		w = controllertest.New(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
			return New(w.Addresses)(o, q)
		}}})
		w.Create("namespace default")
		w.Create("namespace dev")
		w.Store("servicecidr kubernetes", `{spec: {cidrs: [10.0.0.0/24]}}`)
		for what, text := range stored {
			w.Store(what, text)
		}
		w.Start()
		w.Wait()
		test(w)
	})
}

// owners formats the owner of each address.
func owners(w *controllertest.World) string {
	w.Wait()
	page, err := w.Backend.List(w.Ctx, kv.Range{Prefix: "/registry/ipaddresses/"})
	if err != nil {
		w.T.Fatal(err)
	}
	var all []string
	for _, r := range page.Records {
		var t object.Tree
		if err := json.Unmarshal(r.Value, &t); err != nil {
			w.T.Fatal(err)
		}
		all = append(all, object.Name(t)+"="+kind.Text(t, "spec", "parentRef", "name"))
	}
	return strings.Join(all, " ")
}

const (
	labels = `metadata: {labels: {ipaddress.kubernetes.io/ip-family: IPv4, ipaddress.kubernetes.io/managed-by: ipallocator.k8s.io}}`
	ofA    = `spec: {parentRef: {resource: services, namespace: dev, name: a}}`
	hasOne = `{spec: {type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ports: [{port: 80}]}}`
	minute = time.Minute + time.Second
)

// Inconsistent addresses in the store are repaired or reported in Events.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		name           string
		stored         map[string]string
		at, after, say string
	}{
		{"all in order", map[string]string{"service dev/a": hasOne, "ipaddress 10.0.0.1": `{` + labels + `, ` + ofA + `}`}, "10.0.0.1=a", "10.0.0.1=a", "[]"},
		{"not allocated", map[string]string{"service dev/a": hasOne}, "10.0.0.1=a", "10.0.0.1=a", "[ClusterIPNotAllocated]"},
		{"of a missing Service", map[string]string{"service dev/a": hasOne, "ipaddress 10.0.0.1": `{` + labels + `, spec: {parentRef: {resource: services, namespace: dev, name: b}}}`},
			"10.0.0.1=a", "10.0.0.1=a", "[ClusterIPNotAllocated]"},
		{"of something else", map[string]string{"service dev/a": hasOne, "ipaddress 10.0.0.1": `{spec: {parentRef: {group: g, resource: gates, name: g}}}`},
			"10.0.0.1=a", "10.0.0.1=a", "[ClusterIPNotAllocated]"},
		{"without labels", map[string]string{"service dev/a": hasOne, "ipaddress 10.0.0.1": `{` + ofA + `}`}, "10.0.0.1=a", "10.0.0.1=a", "[]"},
		{"twice", map[string]string{"service dev/a": hasOne, "service dev/b": hasOne, "ipaddress 10.0.0.1": `{` + labels + `, ` + ofA + `}`},
			"10.0.0.1=a", "10.0.0.1=a", "[ClusterIPAlreadyAllocated]"},
		{"out of range", map[string]string{"service dev/a": `{spec: {type: ClusterIP, clusterIP: 10.1.0.1, clusterIPs: [10.1.0.1], ipFamilies: [IPv4], ports: [{port: 80}]}}`},
			"", "", "[ClusterIPOutOfRange]"},
		{"no address", map[string]string{"service dev/a": `{spec: {type: ClusterIP, clusterIP: x, clusterIPs: [x], ports: [{port: 80}]}}`}, "", "", "[ClusterIPNotValid]"},
		{"leaked", map[string]string{"ipaddress 10.0.0.1": `{` + labels + `, ` + ofA + `}`}, "10.0.0.1=a", "", "[IPAddressNotAllocated]"},
		{"not managed by the allocator", map[string]string{"ipaddress 10.0.0.1": `{` + ofA + `}`}, "10.0.0.1=a", "10.0.0.1=a", "[]"},
		{"wrong reference", map[string]string{"ipaddress 10.0.0.2": `{` + labels + `, ` + ofA + `}`, "ipaddress 10.0.0.1": `{` + labels + `, ` + ofA + `}`, "service dev/a": hasOne},
			"10.0.0.1=a 10.0.0.2=a", "10.0.0.1=a", "[IPAddressWrongReference]"},
		{"modified", map[string]string{"ipaddress 10.0.0.2": `{` + labels + `, spec: {parentRef: {resource: pods, name: p}}}`}, "", "", "[IPAddressNotAllocated]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, tt.stored, func(w *controllertest.World) {
				if got := owners(w); got != tt.at {
					t.Errorf("at once %s, want %s", got, tt.at)
				}
				w.Sleep(minute)
				if got := owners(w); got != tt.after {
					t.Errorf("after a minute %s, want %s", got, tt.after)
				}
				if got := fmt.Sprint(w.Warnings()); got != tt.say {
					t.Errorf("warned %s, want %s", got, tt.say)
				}
			})
		})
	}
}

// A Service stored by an earlier version gets its missing fields.
func TestServicesGetWhatTheyLack(t *testing.T) {
	in(t, map[string]string{
		"service dev/a": `{spec: {type: LoadBalancer, externalTrafficPolicy: Local, sessionAffinity: None, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack,
			ports: [{port: 80, protocol: TCP, targetPort: 80}]}}`,
		"service dev/name": `{spec: {type: ExternalName, externalName: a.b, sessionAffinity: None}}`,
	}, func(w *controllertest.World) {
		s := w.Get("service dev/a")
		port, _ := kind.List(s, "spec", "ports")[0].(object.Tree)
		if kind.Text(s, "spec", "clusterIP") == "" || port["nodePort"] == nil || kind.Value(s, "spec", "healthCheckNodePort") == nil {
			t.Errorf("it has %v", s["spec"])
		}
		if got := owners(w); got != kind.Text(s, "spec", "clusterIP")+"=a" {
			t.Errorf("there is %s", got)
		}
		if got := w.Warnings(); got != nil {
			t.Errorf("warned %s", got)
		}
	})
}

// A deleted IPAddress is created again, and is deleted with its Service.
func TestAnAddressComesBack(t *testing.T) {
	in(t, map[string]string{"service dev/a": hasOne, "ipaddress 10.0.0.1": `{` + labels + `, ` + ofA + `}`}, func(w *controllertest.World) {
		w.Delete("ipaddress 10.0.0.1", "")
		if got := owners(w); got != "10.0.0.1=a" {
			t.Errorf("there is %s", got)
		}
		w.Edit("ipaddress 10.0.0.1", func(t object.Tree) { object.SetFinalizers(t, []string{"test.example.com/f"}) })
		w.Delete("service dev/a", "")
		if got := owners(w); got != "10.0.0.1=a" {
			t.Errorf("there is %s, it had a finalizer", got)
		}
		w.Sleep(minute)
		w.Release("ipaddress 10.0.0.1")
		if got := owners(w); got != "" {
			t.Errorf("there is %s", got)
		}
	})
}

// The deletion of a namespace releases the addresses and ports of its Services.
func TestANamespaceGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t, []controller.Descriptor{{Name: namespace.Name, New: namespace.New}})
		w.Store("servicecidr kubernetes", `{spec: {cidrs: [10.0.0.0/24]}}`)
		w.Start()
		w.Create("namespace dev")
		for _, name := range []string{"a", "b"} {
			w.Create("service dev/"+name, func(_ *controllertest.World, t object.Tree) {
				t["spec"] = object.Tree{
					"type": "NodePort", "sessionAffinity": "None", "externalTrafficPolicy": "Cluster",
					"ports": []any{object.Tree{"name": "p", "port": int64(80), "protocol": "TCP", "targetPort": int64(80)}},
				}
			})
		}
		if got := len(strings.Fields(owners(w))); got != 2 || len(recorded(w)) != 2 {
			t.Fatalf("there are %d addresses and ports %v", got, recorded(w))
		}
		w.Delete("namespace dev", "")
		if got := owners(w); got != "" || len(recorded(w)) != 0 {
			t.Errorf("left are %s and ports %v", got, recorded(w))
		}
	})
}

// recorded returns the ports of the record.
func recorded(w *controllertest.World) (ports []int) {
	w.Wait()
	record, err := w.Backend.Get(w.Ctx, resource.NodePortsKey, kv.Latest)
	if err != nil {
		return nil
	}
	var r corev1.RangeAllocation
	if err := json.Unmarshal(record.Value, &r); err != nil || r.Range != "30000-30099" {
		w.T.Fatal(r.Range, err)
	}
	for i := range 8 * len(r.Data) {
		if r.Data[len(r.Data)-1-i/8]>>(i%8)&1 == 1 {
			ports = append(ports, 30000+i)
		}
	}
	return ports
}

// The port record follows the Services. An unused port stays for some time: its Service may be
// about to be stored.
func TestPorts(t *testing.T) {
	node := func(port int) string {
		return fmt.Sprintf(`{spec: {type: NodePort, clusterIP: None, clusterIPs: [None], ports: [{port: 80, nodePort: %d}]}}`, port)
	}
	record := func(of string, data string) map[string]string {
		return map[string]string{"kind": "RangeAllocation", "apiVersion": "v1", "range": of, "data": data}
	}
	for _, tt := range []struct {
		name      string
		services  []int
		record    map[string]string
		at, after []int
		say       []string
	}{
		{"none", nil, nil, nil, nil, nil},
		{"in order", []int{30001}, record("30000-30099", "Ag=="), []int{30001}, []int{30001}, nil},
		{"not recorded", []int{30001, 30003}, record("30000-30099", "Ag=="), []int{30001, 30003}, []int{30001, 30003}, []string{"PortNotAllocated"}},
		{"leaked", nil, record("30000-30099", "Ag=="), []int{30001}, nil, nil},
		{"twice", []int{30001, 30001}, record("30000-30099", "Ag=="), []int{30001}, []int{30001}, []string{"PortAlreadyAllocated"}},
		{"out of range", []int{30}, record("30000-30099", ""), nil, nil, []string{"PortOutOfRange"}},
		{"another range", []int{30001}, record("1-2", "Ag=="), []int{30001}, []int{30001}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored := map[string]string{}
			for i, port := range tt.services {
				stored[fmt.Sprint("service dev/s", i)] = node(port)
			}
			synctest.Test(t, func(t *testing.T) {
				var w *controllertest.World
				w = controllertest.New(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
					return New(w.Addresses)(o, q)
				}}})
				w.Create("namespace dev")
				for what, text := range stored {
					w.Store(what, text)
				}
				if tt.record != nil {
					value, _ := json.Marshal(tt.record)
					if _, err := w.Backend.Commit(w.Ctx, kv.Write{Key: resource.NodePortsKey, Value: value}); err != nil {
						t.Fatal(err)
					}
				}
				w.Start()
				if got := recorded(w); !slices.Equal(got, tt.at) {
					t.Errorf("at once %v, want %v", got, tt.at)
				}
				w.Sleep(leakGrace)
				if got := recorded(w); !slices.Equal(got, tt.after) {
					t.Errorf("later %v, want %v", got, tt.after)
				}
				if got := w.Warnings(); !slices.Equal(got, tt.say) {
					t.Errorf("warned %s, want %s", got, tt.say)
				}
			})
		})
	}
}
