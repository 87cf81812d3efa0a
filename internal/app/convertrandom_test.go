package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// A crontabModel is the expected state of an object and its field owners: a manager, and the version
// of its last write.
type crontabModel struct {
	host, port, note, seen string
	placed, noted, saw     string
}

// A conversionBy says how objects are converted: by a webhook, by rules, or, if every version has host and
// port, not at all.
type conversionBy string

const (
	byWebhook conversionBy = "webhook"
	byRules   conversionBy = "rules"
	byNone    conversionBy = "none"
)

// crontabRules are the rules that convert as the webhook does.
const crontabRules = `{"hubVersion":"v1","spokes":[{"version":"v1beta1","rules":[{"strategy":"FieldsToScalar","fieldsToScalar":{
	"hubFields":{"host":"spec.host","port":"spec.port"},"spokePath":"spec.hostPort",
	"pattern":"^(?P<host>[^:]*):(?P<port>.*)$","joinTemplate":"{{.host}}:{{.port}}","losslessOverride":true}}]}]}`

// random is a server with randomly written objects, and their expected state.
type random struct {
	*converting
	*rand.Rand
	by      conversionBy
	objects map[string]crontabModel
	storage string
}

func (r *random) either() string { return []string{"v1", "v1beta1"}[r.IntN(2)] }

// fields returns the spec of an object in a version.
func (r *random) fields(version string, m crontabModel) object.Tree {
	t := object.Tree{}
	if version == "v1" || r.by == byNone {
		t["host"], t["port"] = m.host, m.port
	} else {
		t["hostPort"] = m.host + ":" + m.port
	}
	if m.note != "" {
		t["note"] = m.note
	}
	return t
}

func encoded(t object.Tree) string { return string(object.AppendJSON(nil, t)) }

// Random writes in all versions and by all verbs, with changes of the storage version: every version
// shows the same objects in gets, lists and watches. A field owner keeps the version of its write; with
// rules, ownership is converted with the fields. No object is converted twice.
func TestConvertAtRandom(t *testing.T) {
	for _, by := range []conversionBy{byWebhook, byRules, byNone} {
		t.Run(string(by), func(t *testing.T) {
			const (
				seed  = 7
				steps = 150
			)
			r := &random{
				converting: startConverting(t), Rand: rand.New(rand.NewPCG(seed, seed)), by: by,
				objects: map[string]crontabModel{}, storage: "v1beta1",
			}
			if by != byWebhook {
				r.define(r.crdOf(r.storage))
			}
			watchers := r.follow()
			for step := range steps {
				r.step(step)
				if step%10 == 0 {
					r.compare()
				}
			}
			r.compare()
			for _, w := range watchers {
				w.compare(r)
			}
			if by != byWebhook {
				r.expect("calls of the webhook", r.calls.Load(), int64(0))
			}
		})
	}
}

// crdOf returns the definition with a storage version.
func (r *random) crdOf(storage string) string {
	if r.by == byWebhook {
		return r.crd(storage)
	}
	crd := object.Tree{}
	if err := json.Unmarshal([]byte(r.crd(storage)), &crd); err != nil {
		r.t.Fatal(err)
	}
	in := crd["spec"].(object.Tree)
	delete(in, "conversion")
	if r.by == byRules {
		object.Metadata(crd)["annotations"] = object.Tree{"anykind.dev/conversion": crontabRules}
		return encoded(crd)
	}
	versions := in["versions"].([]any)
	for _, v := range versions {
		v.(object.Tree)["schema"] = versions[0].(object.Tree)["schema"]
		delete(v.(object.Tree), "selectableFields")
	}
	return encoded(crd)
}

// store changes the storage version.
func (c *converting) store(version string) {
	c.t.Helper()
	c.define(c.crd(version))
}

// step makes one random write.
func (r *random) step(step int) {
	r.t.Helper()
	name, version := fmt.Sprint("c", r.IntN(8)), r.either()
	at := path(version, name)
	m, exists := r.objects[name]
	switch n := r.IntN(12); {
	case n == 0:
		r.storage = map[string]string{"v1": "v1beta1", "v1beta1": "v1"}[r.storage]
		r.define(r.crdOf(r.storage))
		return
	case !exists:
		m = crontabModel{host: fmt.Sprint("h", step), port: fmt.Sprint(step), placed: "maker " + version}
		r.must("POST", path(version, "")+"?fieldManager=maker", crontab(version, name, inner(encoded(r.fields(version, m))), ""), 201)
	case n == 1:
		r.must("DELETE", at, "", 200)
		delete(r.objects, name)
		return
	case n <= 3:
		m.note, m.noted = fmt.Sprint("n", step), "noter "+version
		r.must("PATCH", at+"?fieldManager=noter&force=true", crontab(version, name, fmt.Sprintf(`"note":%q`, m.note), ""), 200)
	case n <= 5:
		m.seen, m.saw = fmt.Sprint("s", step), "Go-http-client "+version
		r.must("PATCH", at+"/status", fmt.Sprintf(`{"status":{"seen":%q}}`, m.seen), 200)
	case n <= 7:
		m.host, m.port, m.placed = fmt.Sprint("h", step), fmt.Sprint(step), "putter "+version
		now, _ := r.must("GET", at, "", 200)
		now["spec"] = r.fields(version, m)
		delete(now, "status") // an update does not change it
		r.must("PUT", at+"?fieldManager=putter", encoded(now), 200)
	default:
		m.host, m.port, m.placed = fmt.Sprint("h", step), fmt.Sprint(step), "Go-http-client "+version
		change := r.fields(version, m)
		delete(change, "note")
		r.must("PATCH", at, encoded(object.Tree{"spec": change}), 200)
	}
	r.objects[name] = m
}

// inner returns a JSON object without its braces.
func inner(data string) string { return data[1 : len(data)-1] }

// check compares an object in a version with its expected state.
func (r *random) check(version string, o object.Tree) {
	r.t.Helper()
	name := object.Name(o)
	m, ok := r.objects[name]
	if !ok {
		r.t.Errorf("%s is there in %s", name, version)
		return
	}
	r.expect(version+" "+name, spec(o), encoded(r.fields(version, m)))
	r.expect("apiVersion", o["apiVersion"], "example.com/"+version)
	status, _ := o["status"].(object.Tree)
	seen, _ := status["seen"].(string)
	r.expect("status of "+name, seen, m.seen)
	wanted := map[string][]string{"host": {m.placed}, "port": {m.placed}, "note": owned(m.noted), "seen": owned(m.saw)}
	if r.by == byRules {
		for field, by := range wanted {
			for i := range by {
				manager, _, _ := strings.Cut(by[i], " ")
				wanted[field][i] = manager + " " + version
			}
		}
	}
	r.expect("owners of "+name, fmt.Sprint(leafOwners(o)), fmt.Sprint(wanted))
}

func owned(by string) []string {
	if by == "" {
		return nil
	}
	return []string{by}
}

// leafOwners returns the owners of the fields of an object, in any version.
func leafOwners(o object.Tree) map[string][]string {
	out := map[string][]string{"host": nil, "port": nil, "note": nil, "seen": nil}
	list, _ := object.Metadata(o)["managedFields"].([]any)
	for _, v := range list {
		e := v.(object.Tree)
		who := fmt.Sprint(e["manager"], " ", strings.TrimPrefix(e["apiVersion"].(string), "example.com/"))
		fields := e["fieldsV1"].(object.Tree)
		for _, outer := range []string{"f:spec", "f:status"} {
			inside, _ := fields[outer].(object.Tree)
			for field := range inside {
				for _, name := range map[string][]string{
					"f:host": {"host"}, "f:port": {"port"}, "f:hostPort": {"host", "port"}, "f:note": {"note"}, "f:seen": {"seen"},
				}[field] {
					out[name] = append(out[name], who)
				}
			}
		}
	}
	return out
}

// compare checks the objects in every version, and that another read needs no conversion.
func (r *random) compare() {
	r.t.Helper()
	for _, version := range []string{"v1", "v1beta1"} {
		list, _ := r.must("GET", path(version, ""), "", 200)
		items, _ := list["items"].([]any)
		r.expect("items", len(items), len(r.objects))
		for _, item := range items {
			r.check(version, item.(object.Tree))
		}
		// Watches may still be converting the last write.
		calls := int64(1)
		for try := 0; try < 5 && calls > 0; try++ {
			_, calls = r.must("GET", path(version, ""), "", 200)
			for name := range r.objects {
				_, more := r.must("GET", path(version, name), "", 200)
				calls += more
			}
		}
		r.expect("calls for what was shown before", calls, int64(0))
	}
}

// A follower watches one version, with reconnects, and records the events.
type follower struct {
	version string
	objects map[string]object.Tree
	wrong   error
	seen    chan struct{} // closed after the last object
}

const lastObject = "last"

// follow starts a follower of each version.
func (r *random) follow() []*follower {
	var out []*follower
	for _, version := range []string{"v1", "v1beta1"} {
		w := &follower{version: version, objects: map[string]object.Tree{}, seen: make(chan struct{})}
		list, _ := r.must("GET", path(version, ""), "", 200)
		go w.run(r.converting, object.ResourceVersion(list))
		out = append(out, w)
	}
	return out
}

// run watches until the last object appears. A change of the definition ends watches, and they
// resume.
func (w *follower) run(c *converting, revision string) {
	defer close(w.seen)
	for w.wrong == nil {
		request, err := http.NewRequestWithContext(c.t.Context(), "GET", c.app.URL()+path(w.version, "")+"?watch=1&resourceVersion="+revision, nil)
		if err != nil {
			w.wrong = err
			return
		}
		response, err := c.client.Do(request)
		if err != nil {
			w.wrong = err
			return
		}
		for events := json.NewDecoder(response.Body); ; {
			var e struct {
				Type   string
				Object object.Tree
			}
			if err := events.Decode(&e); err != nil {
				if !errors.Is(err, io.EOF) {
					w.wrong = err
				}
				break
			}
			name := object.Name(e.Object)
			if name == lastObject {
				response.Body.Close()
				return
			}
			if e.Type == "ERROR" || e.Object["apiVersion"] != "example.com/"+w.version {
				w.wrong = fmt.Errorf("%s of %v", e.Type, e.Object)
				break
			}
			revision = object.ResourceVersion(e.Object)
			if w.objects[name] = e.Object; e.Type == "DELETED" {
				delete(w.objects, name)
			}
		}
		response.Body.Close()
	}
}

// compare checks the recorded events of a follower.
func (w *follower) compare(r *random) {
	r.t.Helper()
	if code, _, _ := r.do("GET", path("v1", lastObject), ""); code == 404 {
		r.must("POST", path("v1", ""), crontab("v1", lastObject, `"host":"h","port":"1"`, ""), 201)
	}
	<-w.seen
	if w.wrong != nil {
		r.t.Fatalf("the watch of %s: %v", w.version, w.wrong)
	}
	r.expect("objects of a watch of "+w.version, len(w.objects), len(r.objects))
	for _, o := range w.objects {
		r.check(w.version, o)
	}
}

// Requests that wait for a hanging webhook do not block requests that need no conversion.
func TestConvertHanging(t *testing.T) {
	c := startConverting(t)
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "a", `"hostPort":"h:80"`, ""), 201)
	release := make(chan struct{})
	c.hang.Store(&release)
	done := make(chan int, 20)
	for range cap(done) {
		go func() {
			code, _, _ := c.do("GET", path("v1", "a"), "")
			done <- code
		}()
	}
	<-c.arrived
	c.must("GET", path("v1beta1", "a"), "", 200)
	c.must("PATCH", path("v1beta1", "a"), `{"spec":{"note":"n"}}`, 200)
	c.must("DELETE", path("v1beta1", "a"), "", 200)
	c.must("GET", "/api/v1/namespaces", "", 200)
	close(release)
	for range cap(done) {
		if code := <-done; code != 200 && code != 404 {
			t.Errorf("a request that waited got %d", code)
		}
	}
	if n := c.calls.Load(); n > 2 {
		t.Errorf("%d calls for one object", n)
	}
}
