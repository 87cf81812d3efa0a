package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// Wrong results of a conversion webhook are dropped once the server can detect its repair: after a
// failed call, or after a change of its configuration in the definition. A delete never uses cached
// results.
func TestConvertMended(t *testing.T) {
	c := startConverting(t)
	withColumn := func(crd string) string {
		return strings.ReplaceAll(crd, `"subresources"`, `"additionalPrinterColumns":[{"name":"Host","type":"string","jsonPath":".spec.host"}],"subresources"`)
	}
	c.define(withColumn(c.crd("v1beta1")))
	for _, name := range []string{"a", "b", "c"} {
		c.must("POST", path("v1beta1", ""), crontab("v1beta1", name, `"hostPort":"h:80"`, ""), 201)
	}
	wrong := changed(func(_ map[string]any, objects []any) []any {
		for _, o := range objects {
			if spec, ok := o.(map[string]any)["spec"].(map[string]any); ok {
				spec["host"] = "wrong"
			}
		}
		return objects
	})
	host := func(t object.Tree) string {
		spec, _ := t["spec"].(map[string]any)
		return fmt.Sprint(spec["host"])
	}
	// hosts returns the host of an object in each type of read.
	hosts := func() string {
		t.Helper()
		one, _ := c.must("GET", path("v1", "a"), "", 200)
		list, _ := c.must("GET", path("v1", ""), "", 200)
		items, _ := list["items"].([]any)
		table := c.table(path("v1", "a"))
		out := []string{host(one), host(items[0].(object.Tree)), table}
		for _, h := range []string{"h", "wrong"} {
			found, _ := c.must("GET", path("v1", "")+"?fieldSelector=spec.host%3D"+h, "", 200)
			items, _ := found["items"].([]any)
			out = append(out, fmt.Sprint(len(items)))
		}
		return strings.Join(append(out, host(c.firstEvent(path("v1", "")))), " ")
	}
	const right, bad = "h h h 3 0 h", "wrong wrong wrong 0 3 wrong"

	c.hostile.Store(&wrong)
	c.expect("while it answers wrongly", hosts(), bad)
	c.hostile.Store(nil)
	before := c.calls.Load()
	c.expect("what is kept of that", hosts(), bad)
	c.expect("calls for what is kept", c.calls.Load()-before, int64(0))

	c.down.Store(true)
	c.must("GET", path("v1", "a"), "", 200)
	c.must("DELETE", path("v1", "b"), "", 500)
	for _, path := range []string{path("v1", "a"), path("v1", "")} {
		c.must("GET", path, "", 500)
	}
	c.down.Store(false)
	c.expect("once it failed and was mended", hosts(), right)

	c.hostile.Store(&wrong)
	c.must("PATCH", path("v1beta1", "a"), `{"spec":{"note":"x"}}`, 200)
	got, _ := c.must("GET", path("v1", "a"), "", 200)
	c.expect("of what was written since", host(got), "wrong")
	c.hostile.Store(nil)
	got, _ = c.must("GET", path("v1", "a"), "", 200)
	c.expect("of what was written since, kept", host(got), "wrong")
	c.define(strings.Replace(withColumn(c.crd("v1beta1")), "/convert", "/convert/again", 1))
	c.expect("by another configuration", hosts(), right)

	c.hostile.Store(&wrong)
	deleted, _ := c.must("DELETE", path("v1", "b")+"?dryRun=All", "", 200)
	c.expect("status of a deletion", deleted["status"], "Success")
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "held", `"hostPort":"h:80"`, `,"finalizers":["example.com/f"]`), 201)
	got, _ = c.must("GET", path("v1", "held"), "", 200)
	c.expect("of what is held", host(got), "wrong")
	c.hostile.Store(nil)
	deleted, _ = c.must("DELETE", path("v1", "held"), "", 200)
	c.expect("of what is marked", host(deleted), "h")
	got, _ = c.must("GET", path("v1beta1", "held"), "", 200)
	c.expect("as it was stored when it was marked", spec(got), `{"hostPort":"h:80"}`)
}

// table returns the cell after the name in the Table of an object.
func (c *converting) table(path string) string {
	c.t.Helper()
	r, _ := http.NewRequestWithContext(c.t.Context(), "GET", c.app.URL()+path, nil)
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	var table struct{ Rows []struct{ Cells []any } }
	if err := json.NewDecoder(response.Body).Decode(&table); err != nil || len(table.Rows) != 1 {
		c.t.Fatalf("%v %v", table, err)
	}
	return fmt.Sprint(table.Rows[0].Cells[1])
}

// firstEvent returns the object of the first event of a watch.
func (c *converting) firstEvent(path string) object.Tree {
	c.t.Helper()
	r, _ := http.NewRequestWithContext(c.t.Context(), "GET", c.app.URL()+path+"?watch=1", nil)
	response, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	var e struct{ Object object.Tree }
	if err := json.NewDecoder(response.Body).Decode(&e); err != nil {
		c.t.Fatal(err)
	}
	return e.Object
}
