package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// A model is what the objects should be: host, port and note by name.
type model map[string][3]string

// spec returns what an object should say in a version.
func (m model) spec(version, name string) string {
	fields := object.Tree{}
	if version == "v1" {
		fields["host"], fields["port"] = m[name][0], m[name][1]
	} else {
		fields["hostPort"] = m[name][0] + ":" + m[name][1]
	}
	if m[name][2] != "" {
		fields["note"] = m[name][2]
	}
	return string(object.AppendJSON(nil, fields))
}

// Whatever is written in whatever version, and however often the storage version
// changes, every version shows the same objects, and nothing is converted twice.
func TestConvertAtRandom(t *testing.T) {
	const (
		seed  = 7
		steps = 150
	)
	random := rand.New(rand.NewPCG(seed, seed))
	c := startConverting(t)
	m := model{}
	storage := "v1beta1"
	either := func() string { return []string{"v1", "v1beta1"}[random.IntN(2)] }
	for step := range steps {
		name, version := fmt.Sprint("c", random.IntN(8)), either()
		_, exists := m[name]
		next := m[name]
		switch n := random.IntN(10); {
		case n == 0:
			storage = map[string]string{"v1": "v1beta1", "v1beta1": "v1"}[storage]
			c.store(storage)
			continue
		case n == 1 && exists:
			c.must("DELETE", path(version, name), "", 200)
			delete(m, name)
			continue
		case n <= 3 && exists:
			next[2] = fmt.Sprint("n", step)
			m[name] = next
			c.must("PATCH", path(version, name)+"?fieldManager=noter&force=true", crontab(version, name, fmt.Sprintf(`"note":%q`, next[2]), ""), 200)
		case !exists:
			m[name] = [3]string{fmt.Sprint("h", step), fmt.Sprint(step), ""}
			c.must("POST", path(version, ""), crontab(version, name, inner(m.spec(version, name)), ""), 201)
		default:
			next[0], next[1] = fmt.Sprint("h", step), fmt.Sprint(step)
			m[name] = next
			c.must("PATCH", path(version, name), fmt.Sprintf(`{"spec":%s}`, m.spec(version, name)), 200)
		}
		if step%10 == 0 {
			c.compare(m)
		}
	}
	c.compare(m)
}

// store makes a version the one that objects are stored in.
func (c *converting) store(version string) {
	c.t.Helper()
	const at = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com"
	old, _ := c.must("GET", at, "", 200)
	crd := object.Tree{}
	if err := json.Unmarshal([]byte(c.crd(version)), &crd); err != nil {
		c.t.Fatal(err)
	}
	object.SetMetaString(crd, "resourceVersion", object.ResourceVersion(old))
	c.must("PUT", at, string(object.AppendJSON(nil, crd)), 200)
}

// inner returns an object's JSON without its brackets.
func inner(data string) string { return data[1 : len(data)-1] }

// compare checks what every version shows, and that showing it again takes no
// conversion.
func (c *converting) compare(m model) {
	c.t.Helper()
	for _, version := range []string{"v1", "v1beta1"} {
		list, _ := c.must("GET", path(version, ""), "", 200)
		items, _ := list["items"].([]any)
		c.expect("items", len(items), len(m))
		for _, item := range items {
			o := item.(object.Tree)
			c.expect(version+" "+object.Name(o), spec(o), m.spec(version, object.Name(o)))
			c.expect("apiVersion", o["apiVersion"], "example.com/"+version)
		}
		_, calls := c.must("GET", path(version, ""), "", 200)
		c.expect("calls of a second list", calls, int64(0))
	}
}

// Requests that wait for a webhook that hangs leave room for those that need
// none.
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
