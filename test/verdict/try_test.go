package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/test/program"
)

var objects = flag.Int("objects", 1000, "number of objects to check against a new definition")

const crontabs = "/apis/example.com/v1/namespaces/default/crontabs"

// crd try gives the verdicts of dry runs for the objects of a server, and of its data directory. Its
// memory does not grow with the number of objects.
func TestTry(t *testing.T) {
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	old, now := file(t, dir, "old.yaml", definitionOf("{type: integer}, gone: {type: string}")), file(t, dir, "new.yaml", definitionOf("{type: integer, maximum: 10}"))
	a, err := app.Start(t.Context(), app.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	running := true
	stop := func() {
		if running {
			running = false
			_ = a.Stop(t.Context())
		}
	}
	defer stop()
	config := file(t, dir, "kubeconfig", string(a.Kubeconfig()))
	found, err := kubeconfig.Find(kubeconfig.Options{Files: []string{config}})
	if err != nil {
		t.Fatal(err)
	}
	client := found.Client()
	defer client.CloseIdleConnections()
	text, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	send(t, client, http.MethodPost, a.URL()+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", jsonOf(t, text), http.StatusCreated)
	fill(t, client, a.URL())

	byServer, took, memory := tryIt(t, anykind, "--kubeconfig", config, now)
	t.Logf("%d objects of a server: %.1f s, %d MB", *objects, took.Seconds(), memory>>20)
	checkOutcome(t, byServer)

	began := time.Now()
	dryRuns(t, client, a.URL())
	t.Logf("a dry run of a write of each: %.1f s", time.Since(began).Seconds())
	stop()
	byFolder, took, memory := tryIt(t, anykind, "--data-dir", data, now)
	t.Logf("%d objects of its data directory: %.1f s, %d MB", *objects, took.Seconds(), memory>>20)
	checkOutcome(t, byFolder)
}

func definitionOf(size string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {filler: {type: string}, size: ` + size + `}}}}}
`
}

func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func jsonOf(t *testing.T, text []byte) string {
	t.Helper()
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func send(t *testing.T, client *http.Client, method, url, body string, code int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	_ = answer.Body.Close()
	if answer.StatusCode != code {
		t.Errorf("%s %s: %s", method, url, answer.Status)
	}
}

// body returns an object: every tenth has a removed field, every hundredth a size that is too large.
func body(i int) string {
	size := 5
	more := ""
	if i%100 == 0 {
		size = 11
	}
	if i%10 == 0 {
		more = `,"gone":"soon"`
	}
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"c-%06d"},"spec":{"size":%d,"filler":%q%s}}`, i, size, strings.Repeat("x", 1000), more)
}

// each calls do for all objects, several in parallel.
func each(do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < *objects; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}

func fill(t *testing.T, client *http.Client, url string) {
	each(func(i int) { send(t, client, http.MethodPost, url+crontabs, body(i), http.StatusCreated) })
}

// dryRuns sends the dry runs that a user without crd try would send to a server.
func dryRuns(t *testing.T, client *http.Client, url string) {
	each(func(i int) {
		name := fmt.Sprintf("c-%06d", i)
		sent := strings.Replace(body(i), `"metadata":{`, `"metadata":{"annotations":{"touched":"true"},`, 1)
		patch(t, client, url+crontabs+"/"+name+"?dryRun=All", sent)
	})
}

func patch(t *testing.T, client *http.Client, url, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	answer, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, answer.Status)
	}
}

// tryIt runs crd try, and returns its outcome, duration and memory.
func tryIt(t *testing.T, anykind string, args ...string) (o check.Outcome, took time.Duration, memory int64) {
	t.Helper()
	cmd := exec.Command(anykind, append([]string{"crd", "try", "-o", "json"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	took, memory, err := measured(t, cmd)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatal(err, stderr.String())
	}
	var outcomes struct{ Definitions []check.Outcome }
	if err := json.Unmarshal(stdout.Bytes(), &outcomes); err != nil || len(outcomes.Definitions) != 1 {
		t.Fatal(err, stdout.String())
	}
	return outcomes.Definitions[0], took, memory
}

// isTenth matches names of objects with the removed field. A server lists objects by name, and a data
// directory in the order of the concurrent writes.
var isTenth = regexp.MustCompile(`^(default/c-\d{5}0 ?)+$`)

func checkOutcome(t *testing.T, o check.Outcome) {
	t.Helper()
	tenth, hundredth := (*objects+9)/10, (*objects+99)/100
	if o.Objects != *objects || o.RefusedWrites != 0 || o.RefusedChange != hundredth || len(o.Groups) != 2 {
		t.Fatalf("%+v", o)
	}
	if g := o.Groups[0]; g.What != check.Loses || g.Field != "spec.gone" || g.Objects != tenth || len(g.Names) != 5 || !isTenth.MatchString(strings.Join(g.Names, " ")) {
		t.Errorf("%+v", g)
	}
	if g := o.Groups[1]; g.What != check.RefusedChange || g.Field != "spec.size" || g.Objects != hundredth {
		t.Errorf("%+v", g)
	}
}
