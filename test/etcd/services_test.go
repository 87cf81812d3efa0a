package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

const (
	allServices  = "/api/v1/namespaces/default/services"
	allAddresses = "/apis/networking.k8s.io/v1/ipaddresses"
	serviceRange = "10.0.0.0/24"
)

// hammer creates and deletes Services through all servers at once, some of which may be killed, and
// returns the number of created ones.
func hammer(t *testing.T, servers []process.API) (made int) {
	t.Helper()
	const writers, rounds = 16, 10
	var group sync.WaitGroup
	var mu sync.Mutex
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				spec := map[string]any{"ports": []any{map[string]any{"port": 80}}}
				switch rand.IntN(4) {
				case 0:
					spec["clusterIP"] = "10.0.0.7"
				case 1, 2:
					spec["type"] = "NodePort"
				}
				name := fmt.Sprintf("s%d-%d", w, i)
				service := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name}, "spec": spec}
				err := servers[rand.IntN(len(servers))].Do(t.Context(), "POST", allServices, service, nil)
				var refused *process.Refused
				switch {
				case err == nil:
					mu.Lock()
					made++
					mu.Unlock()
				case errors.As(err, &refused) && strings.Contains(err.Error(), "already allocated"):
				case errors.As(err, &refused) && strings.Contains(err.Error(), "range is full"):
				case process.Unanswered(err): // the server was killed
				default:
					t.Errorf("%s: %v", name, err)
				}
				if err == nil && rand.IntN(3) == 0 {
					err := servers[rand.IntN(len(servers))].Do(t.Context(), "DELETE", allServices+"/"+name, nil, nil)
					if err != nil && !process.Unanswered(err) {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		})
	}
	group.Wait()
	return made
}

// holdings returns the owner of each address and port, and fails for duplicates.
func holdings(t *testing.T, server process.API) (addresses map[string]string, ports map[int32]string) {
	t.Helper()
	var list corev1.ServiceList
	if err := server.Do(t.Context(), "GET", allServices, nil, &list); err != nil {
		t.Fatal(err)
	}
	addresses, ports = map[string]string{}, map[int32]string{}
	for _, s := range list.Items {
		for _, ip := range s.Spec.ClusterIPs {
			if addresses[ip] != "" {
				t.Errorf("%s and %s have %s", addresses[ip], s.Name, ip)
			}
			addresses[ip] = s.Name
		}
		for _, p := range s.Spec.Ports {
			if p.NodePort != 0 && ports[p.NodePort] != "" {
				t.Errorf("%s and %s have port %d", ports[p.NodePort], s.Name, p.NodePort)
			}
			if p.NodePort != 0 {
				ports[p.NodePort] = s.Name
			}
		}
	}
	return addresses, ports
}

// owners returns the owner of each IPAddress.
func owners(t *testing.T, server process.API) map[string]string {
	t.Helper()
	var list networkingv1.IPAddressList
	if err := server.Do(t.Context(), "GET", allAddresses, nil, &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, a := range list.Items {
		out[a.Name] = a.Spec.ParentRef.Name
	}
	return out
}

// recordedPorts returns the node ports in our allocation record.
func recordedPorts(t *testing.T, url string) (ports []int32) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var record corev1.RangeAllocation
	found := must[*clientv3.GetResponse](t)(client.Get(t.Context(), "/registry/ranges/servicenodeports"))
	if len(found.Kvs) != 1 || json.Unmarshal(builtin.StoredJSON(builtin.Stored(nil), resource.NodePortsKey, found.Kvs[0].Value), &record) != nil {
		t.Fatalf("the record of ports is %v", found.Kvs)
	}
	for i := range 8 * len(record.Data) {
		if record.Data[len(record.Data)-1-i/8]>>(i%8)&1 == 1 {
			ports = append(ports, int32(30000+i))
		}
	}
	return ports
}

// condemned starts a server that the test will kill.
func condemned(t *testing.T, flags ...string) (*process.Server, process.API) {
	t.Helper()
	server, err := process.Start(context.WithoutCancel(t.Context()), must[string](t)(program.Anykind()), t.TempDir(), "", flags...)
	if err != nil {
		t.Fatal(err)
	}
	client := must[*http.Client](t)(process.Client(server.Kubeconfig))
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Kill()
	})
	return server, process.API{Client: client, URL: server.URL}
}

// Services that are created through three servers at once, one of which is killed, have unique
// addresses and ports. The records match the Services at every moment: a crash leaves no leak.
func TestServicesOfServersShareNothing(t *testing.T) {
	url := Start(t)
	var servers []process.API
	for range 2 {
		_, api := run(t, "--etcd-servers", url)
		servers = append(servers, api)
	}
	victim, api := condemned(t, "--etcd-servers", url)
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for range 40 { // in the middle of the writes, at any speed
			if addresses, _ := holdings(t, servers[0]); len(addresses) > 40 {
				break
			}
		}
		victim.Kill()
	}()
	made := hammer(t, append(slices.Clone(servers), api))
	<-killed
	for _, server := range servers {
		addresses, ports := holdings(t, server)
		t.Logf("%d Services were made, %d addresses and %d ports are held", made, len(addresses), len(ports))
		if given := owners(t, server); fmt.Sprint(given) != fmt.Sprint(addresses) {
			t.Errorf("IPAddresses are of\n%v, and Services have\n%v", given, addresses)
		}
		recorded := recordedPorts(t, url)
		for _, port := range recorded {
			if ports[port] == "" {
				t.Errorf("port %d is recorded, and no Service has it", port)
			}
		}
		if len(recorded) != len(ports) || len(ports) == 0 {
			t.Errorf("%d ports are recorded of %d", len(recorded), len(ports))
		}
	}
	if err := servers[0].Do(t.Context(), "DELETE", allServices, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error { // the Service kubernetes is recreated
		if addresses, ports := holdings(t, servers[1]); len(addresses) != 1 || len(ports) != 0 || len(owners(t, servers[1])) != 1 || len(recordedPorts(t, url)) != 0 {
			return fmt.Errorf("left are %v and %v", addresses, ports)
		}
		return nil
	})
}

// The endpoints of the Service kubernetes are the running servers.
func TestEndpointsAreTheServersThatAreAlive(t *testing.T) {
	url := Start(t)
	_, api := run(t, "--etcd-servers", url, "--advertise-address", "192.0.2.1")
	check := func(want string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			var slice struct {
				Endpoints []struct{ Addresses []string }
			}
			if err := api.Do(ctx, "GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", nil, &slice); err != nil {
				return err
			}
			if got := fmt.Sprint(slice.Endpoints); got != want {
				return fmt.Errorf("there are %s, want %s", got, want)
			}
			return nil
		})
	}
	check("[{[192.0.2.1]}]")
	stopped, _ := condemned(t, "--etcd-servers", url, "--advertise-address", "192.0.2.2")
	victim, _ := condemned(t, "--etcd-servers", url, "--advertise-address", "192.0.2.3")
	check("[{[192.0.2.1]} {[192.0.2.2]} {[192.0.2.3]}]")
	if err := stopped.Stop(); err != nil {
		t.Error(err)
	}
	victim.Kill()
	check("[{[192.0.2.1]}]")
}

// A kube-apiserver and anykind over one etcd allocate nothing twice, and each respects the allocations
// of the other.
func TestServicesBesideKubernetes(t *testing.T) {
	if !*bothWays {
		t.Skip("building kube-apiserver takes minutes; make both-ways does")
	}
	m := StartMember(t)
	kube := startKube(t, m.Client)
	_, anykind := run(t, "--etcd-servers", m.Client, "--service-cluster-ip-range", serviceRange)
	made := hammer(t, []process.API{kube, anykind})
	for _, server := range []process.API{kube, anykind} {
		addresses, ports := holdings(t, server)
		t.Logf("%d Services were made, %d addresses and %d ports are held", made, len(addresses), len(ports))
		given := owners(t, server)
		for ip, name := range addresses {
			if given[ip] != name {
				t.Errorf("%s is of %q, and %s has it", ip, given[ip], name)
			}
		}
		if len(ports) == 0 {
			t.Error("no Service has a port")
		}
	}
	// A loopback address is never an endpoint.
	client := must[*clientv3.Client](t)(clientv3.New(clientv3.Config{Endpoints: []string{m.Client}}))
	defer client.Close()
	leases := must[*clientv3.GetResponse](t)(client.Get(t.Context(), "/registry/masterleases/", clientv3.WithPrefix())).Kvs
	if len(leases) != 1 || strings.Contains(string(leases[0].Key), "127.0.0.1") {
		t.Errorf("there are leases %v", leases)
	}
}
