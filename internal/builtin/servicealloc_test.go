package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A shop is a registry that writes Services to a store.
type shop struct {
	*registry.Registry
	kind *resource.Definition
}

// shops returns registries over one store, each like a server.
func shops(t *testing.T, n int, cidrs string, ports allocation.PortRange) (kv.Backend, []shop) {
	t.Helper()
	backend := memkv.New(memkv.Options{})
	var ranges []netip.Prefix
	for text := range strings.SplitSeq(cidrs, ",") {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	commit(t, backend, "/registry/servicecidrs/kubernetes",
		fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"kubernetes"},"spec":{"cidrs":["%s"]}}`, strings.ReplaceAll(cidrs, ",", `","`)))
	var all []shop
	for range n {
		cache := watchcache.New(backend, watchcache.Options{})
		ended := make(chan error, 1)
		go func() { ended <- cache.Run(t.Context()) }()
		t.Cleanup(func() { <-ended })
		kinds := resource.NewSet(Definitions())
		GiveAddresses(kinds, cache, ranges, ports, nil)
		all = append(all, shop{registry.New(backend, cache, registry.Options{}), kinds.Lookup("", "services")})
	}
	return backend, all
}

func commit(t *testing.T, backend kv.Backend, key, value string) {
	t.Helper()
	if _, err := backend.Commit(t.Context(), kv.Write{Key: key, Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

// create creates a Service.
func (s shop) create(ctx context.Context, name, spec string) (object.Tree, error) {
	target := registry.StorageTarget(s.kind, "default", name)
	t := object.Tree{}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":%s}`, name, spec)
	if err := utiljson.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	t, _, err := target.Version.Schema.Complete(t)
	if err != nil {
		return nil, err
	}
	result, err := s.Create(ctx, target, registry.Given(t), registry.WriteOptions{})
	return result.Tree, err
}

func (s shop) delete(ctx context.Context, name string) error {
	_, err := s.Delete(ctx, registry.StorageTarget(s.kind, "default", name), &metav1.DeleteOptions{}, registry.WriteOptions{})
	return err
}

// audit fails unless the recorded allocations are exactly those of the Services, without
// duplicates. It returns the number of addresses and ports.
func audit(t *testing.T, backend kv.Backend, ports allocation.PortRange) (addresses, nodePorts int) {
	t.Helper()
	list := func(prefix string) (all []map[string]any) {
		page, err := backend.List(t.Context(), kv.Range{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			var tree map[string]any
			if err := json.Unmarshal(r.Value, &tree); err != nil {
				t.Fatal(err)
			}
			all = append(all, tree)
		}
		return all
	}
	given := map[string]string{}
	for _, a := range list("/registry/ipaddresses/") {
		given[object.Name(a)] = kind.Text(a, "spec", "parentRef", "name")
	}
	recorded := map[int]bool{}
	for _, r := range list("/registry/ranges/") {
		data, _ := json.Marshal(r["data"])
		var bitmap []byte
		if err := json.Unmarshal(data, &bitmap); err != nil || kind.Text(r, "range") != ports.String() {
			t.Fatal(r, err)
		}
		for i := range 8 * len(bitmap) {
			if bitmap[len(bitmap)-1-i/8]>>(i%8)&1 == 1 {
				recorded[ports.Base+i] = true
			}
		}
	}
	owner := map[int]string{}
	for _, s := range list("/registry/services/specs/") {
		for _, ip := range kind.Texts(s, "spec", "clusterIPs") {
			if given[ip] != object.Name(s) {
				t.Errorf("%s is of %s, and Service %s has it", ip, given[ip], object.Name(s))
			}
			addresses++
		}
		numbers := []any{kind.Value(s, "spec", "healthCheckNodePort")}
		for _, p := range kind.List(s, "spec", "ports") {
			numbers = append(numbers, p.(map[string]any)["nodePort"])
		}
		for _, n := range numbers {
			number, _ := n.(float64)
			if port := int(number); port != 0 {
				if owner[port] != "" && owner[port] != object.Name(s) || !recorded[port] {
					t.Errorf("port %d is of %q and %s, recorded: %t", port, owner[port], object.Name(s), recorded[port])
				}
				owner[port] = object.Name(s)
			}
		}
	}
	if len(given) != addresses || len(recorded) != len(owner) {
		t.Errorf("%d IPAddresses for %d addresses, %d recorded ports of %d", len(given), addresses, len(recorded), len(owner))
	}
	return addresses, len(owner)
}

// Concurrent clients of two servers allocate until the ranges are full. All allocations are
// distinct, and all are released.
func TestServicesShareNothing(t *testing.T) {
	const writers, rounds = 64, 6
	ports := allocation.PortRange{Base: 30000, Size: 100}
	backend, both := shops(t, 2, "10.0.0.0/25", ports) // 126 addresses
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		kept  []string
		full  = map[string]int{}
	)
	for w := range writers {
		group.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("s%d-%d", w, i)
				spec := []string{`{"ports":[{"port":80}]}`, `{"type":"NodePort","ports":[{"port":80}]}`, `{"clusterIP":"10.0.0.7","ports":[{"port":80}]}`}[rand.IntN(3)]
				_, err := both[rand.IntN(2)].create(t.Context(), name, spec)
				var refused *status.Error
				switch {
				case err == nil && rand.IntN(3) == 0:
					if err := both[rand.IntN(2)].delete(t.Context(), name); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				case err == nil:
					mu.Lock()
					kept = append(kept, name)
					mu.Unlock()
				case asStatus(err, &refused):
					mu.Lock()
					full[refused.ErrStatus.Message[strings.LastIndex(refused.ErrStatus.Message, ": ")+2:]]++
					mu.Unlock()
				default:
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	group.Wait()
	addresses, nodePorts := audit(t, backend, ports)
	t.Logf("%d Services have %d addresses and %d ports; others were told %v", len(kept), addresses, nodePorts, full)
	if addresses != len(kept) || nodePorts == 0 || addresses < 100 {
		t.Errorf("%d addresses of %d Services", addresses, len(kept))
	}
	for reason := range full {
		if reason != "range is full" && reason != "provided IP is already allocated" {
			t.Errorf("told that %s", reason)
		}
	}
	// The remaining addresses can be allocated.
	for i := addresses; i < 126; i++ {
		name := fmt.Sprint("last", i)
		if _, err := both[i%2].create(t.Context(), name, `{"ports":[{"port":80}]}`); err != nil {
			t.Fatalf("%d of 126: %v", i, err)
		}
		kept = append(kept, name)
	}
	if _, err := both[0].create(t.Context(), "more", `{"ports":[{"port":80}]}`); err == nil || !strings.HasSuffix(err.Error(), `failed to allocate a serviceIP for Service "more": range is full`) {
		t.Errorf("one more: %v", err)
	}
	for i, name := range kept {
		if err := both[i%2].delete(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if addresses, nodePorts := audit(t, backend, ports); addresses+nodePorts != 0 {
		t.Errorf("%d addresses and %d ports are left", addresses, nodePorts)
	}
}

func asStatus(err error, into **status.Error) bool {
	s := (*status.Error)(nil)
	ok := errors.As(err, &s)
	*into = s
	return ok
}

// An allocation that one server releases is available on another at once, even if its cache lags.
func TestReleasedIsGivenAtOnce(t *testing.T) {
	_, both := shops(t, 2, "10.0.0.0/29", allocation.PortRange{Base: 30000, Size: 1})
	const spec = `{"type":"NodePort","clusterIP":"10.0.0.2","ports":[{"port":80,"nodePort":30000}]}`
	for i := range 200 {
		if _, err := both[i%2].create(t.Context(), "a", spec); err != nil {
			t.Fatal(err)
		}
		if err := both[i%2].delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}
