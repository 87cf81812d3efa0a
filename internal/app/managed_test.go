package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// owners returns the managers of an object, sorted, each with its fields outside the metadata.
func owners(o object.Tree) string {
	var out []string
	list, _ := object.Metadata(o)["managedFields"].([]any)
	for _, v := range list {
		e := v.(object.Tree)
		fields := object.CloneTree(e["fieldsV1"].(object.Tree))
		delete(fields, "f:metadata")
		data, _ := json.Marshal(fields)
		if sub, _ := e["subresource"].(string); sub != "" {
			e["operation"] = fmt.Sprint(e["operation"], " ", sub)
		}
		out = append(out, fmt.Sprint(e["manager"], " ", e["operation"], " ", strings.TrimPrefix(e["apiVersion"].(string), "example.com/"), " ", string(data)))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// versioned returns a definition of CronTabs with conversion None and a status subresource in every
// version.
func versioned(storage string, versions ...string) string {
	var all []string
	for _, name := range versions {
		all = append(all, fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"subresources":{"status":{}},
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
				"spec":{"type":"object","properties":{"host":{"type":"string"},"note":{"type":"string"},
					"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",
						"required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"integer"}}}}}},
				"status":{"type":"object","properties":{"seen":{"type":"string"},"told":{"type":"string"}}}}}}}`, name, name == storage))
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"crontabs.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"crontabs","kind":"CronTab"},"versions":[%s]}}`, strings.Join(all, ","))
}

// define replaces the definition of the CronTabs.
func (c *converting) define(crd string) {
	c.t.Helper()
	old, _ := c.must("GET", cronTabs, "", 200)
	t := object.Tree{}
	if err := json.Unmarshal([]byte(crd), &t); err != nil {
		c.t.Fatal(err)
	}
	object.SetMetaString(t, "resourceVersion", object.ResourceVersion(old))
	c.must("PUT", cronTabs, string(object.AppendJSON(nil, t)), 200)
}

// A write of the status in one version keeps the owners of all other fields in another version. A
// write of the other fields keeps the owners of the status, even if it omits the status. (In
// Kubernetes, both writes lose owners in another version, and fields beside spec and status lose
// their owner in any version.)
func TestOwnersAndStatus(t *testing.T) {
	c := startConverting(t)
	c.define(versioned("v1beta1", "v1", "v1beta1"))
	c.must("PATCH", path("v1beta1", "a")+"?fieldManager=noter", crontab("v1beta1", "a", `"note":"n","list":[{"name":"x","value":1}]`, ""), 201)
	c.must("PATCH", path("v1", "a")+"?fieldManager=maker&force=true", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"a"},"spec":{"host":"h"},"beside":1}`, 200)
	c.must("PATCH", path("v1beta1", "a/status")+"?fieldManager=seer", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"status":{"seen":"s"}}`, 200)
	const before = `maker Apply v1 {"f:beside":{},"f:spec":{"f:host":{}}}
noter Apply v1beta1 {"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:value":{}}},"f:note":{}}}
seer Apply status v1beta1 {"f:status":{"f:seen":{}}}`
	now, _ := c.must("GET", path("v1", "a"), "", 200)
	c.expect("owners", owners(now), before)

	const teller = "\nteller Update status v1 {\"f:status\":{\"f:told\":{}}}"
	status := object.CloneTree(now)
	delete(status, "spec")
	delete(status, "beside")
	status["status"].(object.Tree)["told"] = "t"
	now, _ = c.must("PUT", path("v1", "a/status")+"?fieldManager=teller", string(object.AppendJSON(nil, status)), 200)
	c.expect("owners after a status without the rest", owners(now), before+teller)
	c.expect("spec", spec(now), `{"host":"h","list":[{"name":"x","value":1}],"note":"n"}`)

	rest := object.CloneTree(now)
	delete(rest, "status")
	now, _ = c.must("PUT", path("v1", "a")+"?fieldManager=other", string(object.AppendJSON(nil, rest)), 200)
	c.expect("owners after the rest without a status", owners(now), before+teller)
	now, _ = c.must("PATCH", path("v1", "a"), `{"spec":{"host":"g"}}`, 200)
	c.expect("owners after a patch", strings.Contains(owners(now), "seer Apply status v1beta1 {\"f:status\":{\"f:seen\":{}}}"+teller), true)
}

// The removal of a version from the definition keeps owners in that version unchanged. No field gets
// a new owner or a conflict until a client writes managedFields. An apply, which needs the owners,
// fails.
func TestOwnersAndRemovedVersions(t *testing.T) {
	c := startConverting(t)
	c.define(versioned("v1beta1", "v1", "v1beta1"))
	c.must("PATCH", path("v1beta1", "a")+"?fieldManager=noter", crontab("v1beta1", "a", `"note":"n"`, ""), 201)
	c.must("PATCH", path("v1", "a")+"?fieldManager=maker", crontab("v1", "a", `"host":"h"`, ""), 200)
	c.define(versioned("v1", "v1", "v1beta1"))
	c.ask("m")
	c.until(migrations+"/m", "Succeeded=True")
	c.define(versioned("v1", "v1"))
	const before = `maker Apply v1 {"f:spec":{"f:host":{}}}
noter Apply v1beta1 {"f:spec":{"f:note":{}}}`
	now, _ := c.must("GET", path("v1", "a"), "", 200)
	c.expect("owners", owners(now), before)

	refused := func(what, path, body string) {
		t.Helper()
		code, answer, _ := c.do("PATCH", path, body)
		c.expect(what, fmt.Sprint(code, " ", answer["message"]), "500 request to convert CR to an invalid group/version: example.com/v1beta1")
	}
	refused("an apply by the owner", path("v1", "a")+"?fieldManager=noter&force=true", crontab("v1", "a", `"note":"m"`, ""))
	refused("an apply by another one", path("v1", "a")+"?fieldManager=other", crontab("v1", "a", `"host":"h"`, ""))
	refused("an apply of the status", path("v1", "a/status")+"?fieldManager=seer", `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"a"},"status":{"seen":"s"}}`)
	now, _ = c.must("PATCH", path("v1", "a"), `{"spec":{"host":"g","note":"m"}}`, 200)
	c.expect("spec", spec(now), `{"host":"g","note":"m"}`)
	c.expect("owners after a patch", owners(now), before)
	now, _ = c.must("PATCH", path("v1", "a/status"), `{"status":{"told":"t"}}`, 200)
	c.expect("owners after a status", owners(now), before)

	sent := object.CloneTree(now)
	object.Metadata(sent)["managedFields"] = []any{object.Tree{"manager": "noter", "operation": "Apply", "apiVersion": "example.com/v1",
		"fieldsType": "FieldsV1", "fieldsV1": object.Tree{"f:spec": object.Tree{"f:note": object.Tree{}}}}}
	now, _ = c.must("PUT", path("v1", "a")+"?fieldManager=other", string(object.AppendJSON(nil, sent)), 200)
	c.expect("owners as a client says", owners(now), `noter Apply v1 {"f:spec":{"f:note":{}}}`)
	now, _ = c.must("PATCH", path("v1", "a")+"?fieldManager=noter", crontab("v1", "a", `"host":"g"`, ""), 200)
	c.expect("what is no longer applied is gone", spec(now), `{"host":"g"}`)
}

// An entry of managedFields in a version that the kind never had is dropped. For a custom resource,
// the write has no owner then; for a built-in kind, the manager of the write owns the fields.
func TestOwnersAndUnknownVersions(t *testing.T) {
	c := startConverting(t)
	entries := func(version string) string {
		return `"managedFields":[{"manager":"q","operation":"Apply","apiVersion":"` + version + `","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]`
	}
	for i, version := range []string{"example.com/v0", "other.example.com/v1", "x/y/z"} {
		name := fmt.Sprint("n", i)
		now, _ := c.must("POST", path("v1", ""), `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"`+name+`",`+entries(version)+`}}`, 201)
		c.expect("owners of a CronTab with "+version, owners(now), "")
		wanted := `one Update v1 {"f:data":{".":{},"f:a":{}}}`
		if version == "x/y/z" {
			wanted = ""
		}
		now, _ = c.must("POST", "/api/v1/namespaces/default/configmaps?fieldManager=one", `{"metadata":{"name":"`+name+`",`+entries(version)+`},"data":{"a":"1"}}`, 201)
		c.expect("owners of a ConfigMap with "+version, owners(now), wanted)
	}
}

// Objects stored in a version that is removed from the definition stay readable in other versions,
// if the conversion needs no webhook.
func TestObjectsOfADroppedVersionAreRead(t *testing.T) {
	c := startConverting(t)
	c.define(versioned("v1beta1", "v1", "v1beta1"))
	c.must("PATCH", path("v1beta1", "a")+"?fieldManager=m", crontab("v1beta1", "a", `"host":"h"`, ""), 201)
	c.define(versioned("v1", "v1", "v1beta1"))
	c.must("PATCH", cronTabs+"/status", `{"status":{"storedVersions":["v1"]}}`, 200)
	c.define(versioned("v1", "v1"))
	now, _ := c.must("GET", path("v1", "a"), "", 200)
	c.expect("spec", spec(now), `{"host":"h"}`)
}
