package examples

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var (
	reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")
	only      = flag.String("only", "", "compare only the examples of which module or file match this `expression`")
	from      = flag.String("from", "", "read the examples of these `folders`, too, separated by commas")
)

// plugins change or reject objects depending on other objects. They are not part of this comparison.
const plugins = "--disable-admission-plugins=LimitRanger,ServiceAccount,Priority," +
	"MutatingAdmissionPolicy,MutatingAdmissionWebhook," +
	"ValidatingAdmissionPolicy,ValidatingAdmissionWebhook,ResourceQuota,PodSecurity"

// privileged containers are allowed, as in every cluster.
const privileged = "--allow-privileged=true"

// controllers disables the controllers of anykind that kube-apiserver leaves to
// kube-controller-manager.
const controllers = "--controllers=*,-garbage-collector-controller,-namespace-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller,-clusterrole-aggregation-controller,-resourcequota-controller,-validatingadmissionpolicy-status-controller"

// roles are resources that both servers create at their start, and that some examples create.
var roles = []string{"clusterroles", "clusterrolebindings", "namespaces/kube-system/roles", "namespaces/kube-system/rolebindings",
	"namespaces/kube-public/roles", "namespaces/kube-public/rolebindings"}

func published(t *testing.T) []*Document {
	t.Helper()
	all, err := Published(strings.FieldsFunc(*from, func(r rune) bool { return r == ',' })...)
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(d *Document) bool { return !pattern.MatchString(d.String()) })
	bySource := map[string]int{}
	for _, d := range all {
		bySource[d.Source]++
	}
	t.Logf("%d objects: %s", len(all), counts(bySource))
	return all
}

// counts formats numbers in one line.
func counts[K ~string | ~int](of map[K]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%v %d", name, of[name]))
	}
	return strings.Join(out, ", ")
}

func start(t *testing.T) *servers.Pair {
	t.Helper()
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: t.TempDir(), Theirs: []string{plugins, privileged}, Ours: []string{plugins, privileged, controllers},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for _, client := range []*wire.Client{p.Theirs, p.Ours} {
		for _, r := range roles {
			if a := client.Do(t.Context(), wire.Step{Method: "DELETE", Path: "/apis/rbac.authorization.k8s.io/v1/" + r}); a.Code != 200 {
				t.Fatalf("deleting %s: %d %s %s", r, a.Code, a.Failed, a.Body)
			}
		}
	}
	return p
}

// Every published example has the same responses from both servers, except for known differences.
func TestExamples(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	known, err := judge.ReadKnown("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := &Comparison{pair: start(t), known: known, kinds: map[string]int{}, neither: map[string]int{}, sent: map[string]int{},
		codes: map[int]int{}, did: map[string]int{}, unknown: map[judge.Signature][]string{}}
	if err := c.All(t.Context(), published(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.Kubectl(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	c.report(t)
}

func (c *Comparison) report(t *testing.T) {
	documents := 0
	for _, n := range c.kinds {
		documents += n
	}
	t.Logf("%d objects of %d kinds: %s", documents, len(c.kinds), counts(c.kinds))
	t.Logf("of kinds that neither server has: %s", counts(c.neither))
	t.Logf("requests: %s", counts(c.sent))
	t.Logf("kubectl says: %s", counts(c.did))
	t.Logf("kube-apiserver answers to create: %s", counts(c.codes))
	for _, s := range slices.SortedFunc(maps.Keys(c.unknown), func(a, b judge.Signature) int { return len(c.unknown[b]) - len(c.unknown[a]) }) {
		found := c.unknown[s]
		t.Errorf("%d times:\n%s\n%s", len(found), s, found[0])
	}
	if len(c.accepted) > 0 && (c.did["created"] == 0 || c.did["unchanged"] == 0) {
		t.Errorf("kubectl says that %s", counts(c.did))
	}
	if *only != "" {
		return // the others may have the known differences
	}
	for _, e := range c.known.Gone(c.sent) {
		t.Errorf("is known, and not there any more:\n%s", e.Signature)
	}
}
