package scarce

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/process"
)

// Stored is the state of all scarce resources in a server, without concurrent writes.
type Stored struct {
	Services  map[string]string // addresses and ports of each, without the Service kubernetes
	Pods      map[string]Pod
	Addresses map[string]string // owners of the IPAddresses
	Allowed   int64             // disruptions
}

// A Pod has the relevant fields of a pod.
type Pod struct {
	Node     string
	Deleting bool
}

// A Service has the relevant fields of a Service.
type Service struct {
	Metadata struct{ Name string }
	Spec     struct {
		ClusterIPs []string
		Ports      []struct{ NodePort int32 }
	}
}

// held returns the addresses and ports of a Service as text, addresses first.
func (s Service) held() string {
	out := slices.Clone(s.Spec.ClusterIPs)
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			out = append(out, fmt.Sprint("port ", p.NodePort))
		}
	}
	return strings.Join(out, ", ")
}

type budget struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       map[string]any `json:"spec"`
	Status     struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		DisruptionsAllowed int64 `json:"disruptionsAllowed"`
		CurrentHealthy     int64 `json:"currentHealthy"`
		DesiredHealthy     int64 `json:"desiredHealthy"`
		ExpectedPods       int64 `json:"expectedPods"`
	} `json:"status"`
}

// Prepare creates the budget.
func Prepare(ctx context.Context, api process.API) error {
	return api.Do(ctx, http.MethodPost, budgets, object{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"name": "b"},
		"spec": object{"minAvailable": 1, "selector": object{"matchLabels": object{"guarded": "yes"}}},
	}, nil)
}

// Grant sets the allowed disruptions, as the disruption controller does.
func (l *Ledger) Grant(ctx context.Context, api process.API, allowed int64) error {
	for {
		var b budget
		if err := api.Do(ctx, http.MethodGet, budgets+"/b", nil, &b); err != nil {
			return err
		}
		left := b.Status.DisruptionsAllowed
		generation, _ := b.Metadata["generation"].(float64)
		b.Status.ObservedGeneration, b.Status.DisruptionsAllowed = int64(generation), allowed
		b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods = 1000, 1, 1000
		err := api.Do(ctx, http.MethodPut, budgets+"/b/status", b, nil)
		if status(err) == http.StatusConflict {
			continue // an eviction without a response
		}
		if err == nil {
			l.mu.Lock()
			l.granted += allowed - left
			l.mu.Unlock()
		}
		return err
	}
}

// Read reads the stored state.
func Read(ctx context.Context, api process.API) (s Stored, err error) {
	s = Stored{Services: map[string]string{}, Pods: map[string]Pod{}, Addresses: map[string]string{}}
	var allServices struct{ Items []Service }
	var allPods struct {
		Items []struct {
			Metadata struct{ Name, DeletionTimestamp string }
			Spec     struct{ NodeName string }
		}
	}
	var allAddresses struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ ParentRef struct{ Name string } }
		}
	}
	var b budget
	for path, out := range map[string]any{services: &allServices, pods: &allPods, addresses: &allAddresses, budgets + "/b": &b} {
		if err := api.Do(ctx, http.MethodGet, path, nil, out); err != nil {
			return s, err
		}
	}
	for _, service := range allServices.Items {
		s.Services[service.Metadata.Name] = service.held()
	}
	for _, p := range allPods.Items {
		s.Pods[p.Metadata.Name] = Pod{p.Spec.NodeName, p.Metadata.DeletionTimestamp != ""}
	}
	for _, a := range allAddresses.Items {
		s.Addresses[a.Metadata.Name] = a.Spec.ParentRef.Name
	}
	s.Allowed = b.Status.DisruptionsAllowed
	return s, nil
}

// objects returns the names of all objects, without the Service of the server.
func (s Stored) objects() map[string]bool {
	out := map[string]bool{}
	for name := range s.Services {
		out[name] = true
	}
	for name := range s.Pods {
		out[name] = true
	}
	delete(out, "kubernetes")
	return out
}

// shared returns an error for each shared allocation, and for each wrong record.
func (s Stored) shared() (errs []error) {
	holders := map[string]string{}
	for name, held := range s.Services {
		for thing := range strings.SplitSeq(held, ", ") {
			if thing == "" {
				continue
			}
			if other := holders[thing]; other != "" {
				errs = append(errs, fmt.Errorf("%s and %s have %s", other, name, thing))
			}
			holders[thing] = name
			if owner := s.Addresses[thing]; !strings.HasPrefix(thing, "port ") && owner != name {
				errs = append(errs, fmt.Errorf("%s has %s, whose IPAddress is of %q", name, thing, owner))
			}
		}
	}
	for address, owner := range s.Addresses {
		if holders[address] != owner {
			errs = append(errs, fmt.Errorf("the IPAddress %s is of %s, which has %q", address, owner, s.Services[owner]))
		}
	}
	return errs
}

// Fill creates Services until ports and addresses are exhausted, and checks their number: none was
// leaked.
func Fill(ctx context.Context, api process.API) error {
	for _, fill := range []struct {
		kind string
		size int
	}{{"NodePort", 64}, {"ClusterIP", 126}} { // as in Flags
		s, err := Read(ctx, api)
		if err != nil {
			return err
		}
		free := fill.size - len(s.Addresses)
		if fill.kind == "NodePort" {
			free = fill.size - strings.Count(fmt.Sprint(s.Services), "port ")
		}
		made := 0
		for ; ; made++ {
			err := api.Do(ctx, http.MethodPost, services, object{
				"apiVersion": "v1", "kind": "Service", "metadata": object{"name": fmt.Sprintf("fill-%s-%d", strings.ToLower(fill.kind), made)},
				"spec": object{"type": fill.kind, "ports": []any{object{"port": 80}}},
			}, nil)
			if refused(err, full) {
				break
			}
			if err != nil {
				return err
			}
		}
		if made != free {
			return fmt.Errorf("%d Services of type %s could be made, and there was room for %d", made, fill.kind, free)
		}
	}
	return nil
}
