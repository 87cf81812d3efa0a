package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/test/compare/servers"
	offline "github.com/anykind/anykind/test/verdict"
)

var (
	reference = flag.String("reference", "", "compare with a kube-apiserver that is started if it is \"start\"")
	verdicts  = flag.Int("verdicts", 5000, "number of verdicts to compare with -reference")
	firstSeed = flag.Uint64("first", 4e6, "first seed of -verdicts")
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	probe           = "probe" // a field that each compared definition has
	storedObjects   = 10      // of each definition
)

// Random creates and updates get the same verdict offline as from a kube-apiserver. The objects that
// are updated were stored before their definition had a schema: rules with oldSelf, ratcheting, pruning
// and defaults meet values of any kind.
func TestVerdictsOfKubeAPIServer(t *testing.T) {
	if *reference == "" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: *reference, Store: "memory", Dir: t.TempDir(), Theirs: []string{"--allow-privileged", "--disable-admission-plugins=NamespaceLifecycle,ServiceAccount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	server := offline.Over(p.Theirs, nil)
	var sum offline.Counts
	definitions := 0
	for seed := *firstSeed; sum.Asked < *verdicts && sum.Different < 10; seed++ {
		counts, ok := (&judged{generator: newGenerator(seed), server: server, dir: t.TempDir(), number: seed}).compare(t)
		if ok {
			definitions++
		}
		sum.Add(counts)
	}
	t.Logf("%d definitions with objects; %v", definitions, sum)
	if sum.Accepted < sum.Asked/10 || sum.Refused < sum.Asked/10 {
		t.Error("almost nothing is right, or almost nothing is wrong")
	}
}

// judged is a random definition with its objects, on a kube-apiserver.
type judged struct {
	generator
	server offline.Server
	dir    string
	number uint64

	ruled      bool // the schema has rules of CEL
	definition check.Answer
}

// compare compares the verdicts on a definition and its objects, and reports whether the definition is
// valid.
func (j *judged) compare(t *testing.T) (offline.Counts, bool) {
	t.Helper()
	props := j.schemaOf(t)
	strict := j.define(props)
	j.write(t, "definition.json", strict)
	j.definition = j.post(t, definitionsPath+"?dryRun=All&fieldManager=anykind&fieldValidation=Strict", strict)
	if j.definition.Code >= http.StatusBadRequest {
		return offline.CompareWith(t, j.answers(), []string{filepath.Join(j.dir, "definition.json")}, check.Options{}), false
	}
	open := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	j.must(t, j.post(t, definitionsPath, j.define(open)))
	if err := servers.Wait(t.Context(), func() bool { return j.send(t, http.MethodGet, j.objects(""), "", nil).Code == http.StatusOK }); err != nil {
		t.Fatal(err)
	}
	stored := j.store(t, props)
	j.tighten(t, strict)
	changed := j.change(t, props, stored)
	for i := range 3 * storedObjects {
		o := j.whole(props, 10)
		if j.ruled {
			o = j.fits(props).(map[string]any)
			if j.one(2) {
				j.disturb(o)
			}
			o["metadata"] = j.metadata()
		}
		if metadata, ok := o["metadata"].(map[string]any); ok && metadata["name"] == nil {
			metadata["name"] = fmt.Sprintf("new-%d", i)
		}
		changed = append(changed, o)
	}
	j.writeObjects(t, changed)
	return offline.CompareWith(t, j.answers(), []string{filepath.Join(j.dir, "changed")}, check.Options{
		Definitions: []string{filepath.Join(j.dir, "definition.json")}, Old: []string{filepath.Join(j.dir, "stored")}, Validation: pick(j.generator, "Strict", "Strict", "Warn", "Ignore"),
	}), true
}

// schemaOf returns a random schema with the field probe.
func (j *judged) schemaOf(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var props *apiextensionsv1.JSONSchemaProps
	if j.ruled = j.one(2); j.ruled {
		props = j.generator.ruled()
		if !j.one(4) {
			props = withoutWrongRules(t, props)
		}
	} else {
		props = j.root()
		j.restrict(props)
		props.Enum, props.AllOf = nil, nil // an error about the whole object would quote its metadata
	}
	props.Properties[probe] = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	return props
}

// withoutWrongRules returns a schema without the rules that are invalid also when they are alone.
func withoutWrongRules(t *testing.T, props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	right := map[int]bool{}
	all := 0
	keepRules(props.DeepCopy(), &all, func(int) bool { return true })
	for i := range all {
		alone, n := props.DeepCopy(), 0
		keepRules(alone, &n, func(n int) bool { return n == i })
		wrong, _ := upstreamCheck(t, alone)
		right[i] = len(wrong) == 0
	}
	out, n := props.DeepCopy(), 0
	keepRules(out, &n, func(n int) bool { return right[n] })
	return out
}

// keepRules removes rules of a schema, which it numbers from n on.
func keepRules(p *apiextensionsv1.JSONSchemaProps, n *int, keep func(int) bool) {
	p.XValidations = slices.DeleteFunc(p.XValidations, func(apiextensionsv1.ValidationRule) bool {
		*n++
		return !keep(*n - 1)
	})
	for _, name := range sortedProperties(p) {
		sub := p.Properties[name]
		keepRules(&sub, n, keep)
		p.Properties[name] = sub
	}
	if p.Items != nil {
		keepRules(p.Items.Schema, n, keep)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		keepRules(p.AdditionalProperties.Schema, n, keep)
	}
}

func (j *judged) group() string { return fmt.Sprintf("n%d.example.com", j.number) }

// objects returns the path of an object, or of all.
func (j *judged) objects(name string) string {
	return strings.TrimSuffix("/apis/"+j.group()+"/v1/namespaces/default/crontabs/"+name, "/")
}

func (j *judged) define(props *apiextensionsv1.JSONSchemaProps) map[string]any {
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "crontabs." + j.group()},
		"spec": map[string]any{
			"group": j.group(), "scope": "Namespaced", "names": map[string]any{"plural": "crontabs", "kind": "CronTab"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": props}}},
		},
	}
}

// store stores objects of a schema that the definition does not have yet, and returns them.
func (j *judged) store(t *testing.T, props *apiextensionsv1.JSONSchemaProps) (stored []map[string]any) {
	t.Helper()
	for i := range storedObjects {
		o := j.fields(props, 4, 15)
		if j.ruled {
			o = j.fits(props).(map[string]any)
		}
		o["apiVersion"], o["kind"] = j.group()+"/v1", "CronTab"
		o["metadata"] = map[string]any{"name": fmt.Sprintf("stored-%d", i)}
		j.must(t, j.post(t, j.objects(""), o))
		stored = append(stored, o)
	}
	return stored
}

// change returns changed versions of stored objects. An object that kube-apiserver cannot read with its
// new schema has none.
func (j *judged) change(t *testing.T, props *apiextensionsv1.JSONSchemaProps, stored []map[string]any) (changed []map[string]any) {
	t.Helper()
	for i, o := range stored {
		name := fmt.Sprintf("stored-%d", i)
		if j.send(t, http.MethodGet, j.objects(name), "", nil).Code != http.StatusOK {
			continue
		}
		j.write(t, filepath.Join("stored", name+".json"), o)
		for range 30 {
			now := runtime.DeepCopyJSON(o)
			if j.one(3) {
				fresh := j.fields(props, 4, 15)
				delete(fresh, "metadata")
				maps.Copy(now, fresh)
			}
			for range j.IntN(4) {
				j.disturb(now)
			}
			if metadata, ok := now["metadata"].(map[string]any); ok {
				metadata["name"] = name
				if j.one(3) {
					metadata["labels"] = map[string]any{pick(j.generator, "a", "b", "-"): pick[any](j.generator, "x", "-", "", int64(1))}
				}
			}
			changed = append(changed, now)
		}
	}
	return changed
}

// tighten gives the stored definition its schema, and waits until kube-apiserver uses it.
func (j *judged) tighten(t *testing.T, strict map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": strict["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	j.must(t, j.send(t, http.MethodPatch, definitionsPath+"/crontabs."+j.group(), "application/merge-patch+json", patch))
	wrong, err := json.Marshal(map[string]any{"apiVersion": j.group() + "/v1", "kind": "CronTab", "metadata": map[string]any{"name": "probe"}, probe: "no boolean"})
	if err != nil {
		t.Fatal(err)
	}
	err = servers.Wait(t.Context(), func() bool {
		a := j.send(t, http.MethodPost, j.objects("")+"?dryRun=All", "application/json", wrong)
		return a.Code == http.StatusUnprocessableEntity && bytes.Contains(a.Body, []byte(probe))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// writeObjects writes objects for the command: as JSON, or as one file of YAML.
func (j *judged) writeObjects(t *testing.T, all []map[string]any) {
	t.Helper()
	j.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	var file bytes.Buffer
	asYAML := j.one(2)
	for i, o := range all {
		o["apiVersion"], o["kind"] = j.group()+"/v1", "CronTab"
		if !asYAML {
			j.write(t, filepath.Join("changed", fmt.Sprintf("%05d.json", i)), o)
			continue
		}
		fmt.Fprintf(&file, "---\n%s\n", text(o))
	}
	if asYAML {
		j.writeFile(t, filepath.Join("changed", "all.yaml"), file.Bytes())
	}
}

func (j *judged) write(t *testing.T, name string, v any) {
	t.Helper()
	j.writeFile(t, name, []byte(text(v)))
}

func (j *judged) writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	file := filepath.Join(j.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// answers returns kube-apiserver, which has answered about the definition already.
func (j *judged) answers() offline.Server {
	s := j.server
	s.Ask = func(ctx context.Context, q check.Question) (check.Answer, error) {
		if q.Method == http.MethodPost && strings.HasPrefix(q.Path, definitionsPath) {
			return j.definition, nil
		}
		return j.server.Ask(ctx, q)
	}
	return s
}

func (j *judged) send(t *testing.T, method, path, contentType string, body []byte) check.Answer {
	t.Helper()
	a, err := j.server.Ask(t.Context(), check.Question{Method: method, Path: path, ContentType: contentType, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (j *judged) post(t *testing.T, path string, v any) check.Answer {
	t.Helper()
	return j.send(t, http.MethodPost, path, "application/json", []byte(text(v)))
}

func (j *judged) must(t *testing.T, a check.Answer) {
	t.Helper()
	if a.Code >= http.StatusBadRequest {
		t.Fatalf("seed %d: %d %s", j.number, a.Code, a.Body)
	}
}
