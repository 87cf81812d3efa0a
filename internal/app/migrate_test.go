package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
)

const (
	migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	cronTabs   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com"
)

// ask creates a migration of the CronTabs.
func (c *converting) ask(name string) {
	c.t.Helper()
	c.must("POST", migrations, fmt.Sprintf(`{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration",
		"metadata":{"name":%q},"spec":{"resource":{"group":"example.com","resource":"crontabs"}}}`, name), 201)
}

// conditions formats the conditions of an object as type=status: message.
func conditions(o object.Tree) string {
	var out []string
	for _, v := range list(o, "status", "conditions") {
		v := v.(object.Tree)
		out = append(out, fmt.Sprintf("%s=%s: %s", v["type"], v["status"], v["message"]))
	}
	return strings.Join(out, "\n")
}

func list(o object.Tree, field, name string) []any {
	in, _ := o[field].(object.Tree)
	l, _ := in[name].([]any)
	return l
}

// watch receives the events of a list until done returns true. Existing objects are events, too.
func (c *converting) watch(list, query string, done func(event string, o object.Tree) bool) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), "GET", c.app.URL()+list+"?watch=1&timeoutSeconds=30&"+query, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	for events := json.NewDecoder(response.Body); ; {
		var e struct {
			Type   string      `json:"type"`
			Object object.Tree `json:"object"`
		}
		if err := events.Decode(&e); err != nil {
			c.t.Fatalf("the watch of %s ended: %v", list, err)
		}
		if done(e.Type, e.Object) {
			return
		}
	}
}

// until waits until the conditions of an object contain a text.
func (c *converting) until(at, want string) {
	c.t.Helper()
	in, name := at[:strings.LastIndexByte(at, '/')], at[strings.LastIndexByte(at, '/')+1:]
	c.watch(in, "fieldSelector=metadata.name%3D"+name, func(_ string, o object.Tree) bool {
		return strings.Contains(conditions(o), want)
	})
}

// stored returns the number of stored CronTabs per version.
func (c *converting) stored() string {
	c.t.Helper()
	page, err := c.app.backend.List(c.t.Context(), kv.Range{Prefix: "/registry/example.com/crontabs/"})
	if err != nil {
		c.t.Fatal(err)
	}
	n := map[string]int{}
	for _, r := range page.Records {
		e, err := object.Scan(r.Value, r.Revision)
		if err != nil {
			c.t.Fatal(err)
		}
		n[e.APIVersion()]++
	}
	return fmt.Sprint(n)
}

func (c *converting) storedVersions() string {
	c.t.Helper()
	o, _ := c.must("GET", cronTabs, "", 200)
	return fmt.Sprint(list(o, "status", "storedVersions"))
}

// fill creates n CronTabs and then changes the storage version.
func (c *converting) fill(n int) {
	c.t.Helper()
	for i := range n {
		c.must("POST", path("v1beta1", ""), crontab("v1beta1", fmt.Sprint("c", i), fmt.Sprintf(`"hostPort":"h%d:80"`, i), ""), 201)
	}
	c.store("v1")
	c.expect("before", c.stored()+c.storedVersions(), fmt.Sprintf("map[example.com/v1beta1:%d][v1beta1 v1]", n))
}

// A migration writes every object in the storage version, with batched conversions, and changes
// nothing else.
func TestMigrate(t *testing.T) {
	c := startConverting(t)
	const n = 300
	c.fill(n)
	before, _ := c.must("GET", path("v1beta1", "c7"), "", 200)
	calls := c.calls.Load()
	c.ask("m")
	c.until(migrations+"/m", "Succeeded=True: Migration completed")
	c.expect("calls", c.calls.Load()-calls, int64(2))
	m, _ := c.must("GET", migrations+"/m", "", 200)
	c.expect("the migration has ended", conditions(m), "Running=False: Migration completed\nSucceeded=True: Migration completed")
	c.expect("after", c.stored()+c.storedVersions(), fmt.Sprintf("map[example.com/v1:%d][v1]", n))
	c.until(cronTabs, "StorageMigrating=False: The migration has succeeded and the stored versions have been updated")
	after, _ := c.must("GET", path("v1beta1", "c7"), "", 200)
	object.SetMetaString(before, "resourceVersion", object.ResourceVersion(after))
	c.expect("an object", string(object.AppendJSON(nil, after)), string(object.AppendJSON(nil, before)))
}

// A migration waits for a webhook that is down, and reports that in a condition.
func TestMigrateDown(t *testing.T) {
	c := startConverting(t)
	c.fill(3)
	c.down.Store(true)
	c.ask("m")
	c.until(migrations+"/m", `Running=True: The migration is running, 3/3 objects not yet migrated; transient error: `)
	c.until(cronTabs, `StorageMigrating=True: Migration m is running`)
	c.expect("while nothing can be converted", c.stored()+c.storedVersions(), "map[example.com/v1beta1:3][v1beta1 v1]")
	c.must("DELETE", path("v1beta1", "c1"), "", 200)
	c.down.Store(false)
	c.until(migrations+"/m", "Succeeded=True: Migration completed")
	c.expect("after", c.stored()+c.storedVersions(), "map[example.com/v1:2][v1]")
}

// A definition with the annotation is migrated after each change of its storage version. Its
// migrations are deleted with it.
func TestMigrateByAnnotation(t *testing.T) {
	c := startConverting(t)
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "c", `"hostPort":"h:80"`, ""), 201)
	c.must("PATCH", cronTabs, `{"metadata":{"annotations":{"anykind.dev/migrate-storage":"true"}}}`, 200)
	for generation, version := range []string{"v1beta1", "v1", "v1beta1"} {
		if generation == 0 {
			continue // right after its creation
		}
		o, _ := c.must("GET", cronTabs, "", 200)
		versions := list(o, "spec", "versions")
		for _, v := range versions {
			v := v.(object.Tree)
			v["storage"] = v["name"] == version
		}
		data, _ := json.Marshal(o)
		c.must("PUT", cronTabs, string(data), 200)
		c.until(fmt.Sprintf("%s/crontabs.example.com-%d", migrations, generation+1), "Succeeded=True")
		c.expect("stored", c.stored()+c.storedVersions(), fmt.Sprintf("map[example.com/%s:1][%s]", version, version))
	}
	c.must("DELETE", cronTabs, "", 200)
	l, _ := c.must("GET", migrations, "", 200)
	left := len(l["items"].([]any))
	if left > 0 {
		c.watch(migrations, "resourceVersion="+object.ResourceVersion(l), func(event string, _ object.Tree) bool {
			if event == "DELETED" {
				left--
			}
			return left == 0
		})
	}
}

// A definition that changes during its migration keeps its storedVersions, because concurrent writes
// may have used the old version.
func TestMigrateWhileTheDefinitionChanges(t *testing.T) {
	c := startConverting(t)
	c.must("POST", path("v1beta1", ""), crontab("v1beta1", "c", `"hostPort":"h:80"`, ""), 201)
	c.store("v1")
	c.down.Store(true)
	c.ask("m")
	c.until(migrations+"/m", "transient error")
	c.store("v1beta1")
	c.until(migrations+"/m", "Succeeded=True")
	c.until(cronTabs, "StorageMigrating=False: The migration has succeeded but the stored versions have not been updated due to a generation mismatch")
	c.expect("stored versions", c.storedVersions(), "[v1beta1 v1]")
	c.ask("n")
	c.until(migrations+"/n", "Succeeded=True")
	c.expect("stored versions", c.storedVersions(), "[v1beta1]")
}

// The status update of a waiting migration does not trigger a retry. A change of its definition
// does, at once.
func TestMigrateWaits(t *testing.T) {
	c := startConverting(t)
	c.fill(3)
	c.down.Store(true)
	calls := c.calls.Load()
	c.ask("m")
	c.until(migrations+"/m", "transient error")
	now, _ := c.must("GET", migrations+"/m", "", 200)
	before := object.ResourceVersion(now)
	// After five attempts the backoff is so long that a sixth one shows a loop.
	if !poll(t, func() bool { return c.calls.Load()-calls >= 5 }) {
		t.Fatal("the migration does not try again")
	}
	now, _ = c.must("GET", migrations+"/m", "", 200)
	c.expect("the status of a migration that waits", object.ResourceVersion(now), before)
	c.down.Store(false)
	c.must("PATCH", cronTabs, `{"metadata":{"annotations":{"see":"again"}}}`, 200)
	c.until(migrations+"/m", "Succeeded=True: Migration completed")
}

// A deleted migration stops, even if the server was not running at its deletion.
func TestMigrateDeleted(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	c := startConvertingWith(t, o)
	c.fill(3)
	c.down.Store(true)
	for _, whileStopped := range []bool{false, true} {
		name := fmt.Sprint("stopped-", whileStopped)
		c.ask(name)
		c.until(cronTabs, "StorageMigrating=True: Migration "+name+" is running")
		if !whileStopped {
			c.must("DELETE", migrations+"/"+name, "", 200)
		} else {
			stop(t, c.app)
			forget(t, o.Dir, "/registry/storageversionmigrations/"+name)
			c.app = start(t, o)
			c.client = client(t, c.app, admin(t, c.app))
		}
		c.until(cronTabs, "StorageMigrating=False: The migration has failed")
	}
	c.expect("stored versions", c.storedVersions(), "[v1beta1 v1]")
}

// forget deletes a key from the store in a folder.
func forget(t *testing.T, dir, key string) {
	t.Helper()
	store, err := boltkv.Open(dir, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := store.Get(t.Context(), key, kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), kv.Write{Key: key, Expect: r.Revision}); err != nil {
		t.Fatal(err)
	}
}
