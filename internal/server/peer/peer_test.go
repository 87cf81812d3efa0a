package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilsort "k8s.io/apimachinery/pkg/util/sort"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/serveridentity"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/front"
	"github.com/anykind/anykind/internal/store/kv"
)

// A network has servers in memory, by address.
type network struct {
	mu      sync.Mutex
	servers map[string]*memory
}

func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.servers[address]
	if s == nil {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	s.connections <- there
	return here, nil
}

// A memory is a peer at the other end of pipes.
type memory struct {
	connections chan net.Conn
	closed      chan struct{}

	mu      sync.Mutex
	groups  string // its discovery
	listed  int    // requests for /apis
	queries []string
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.connections:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}
func (m *memory) Close() error   { close(m.closed); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

// serve sets the groups of the discovery.
func (m *memory) serve(groups ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups = strings.Join(groups, ",")
}

// asked returns the number of requests for discovery.
func (m *memory) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed
}

// ServeHTTP implements http.Handler.
func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	const document = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`
	switch h := r.Header; r.URL.Path {
	case "/api":
		fmt.Fprintf(w, document, `{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"pods"}]}]}`)
	case "/apis":
		m.listed++
		fmt.Fprintf(w, document, m.groups)
	default:
		m.queries = append(m.queries, fmt.Sprint(r.Method, " ", r.URL, " by ", h["X-Remote-User"], h["X-Remote-Uid"], h["X-Remote-Group"], " forwarded ", h[forwarded], h["Authorization"], h["Impersonate-User"], h["X-Remote-Extra-A"]))
		w.WriteHeader(http.StatusTeapot)
	}
}

// group returns a group with a resource in one version, as in a discovery document.
func group(name, version, resource string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"resources":[{"resource":%q,"verbs":["get"]}],"freshness":"Current"}]}`, name, version, resource)
}

// A world is a server with a Proxy, and one peer.
type world struct {
	*controllertest.World
	proxy   *Proxy
	network *network
	peer    *memory
}

const (
	peerID = "apiserver-b"
	at     = "192.0.2.2:6443"
)

// in runs a test in a bubble. The peer listens, and is not in the store yet.
func in(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		own, err := pki.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{network: &network{servers: map[string]*memory{}}, peer: &memory{connections: make(chan net.Conn), closed: make(chan struct{})}}
		w.network.servers[at] = w.peer
		listening := http.Server{Handler: w.peer, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{GetCertificate: own.GetCertificate}}
		done := make(chan error)
		go func() { done <- listening.ServeTLS(w.peer, "", "") }()
		w.World = controllertest.New(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
			return w.proxy.Controller()(o, q)
		}}})
		cas := pki.NewAuthorities(own.Authority())
		w.proxy = New(Options{
			Self: "apiserver-a", Cache: w.Cache, Catalog: w.Catalog, CAs: func() *pki.Authorities { return cas },
			Definitions: resource.NewSet([]*resource.Definition{w.Kinds["customresourcedefinition"], w.Kinds["apiservice"]}),
			Front: &front.Front{
				Dialer: &egress.Dialer{Through: w.network.dial}, Certificate: func() *tls.Certificate { return nil }, UID: true,
			},
		})
		w.Start()
		w.Create("namespace kube-system")
		test(w)
		w.Stop()
		w.proxy.Close()
		_ = listening.Close()
		<-done
		time.Sleep(time.Minute) // remaining connections end
	})
}

// identify writes the identity Lease of a server; "" as the holder deletes it.
func (w *world) identify(id, holder string) {
	w.T.Helper()
	if holder == "" {
		w.Delete("lease kube-system/"+id, "")
	} else {
		w.Store("lease kube-system/"+id, "metadata: {labels: {"+serveridentity.Label+": "+serveridentity.Component+"}}\nspec: {holderIdentity: process-"+holder+"}")
	}
	w.Wait()
}

// advertise writes the address of a server; "" deletes it.
func (w *world) advertise(id, host string) {
	w.T.Helper()
	write := kv.Write{Key: resource.PeerLeasesPrefix + id}
	if record, err := w.Backend.Get(w.Ctx, write.Key, kv.Latest); err == nil {
		write.Expect = record.Revision
	}
	if host != "" {
		write.Value = fmt.Appendf(nil, `{"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":%d,"labels":{"apiserverIdentity":%q}},`+
			`"subsets":[{"addresses":[{"ip":%q}],"ports":[{"name":"https","port":6443,"protocol":"TCP"}]}]}`, write.Expect, id, host)
	}
	if _, err := w.Backend.Commit(w.Ctx, write); err != nil {
		w.T.Fatal(err)
	}
	w.Wait()
}

// join makes the peer known, with the groups of its discovery.
func (w *world) join(groups ...string) {
	w.T.Helper()
	w.peer.serve(groups...)
	w.identify(peerID, "1")
	w.advertise(peerID, "192.0.2.2")
}

// listed returns the versions in the discovery of the peers.
func (w *world) listed() string {
	g := w.proxy.Groups(w.Ctx)
	if g == nil {
		return "no peers"
	}
	var all []string
	for i, list := range g.lists {
		for _, group := range list {
			for _, v := range below(group, 0) {
				all = append(all, g.peers[i]+" "+nameOf(group, 0)+"/"+nameOf(v, 1))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (w *world) expect(want string) {
	w.T.Helper()
	if got := w.listed(); got != want {
		w.T.Errorf("discovery of peers: %s, want %s", got, want)
	}
}

// ask returns the answer to a request that goes to a peer; "local" if it does not.
func (w *world) ask(method, path string, header ...string) string {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r = r.WithContext(request.With(w.Ctx, &request.Request{Info: request.Parse(r), User: &request.User{Name: "jane", UID: "1", Groups: []string{"g"}}}))
	h := w.proxy.Find(r)
	if h == nil {
		return "local"
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return fmt.Sprint(answer.Code, " ", strings.TrimSpace(answer.Body.String()))
}

// A request for a resource that only a peer serves goes there, with the headers of its user.
func TestForwarded(t *testing.T) {
	in(t, func(w *world) {
		if got := w.ask("GET", "/apis/far.example.com/v1/stars"); got != "local" {
			t.Errorf("without peers: %s", got)
		}
		w.join(group("far.example.com", "v1", "stars"), group("test.example.com", "v1", "leads"))
		for path, want := range map[string]string{
			"/apis/far.example.com/v1/stars?b=1&a=2":               "418 ",
			"/apis/far.example.com/v1/namespaces/n/stars/s/status": "418 ",
			"/apis/far.example.com/v1":                             "local", // discovery
			"/apis/far.example.com/v2/stars":                       "local",
			"/apis/far.example.com/v1/moons":                       "local",
			"/apis/test.example.com/v1/leads":                      "local", // served here
			"/api/v1/pods":                                         "local",
			"/healthz":                                             "local",
		} {
			if got := w.ask("GET", path, "X-Remote-User", "root", "Authorization", "Bearer secret", "Impersonate-User", "root", "X-Remote-Extra-A", "b"); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		if got := w.ask("GET", "/apis/far.example.com/v1/stars", "x-kubernetes-peer-proxied", "true"); got != "local" {
			t.Errorf("a request of a peer: %s", got)
		}
		w.peer.mu.Lock()
		defer w.peer.mu.Unlock()
		slices.Sort(w.peer.queries)
		const by = " by [jane] [1] [g] forwarded [true] [] [] []"
		if want := []string{"GET /apis/far.example.com/v1/namespaces/n/stars/s/status" + by, "GET /apis/far.example.com/v1/stars?a=2&b=1" + by}; !slices.Equal(w.peer.queries, want) {
			t.Errorf("the peer got %q, want %q", w.peer.queries, want)
		}
	})
}

// A peer that cannot be reached is an error of the request, and so is a peer without an address.
func TestUnreachable(t *testing.T) {
	in(t, func(w *world) {
		w.join(group("far.example.com", "v1", "stars"))
		w.proxy.Close()
		w.network.mu.Lock()
		delete(w.network.servers, at)
		w.network.mu.Unlock()
		if got, want := w.ask("GET", "/apis/far.example.com/v1/stars"), "503 error trying to reach service: connection refused"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		w.advertise(peerID, "")
		stars := schema.GroupVersionResource{Group: "far.example.com", Version: "v1", Resource: "stars"}
		if to, _, known := w.proxy.To(w.Ctx, stars, &request.User{}); to != nil || !known {
			t.Errorf("controllers take the kind for one that no peer serves: %v, %t", to, known)
		}
		if got, want := w.ask("GET", "/apis/far.example.com/v1/stars"), "Error getting ip and port info of the remote server while proxying"; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		w.identify(peerID, "")
		if got := w.ask("GET", "/apis/far.example.com/v1/stars"); got != "local" {
			t.Errorf("once its Lease is gone: %s", got)
		}
	})
}

// Items of discovery that are no objects, have no name or repeat one are left out.
func TestMalformed(t *testing.T) {
	var list []any
	const document = `[{"metadata":{},"versions":[{"version":"v1","resources":["x",{"verbs":["get"]},{"resource":"a"},{"resource":"a","n":2}]},{},"v"]},
		5, {"metadata":{"name":"g"},"versions":null}, {"metadata":{"name":"g"},"versions":[{"version":"v1"}]}, {"metadata":{"name":"h"},"versions":"x"}]`
	if err := json.Unmarshal([]byte(document), &list); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(merge(0, wellFormed(list, 0), wellFormed(list[:1], 0)))
	const want = `[{"metadata":{},"versions":[{"resources":[{"resource":"a"}],"version":"v1"}]},{"metadata":{"name":"g"},"versions":null},{"metadata":{"name":"h"},"versions":"x"}]`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// Discovery of a peer is requested once it has a Lease and an address, and again after it restarted.
// Renewals request nothing.
func TestDiscovered(t *testing.T) {
	in(t, func(w *world) {
		w.identify("apiserver-a", "self")
		w.advertise("apiserver-a", "192.0.2.1")
		w.expect("no peers")
		w.join(group("far.example.com", "v1", "stars"))
		w.expect(peerID + " far.example.com/v1")
		before := w.proxy.Groups(w.Ctx)
		w.identify(peerID, "1")
		w.advertise(peerID, "192.0.2.2")
		if n := w.peer.asked(); n != 1 || w.proxy.Groups(w.Ctx) != before {
			t.Errorf("%d requests for discovery after renewals", n)
		}
		w.peer.serve(group("far.example.com", "v2", "stars"))
		w.identify(peerID, "2")
		w.expect(peerID + " far.example.com/v2")
		w.network.mu.Lock()
		delete(w.network.servers, at)
		w.network.mu.Unlock()
		w.proxy.Close()
		w.peer.serve(group("far.example.com", "v3", "stars"))
		w.identify(peerID, "3")
		w.expect(peerID + " far.example.com/v2")
		w.network.mu.Lock()
		w.network.servers[at] = w.peer
		w.network.mu.Unlock()
		w.Sleep(controller.LongestRetry)
		w.expect(peerID + " far.example.com/v3")
		w.identify(peerID, "")
		w.expect("no peers")
		w.Stop()
		w.Start()
		w.Wait()
		w.expect("no peers")
	})
}

// Versions of custom kinds and of APIServices count as those of no peer. Deleted ones count so until
// the peer was asked again, when it must have seen the deletion.
func TestExcluded(t *testing.T) {
	in(t, func(w *world) {
		w.Define("Star", false)
		w.join(group("test.example.com", "v2", "stars"), group("far.example.com", "v1", "moons"), group("own.example.com", "v1", "suns"))
		w.Store("apiservice v1.far.example.com", `spec: {group: far.example.com, version: v1, service: {namespace: n, name: s}}`)
		w.Store("apiservice v1.own.example.com", `spec: {group: own.example.com, version: v1}`)
		w.Wait()
		w.expect(peerID + " own.example.com/v1")
		if got := w.ask("GET", "/apis/far.example.com/v1/moons"); got != "local" {
			t.Errorf("a version of an APIService: %s", got)
		}
		w.Delete("customresourcedefinition stars.test.example.com", "")
		w.Delete("apiservice v1.far.example.com", "")
		w.Wait()
		w.expect(peerID + " own.example.com/v1")
		w.Sleep(grace - time.Second)
		w.expect(peerID + " own.example.com/v1")
		w.peer.serve(group("own.example.com", "v1", "suns"), group("far.example.com", "v1", "moons"))
		if n := w.peer.asked(); n != 1 {
			t.Errorf("%d requests for discovery, want 1", n)
		}
		w.Sleep(2 * time.Second)
		w.expect(peerID + " far.example.com/v1, " + peerID + " own.example.com/v1")
		if got := w.ask("GET", "/apis/far.example.com/v1/moons"); got != "418 " {
			t.Errorf("a version that only the peer has: %s", got)
		}
	})
}

// All servers merge to the same document, in an order that agrees with that of each.
func TestMerge(t *testing.T) {
	parse := func(groups ...string) (list []any) {
		if err := json.Unmarshal([]byte("["+strings.Join(groups, ",")+"]"), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	one := parse(`{"metadata":{"name":"z"},"versions":[{"version":"v1","resources":[{"resource":"r","verbs":["get","list"],"subresources":[{"subresource":"s","verbs":["get"]}]}]}]}`,
		`{"metadata":{"name":"m"},"versions":[{"version":"v2","freshness":"Current"}]}`, group("a", "v1", "x"))
	two := parse(`{"metadata":{"name":"z"},"versions":[{"version":"v1","resources":[{"resource":"q"},{"resource":"r","verbs":["list","delete"],"subresources":[{"subresource":"s"}]}]}]}`,
		`{"metadata":{"name":"m"},"versions":[{"version":"v1","freshness":"Stale"},{"version":"v2","freshness":"Stale"}]}`, group("b", "v1", "x"))
	want := parse(`{"metadata":{"name":"z"},"versions":[{"version":"v1","resources":[{"resource":"q"},{"resource":"r","verbs":["delete","get","list"],"subresources":[{"subresource":"s"}]}]}]}`,
		`{"metadata":{"name":"m"},"versions":[{"version":"v1","freshness":"Stale"},{"version":"v2","freshness":"Current"}]}`, group("a", "v1", "x"), group("b", "v1", "x"))
	for own, peer := range map[string]string{"1": "2", "2": "1"} {
		all := map[string][]any{"1": one, "2": two}
		g := &Groups{self: own, peers: []string{peer}, lists: [][]any{all[peer]}}
		if got := g.Merge(all[own]); !reflect.DeepEqual(got, want) {
			t.Errorf("server %s: %s, want %s", own, object.AppendJSON(nil, object.Tree{"items": got}), object.AppendJSON(nil, object.Tree{"items": want}))
		}
	}
}

// Names have the order in which kube-apiservers merge the same lists.
func TestOrdered(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		lists := make([][]string, 1+random.IntN(4))
		for i := range lists {
			if list := slices.Clone(names); random.IntN(3) == 0 {
				random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				lists[i] = list[:random.IntN(len(list))]
			} else {
				lists[i] = slices.DeleteFunc(list, func(string) bool { return random.IntN(2) == 0 })
			}
		}
		if got, want := ordered(lists), utilsort.MergePreservingRelativeOrder(lists); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", lists, got, want)
		}
	}
}

// Without peers a request costs nothing more.
func BenchmarkLocal(b *testing.B) {
	var none *Proxy
	r := httptest.NewRequest("GET", "/apis/apps/v1/deployments", nil)
	b.ReportAllocs()
	for b.Loop() {
		if none.Find(r) != nil {
			b.Fatal("there are no peers")
		}
	}
}
