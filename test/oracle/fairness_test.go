package oracle

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/storage"
	feature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/fairness"
	builtin "github.com/anykind/anykind/internal/builtin/flowcontrol"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/server"
)

// Random histories of requests under random objects have the same requests served, waiting and
// rejected at each step as with Kubernetes' filter, with the same headers.
func TestFairness(t *testing.T) {
	metrics.Register()
	feature.DefaultFeatureSupportChecker = newEtcd{}
	seen := map[string]int{}
	for seed := range uint64(histories()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, rand.New(rand.NewPCG(seed, 36)))
				c.run()
				for _, state := range c.both[0].states {
					for _, word := range []string{"200", "429", "after [\"2\"]", "uid-"} {
						if strings.Contains(state, word) {
							seen[word]++
						}
					}
				}
				seen["waits"] += c.waited
				if c.watched {
					seen["watched"]++
				}
			})
		})
	}
	t.Log(seen)
	if len(seen) < 6 {
		t.Error("the histories lack something that should be compared")
	}
}

// newEtcd is an etcd of this year: lists come from the cache.
type newEtcd struct{ feature.FeatureSupportChecker }

func (newEtcd) Supports(storage.Feature) bool { return true }

// histories returns the number of histories.
func histories() int {
	if testing.Short() {
		return 20
	}
	return 200
}

// A crowd sends the same requests to both servers.
type crowd struct {
	*testing.T
	random  *rand.Rand
	seats   int
	objects fairness.Objects
	client  *fake.Clientset
	ours    *fairness.Dispatcher
	both    [2]*serving
	stop    context.CancelFunc
	waited  int // requests that waited at a step
	watched bool
}

// A serving is one of the servers with the states of requests by number.
type serving struct {
	handler http.Handler
	mu      sync.Mutex
	states  map[int]string
	release map[int]chan struct{}
	begun   map[int]func() // of watches
}

var resources = []string{"pods", "configmaps", "secrets", "leases"}

// counts are the stored objects by resource, and their sizes.
var counts = map[string]storage.Stats{
	"pods": {ObjectCount: 3000, EstimatedAverageObjectSizeBytes: 2000}, "configmaps": {ObjectCount: 40, EstimatedAverageObjectSizeBytes: 30000},
	"secrets": {},
}

func newCrowd(t *testing.T, random *rand.Rand) *crowd {
	c := &crowd{T: t, random: random, seats: 10 + random.IntN(60), client: fake.NewSimpleClientset(), watched: random.IntN(2) == 0}
	if c.watched {
		c.seats += 100
	}
	c.objects = fairness.Objects{Levels: map[string]*flowcontrolv1.PriorityLevelConfiguration{}, Schemas: map[string]*flowcontrolv1.FlowSchema{}}
	schemas, levels := builtin.Fixed()
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop

	factory := informers.NewSharedInformerFactory(c.client, 0)
	theirs := flowcontrol.NewTestable(flowcontrol.TestableConfig{
		Clock: eventclock.Real{}, InformerFactory: factory, FlowcontrolClient: c.client.FlowcontrolV1(), ServerConcurrencyLimit: c.seats,
		ReqsGaugeVec: metrics.PriorityLevelConcurrencyGaugeVec, ExecSeatsGaugeVec: metrics.PriorityLevelExecutionSeatsGaugeVec,
		QueueSetFactory: queueset.NewQueueSetFactory(eventclock.Real{}),
		FoundToDangling: func(bool) bool { return false }, // a change of a status would be another change of the objects
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() { _ = theirs.Run(ctx.Done()) }() // the periods of both begin now
	c.ours = fairness.New(fairness.Options{
		Seats: c.seats, Schemas: schemas, Levels: levels, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		Stored: func(group, resource string) (objects, bytes int64) {
			if s, ok := counts[resource]; ok && group == "" {
				return s.ObjectCount, s.ObjectCount * s.EstimatedAverageObjectSizeBytes
			}
			return -1, 0
		},
	})
	go c.ours.Run(ctx)
	synctest.Wait()

	for i := range c.both {
		c.both[i] = &serving{states: map[int]string{}, release: map[int]chan struct{}{}, begun: map[int]func(){}}
	}
	c.both[0].handler = server.New(server.Options{
		Authenticator: byHeader{}, Authorizer: everything{}, Fairness: c.ours, Timeout: time.Minute,
		API: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c.both[0].serve(r, request.From(r.Context()).Release)
		}),
	})
	estimate := flowcontrolrequest.NewWorkEstimator(func(key string) (storage.Stats, error) {
		if s, ok := counts[key]; ok {
			return s, nil
		}
		return storage.Stats{}, flowcontrolrequest.ObjectCountNotFoundErr
	}, theirs.GetInterestedWatchCount, flowcontrolrequest.DefaultWorkEstimatorConfig(), theirs.GetMaxSeats)
	filter := filters.WithPriorityAndFairness(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.both[1].serve(r, func() { flowcontrol.WatchInitialized(r.Context()) })
	}), filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString()), theirs, estimate, 15*time.Second)
	infos := &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	c.both[1].handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Error(err)
		}
		ctx := r.Context()
		if info.Verb != "watch" {
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			ctx = limited
		}
		u, _, _ := byHeader{}.Authenticate(r)
		ctx = apirequest.WithReceivedTimestamp(apirequest.WithRequestInfo(ctx, info), time.Now())
		filter.ServeHTTP(w, r.WithContext(apirequest.WithUser(ctx, &user.DefaultInfo{Name: u.Name, Groups: u.Groups})))
		if w.(*httptest.ResponseRecorder).Code == http.StatusTooManyRequests {
			time.Sleep(server.RejectionDelay) // as on the other side
		}
	})
	return c
}

// byHeader authenticates the user that a header names.
type byHeader struct{}

func (byHeader) Authenticate(r *http.Request) (*request.User, bool, error) {
	return &request.User{Name: r.Header.Get("Test-User"), Groups: strings.Split(r.Header.Get("Test-Groups"), ",")}, true, nil
}

type everything struct{}

func (everything) Authorize(context.Context, *authz.Attributes) (authz.Decision, string, error) {
	return authz.Allow, "", nil
}

// serve serves a request until it is released.
func (s *serving) serve(r *http.Request, begun func()) {
	n, err := strconv.Atoi(r.Header.Get("Test-Number"))
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	s.states[n], s.begun[n] = "is served", begun
	release := s.release[n]
	s.mu.Unlock()
	<-release
}

// send sends a request.
func (s *serving) send(n int, r *http.Request) {
	s.mu.Lock()
	s.states[n], s.release[n] = "waits", make(chan struct{})
	s.mu.Unlock()
	go func() {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		h := w.Header()
		s.states[n] = fmt.Sprintf("has %d %q after %q of %q in %q", w.Code, w.Body, h["Retry-After"],
			h.Values(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), h.Values(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID))
	}()
	synctest.Wait()
}

// begin calls the function of a watch that begins.
func (s *serving) begin(n int) {
	s.mu.Lock()
	begun := s.begun[n]
	s.mu.Unlock()
	begun()
	synctest.Wait()
}

// now returns the state of each request. The lock orders the reading before the changes that a timer of the server
// makes.
func (s *serving) now() map[int]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.states)
}

func (s *serving) in(state string) (all []int) {
	for n, got := range s.now() {
		if got == state {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

func (c *crowd) run() {
	defer func() { c.stop(); synctest.Wait() }()
	for range 3 + c.random.IntN(4) {
		c.change()
	}
	for range 4 + c.random.IntN(6) {
		c.change()
	}
	if c.watched {
		c.watch()
	}
	var history []string
	watches := map[int]bool{} // that have not begun
	for n := range 400 {
		what := ""
		served := slices.DeleteFunc(c.both[0].in("is served"), func(m int) bool { return m >= 1000 })
		some := func() int { return served[c.random.IntN(len(served))] }
		switch choice := c.random.IntN(24); {
		case choice < 12:
			r := c.request(n)
			watches[n] = r.URL.Query().Has("watch")
			what = fmt.Sprintf("%s %s by %s", r.Method, r.URL, r.Header.Get("Test-User"))
			for _, s := range c.both {
				s.send(n, r.Clone(context.Background()))
			}
		case choice < 18 && len(served) > 0:
			m := some()
			what = fmt.Sprint("the end of ", m)
			for _, s := range c.both {
				close(s.release[m])
				synctest.Wait()
			}
		case choice < 20 && len(served) > 0:
			m := some()
			if !watches[m] {
				continue
			}
			delete(watches, m)
			what = fmt.Sprint("the beginning of ", m)
			for _, s := range c.both {
				s.begin(m)
			}
		case choice == 20 && c.random.IntN(3) == 0:
			what = "the change of " + c.change()
		default:
			d := time.Duration(c.random.Int64N(int64(4*time.Second)))*2 | 1
			what = fmt.Sprint("after ", d)
			time.Sleep(d)
			synctest.Wait()
		}
		history = append(history, fmt.Sprint(n, ": ", what))
		c.waited += len(c.both[0].in("waits"))
		if ours, theirs := c.both[0].now(), c.both[1].now(); !maps.Equal(ours, theirs) {
			for m, state := range ours {
				if other := theirs[m]; other != state {
					history = append(history, fmt.Sprintf("%d %s, there it %s", m, state, other))
				}
			}
			c.Errorf("with %d seats:\n%s", c.seats, strings.Join(history, "\n"))
			break
		}
	}
	for range 100 { // each waits for a quarter of a minute at most
		for _, s := range c.both {
			for _, n := range s.in("is served") {
				close(s.release[n])
				synctest.Wait()
			}
		}
		time.Sleep(time.Second | 1)
		synctest.Wait()
	}
	if ours, theirs := c.both[0].now(), c.both[1].now(); !c.Failed() && !maps.Equal(ours, theirs) {
		c.Errorf("at the end: %v, there %v", ours, theirs)
	}
}

// watch begins watches that get the events of most writes, so that these use seats after their answer.
// Kubernetes counts wrong if such a write needs more seats than its level has, and if its queue is removed
// meanwhile: there are more seats, and each level keeps its number of queues.
func (c *crowd) watch() {
	for i := range 20 + c.random.IntN(20) {
		r := httptest.NewRequest("GET", "/api/v1/"+[]string{"pods", "configmaps"}[i%2]+"?watch=true&resourceVersion=5", nil)
		r.Header.Set("Test-User", "root")
		r.Header.Set("Test-Groups", "system:authenticated,system:masters")
		r.Header.Set("Test-Number", strconv.Itoa(1000+i))
		for _, s := range c.both {
			s.send(1000+i, r.Clone(context.Background()))
			s.begin(1000 + i)
		}
	}
}

var users = []string{"alice", "bob", "carol", "system:serviceaccount:one:robot", "system:serviceaccount:two:robot"}

// request returns a random request.
func (c *crowd) request(n int) *http.Request {
	pick := func(of ...string) string { return of[c.random.IntN(len(of))] }
	namespace, resource := pick("one", "two"), resources[c.random.IntN(len(resources))]
	root := "/api/v1/"
	if resource == "leases" {
		root = "/apis/coordination.k8s.io/v1/"
	}
	path := root + "namespaces/" + namespace + "/" + resource
	method := pick("GET", "GET", "POST", "PUT", "DELETE", "PATCH")
	switch {
	case method == "POST":
	case method != "GET" || c.random.IntN(2) == 0:
		path += pick("/x", "/y", "/x/status")
	default:
		if c.random.IntN(3) == 0 {
			path = root + resource
		}
		path += "?" + pick("", "", "limit=7", "limit=500&continue=abc", "resourceVersion=0", "resourceVersion=5&limit=3", "labelSelector=a",
			"fieldSelector=metadata.name%3Dx", "watch=true", "watch=true&resourceVersion=5", "watch=true&resourceVersion=0", "watch=true&sendInitialEvents=true&resourceVersion=7",
			"watch=true&resourceVersion=8&fieldSelector=spec.nodeName%3Da", "resourceVersionMatch=Exact&resourceVersion=4&labelSelector=b", "limit=x")
	}
	if c.random.IntN(12) == 0 {
		method, path = pick("GET", "POST"), pick("/version", "/openapi/v3", "/healthz", "/healthz/ping", "/foo/bar")
		if path != "/foo/bar" {
			path = "/foo" + path // the server's own pages are served at once
		}
	}
	r := httptest.NewRequest(method, path, nil)
	name := users[c.random.IntN(len(users))]
	groups := "system:authenticated"
	if strings.HasPrefix(name, "system:serviceaccount") {
		groups += ",system:serviceaccounts"
	}
	if c.random.IntN(15) == 0 {
		groups += ",system:masters"
	}
	r.Header.Set("Test-User", name)
	r.Header.Set("Test-Groups", groups)
	r.Header.Set("Test-Number", strconv.Itoa(n))
	return r
}

// change changes one object for both servers.
func (c *crowd) change() string {
	ctx := context.Background()
	name := "l" + strconv.Itoa(c.random.IntN(4))
	defer func() {
		c.ours.Configure(fairness.Objects{Levels: maps.Clone(c.objects.Levels), Schemas: maps.Clone(c.objects.Schemas)})
		synctest.Wait()
	}()
	check := func(err error) {
		if err != nil {
			c.Fatal(err)
		}
	}
	if c.random.IntN(3) == 0 {
		old := c.objects.Levels[name]
		levels := c.client.FlowcontrolV1().PriorityLevelConfigurations()
		l := c.level(name)
		switch {
		case old != nil && c.random.IntN(3) == 0:
			delete(c.objects.Levels, name)
			check(levels.Delete(ctx, name, metav1.DeleteOptions{}))
			return "the deletion of " + name
		case old != nil:
			_, err := levels.Update(ctx, l, metav1.UpdateOptions{})
			check(err)
		default:
			_, err := levels.Create(ctx, l, metav1.CreateOptions{})
			check(err)
		}
		c.objects.Levels[name] = l
		return fmt.Sprintf("%s to %+v", name, l.Spec.Limited)
	}
	schemas := c.client.FlowcontrolV1().FlowSchemas()
	at := "s" + strconv.Itoa(c.random.IntN(6))
	s := c.schema(at, name)
	if old := c.objects.Schemas[at]; old != nil {
		_, err := schemas.Update(ctx, s, metav1.UpdateOptions{})
		check(err)
	} else {
		_, err := schemas.Create(ctx, s, metav1.CreateOptions{})
		check(err)
	}
	c.objects.Schemas[at] = s
	return fmt.Sprintf("%s to %+v", at, s.Spec)
}

func (c *crowd) level(name string) *flowcontrolv1.PriorityLevelConfiguration {
	l := &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: ptr.To(int32(c.random.IntN(60))), LendablePercent: ptr.To(int32(c.random.IntN(101))),
		LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
	}
	if c.random.IntN(2) == 0 {
		l.BorrowingLimitPercent = ptr.To(int32(c.random.IntN(300)))
	}
	if name != "l0" { // Kubernetes keeps the largest number of seats when a level does not queue any more
		queues := []int32{1, 2, 5, 16, 64}[c.random.IntN(5)]
		if c.watched {
			*l.NominalConcurrencyShares += 10
			queues = map[string]int32{"l1": 5, "l2": 16, "l3": 64}[name]
		}
		l.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{
			Queues: queues, HandSize: min(1+int32(c.random.IntN(6)), queues), QueueLengthLimit: 1 + int32(c.random.IntN(6)),
		}}
	}
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec:       flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: l},
	}
}

func (c *crowd) schema(name, level string) *flowcontrolv1.FlowSchema {
	some := func(of ...string) (all []string) {
		if c.random.IntN(2) == 0 {
			return []string{"*"}
		}
		for _, o := range of {
			if c.random.IntN(2) == 0 {
				all = append(all, o)
			}
		}
		return all
	}
	s := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: flowcontrolv1.FlowSchemaSpec{
			MatchingPrecedence:         1 + int32(c.random.IntN(10)),
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: users[c.random.IntN(3)]}},
					{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: "one", Name: []string{"*", "robot", "other"}[c.random.IntN(3)]}},
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: []string{"system:authenticated", "system:serviceaccounts", "none"}[c.random.IntN(3)]}},
				}[c.random.IntN(3):],
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: some("get", "list", "create", "update", "watch"), APIGroups: some("", "coordination.k8s.io"),
					Resources: some("pods", "configmaps", "leases", "pods/status"), Namespaces: some("one", "two"), ClusterScope: c.random.IntN(2) == 0,
				}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: some("get", "post"), NonResourceURLs: some("/foo/version", "/foo/healthz", "/foo/*")}},
			}},
		},
	}
	s.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
	}}
	switch c.random.IntN(3) {
	case 0:
		s.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}
	case 1:
		s.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByNamespaceType}
	}
	return s
}
