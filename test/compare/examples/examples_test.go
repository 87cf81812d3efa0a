package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
	"github.com/anykind/anykind/test/corpus"
)

// plugins are those of kube-apiserver that anykind does not have.
const plugins = "--disable-admission-plugins=LimitRanger,ServiceAccount,TaintNodesByCondition,Priority,DefaultTolerationSeconds," +
	"DefaultStorageClass,StorageObjectInUseProtection,PersistentVolumeClaimResize,RuntimeClass,CertificateApproval," +
	"CertificateSigning,ClusterTrustBundleAttest,CertificateSubjectRestriction,DefaultIngressClass,PodTopologyLabels," +
	"NodeDeclaredFeatureValidator,PodResizeValidator,MutatingAdmissionPolicy,MutatingAdmissionWebhook," +
	"ValidatingAdmissionPolicy,ValidatingAdmissionWebhook,ResourceQuota,PodSecurity,PodGroupProtection"

// controllers of anykind do what kube-apiserver leaves to another program.
const controllers = "--controllers=*,-garbage-collector-controller,-namespace-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller"

func TestExamples(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	ctx := context.WithoutCancel(t.Context())
	p, err := servers.Start(ctx, servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Theirs: []string{plugins}, Ours: []string{plugins, controllers},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	all, err := Published(folders()...)
	if err != nil {
		t.Fatal(err)
	}
	inOrder(all)
	known, err := judge.ReadKnown("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []corpus.Folder{corpus.GatewayAPIExperimental, corpus.CertManager} {
		definitions, err := f.Definitions()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range definitions {
			body, err := json.Marshal(d)
			if err == nil {
				err = ensure(ctx, p, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(3 * time.Second) // TODO
	r := &run{p: p, known: known, sent: map[string]int{}, verdicts: map[string]int{}, kinds: map[string]int{}, unknown: map[judge.Signature][]string{}}
	kinds, err := discover(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]*Document{}
	var order []string
	missing := 0
	for _, d := range all {
		resource := kinds.of(d)
		if resource == nil {
			missing++
			continue
		}
		if resource.Namespaced {
			if err := ensure(ctx, p, "/api/v1/namespaces", []byte(`{"metadata":{"name":"`+d.namespace()+`"}}`)); err != nil {
				t.Log(d, err)
			}
		}
		r.kinds[d.APIVersion+" "+d.Kind]++
		key := resource.Path(d.namespace(), d.Metadata.Name)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], d)
	}
	next := make(chan []*Document)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for g := range next {
				for _, d := range g {
					r.document(ctx, d, steps(d, kinds.of(d)))
				}
			}
		})
	}
	for _, key := range order {
		next <- groups[key]
	}
	close(next)
	done.Wait()
	n := 0
	for _, k := range r.kinds {
		n += k
	}
	t.Logf("%d documents of %d kinds, %d of kinds that neither serves", n, len(r.kinds), missing)
	t.Logf("requests %v", r.sent)
	t.Logf("verdicts of create %v", r.verdicts)
	var out strings.Builder
	for _, s := range slices.SortedFunc(maps.Keys(r.unknown), func(a, b judge.Signature) int { return len(r.unknown[b]) - len(r.unknown[a]) }) {
		fmt.Fprintf(&out, "%s\n# %d times\n%s\n\n", s, len(r.unknown[s]), strings.Join(r.unknown[s][:min(3, len(r.unknown[s]))], "\n"))
	}
	os.WriteFile("/tmp/ex-unknown.txt", []byte(out.String()), 0o644)
	if len(r.unknown) > 0 {
		t.Errorf("%d", len(r.unknown))
	}
}

type run struct {
	p        *servers.Pair
	known    judge.Known
	mu       sync.Mutex
	sent     map[string]int
	verdicts map[string]int
	kinds    map[string]int
	unknown  map[judge.Signature][]string
}

func (r *run) document(ctx context.Context, d *Document, s wire.Sequence) {
	type side struct {
		client  *wire.Client
		judge   *judge.Server
		answers map[int]*wire.Answer
	}
	sides := [2]*side{{client: r.p.Theirs}, {client: r.p.Ours}}
	for _, x := range sides {
		x.judge, x.answers = judge.NewServer("no scope"), map[int]*wire.Answer{}
	}
	for _, step := range s.Steps {
		var normal [2]*judge.Normal
		var done sync.WaitGroup
		for i, x := range sides {
			done.Go(func() {
				filled := step.For("no scope", x.answers)
				x.judge.Sent(filled)
				x.answers[step.ID] = x.client.Do(ctx, filled)
				normal[i] = x.judge.Normal(x.answers[step.ID])
			})
		}
		done.Wait()
		r.mu.Lock()
		r.sent[step.Kind]++
		if step.Kind == "create" {
			r.verdicts[fmt.Sprint(normal[0].Code)]++
		}
		bad := false
		for _, f := range judge.Compare(normal[0], normal[1]) {
			g := f.Signature(step)
			if r.known.Match(g) == nil {
				bad = true
				r.unknown[g] = append(r.unknown[g], fmt.Sprintf("   %s\n%s %s\n   K %s: %s\n   A %s: %s", d, step.Method, step.Path, f.Place, wire.Printable([]byte(f.Theirs), 600), f.Place, wire.Printable([]byte(f.Ours), 600)))
			}
		}
		r.mu.Unlock()
		if bad && normal[0].Code != normal[1].Code || normal[0].Code >= http.StatusBadRequest && step.Kind == "create" {
			break
		}
	}
	for _, step := range s.Cleanup {
		for _, x := range sides {
			if a := x.answers[created]; a != nil && a.Code == http.StatusCreated {
				x.client.Do(ctx, step.For("no scope", x.answers))
			}
		}
	}
}
