package quota_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/quota"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// in runs a test in a world with the controller.
func in(t *testing.T, test func(w *controllertest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t)
		w.Start()
		w.Create("namespace dev")
		w.Wait()
		test(w)
	})
}

func world(t *testing.T) (w *controllertest.World) {
	w = controllertest.New(t, []controller.Descriptor{{Name: quota.Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return quota.New(w.Quotas)(o, q)
	}}})
	return w
}

// with is a feature of an object: its spec.
func with(spec string) controllertest.Feature {
	return func(w *controllertest.World, t object.Tree) {
		var tree object.Tree
		if err := yaml.Unmarshal([]byte(spec), &tree); err != nil {
			w.T.Fatal(err)
		}
		t["spec"] = tree
	}
}

// used returns the usage of a quota, soon after all events.
func used(w *controllertest.World, name string) string {
	w.T.Helper()
	w.Sleep(time.Second)
	return usage.Text(read(w, w.Get("resourcequota "+name)).Status.Used)
}

func read(w *controllertest.World, t object.Tree) (q corev1.ResourceQuota) {
	w.T.Helper()
	data, err := json.Marshal(t)
	if err == nil {
		err = json.Unmarshal(data, &q)
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return q
}

// editStatus changes the status of an object.
func editStatus(w *controllertest.World, what string, edit func(status object.Tree)) {
	w.T.Helper()
	target := w.Target(what)
	target.Subresource = "status"
	_, err := w.Registry.Modify(w.Ctx, target, func(old object.Tree) (object.Tree, error) {
		t := object.CloneTree(old)
		edit(t["status"].(object.Tree))
		return t, nil
	}, registry.WriteOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Existing objects are counted, creates are charged, deletions are released.
func TestUsed(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Create("configmap dev/before")
		w.Create("resourcequota dev/q", with(`{hard: {configmaps: 3, count/leads.test.example.com: 2, count/gears.test.example.com: 1}}`))
		expect := func(what, want string) {
			t.Helper()
			if got := used(w, "dev/q"); got != want {
				t.Errorf("%s: used %s, want %s", what, got, want)
			}
		}
		expect("before", "configmaps=1,count/gears.test.example.com=0,count/leads.test.example.com=0")
		w.Create("lead dev/a")
		w.Create("configmap dev/b")
		expect("created", "configmaps=2,count/gears.test.example.com=0,count/leads.test.example.com=1")
		w.Delete("lead dev/a", "")
		expect("deleted", "configmaps=2,count/gears.test.example.com=0,count/leads.test.example.com=0")
		w.Define("Gear", true)
		w.Create("gear dev/a")
		expect("defined later", "configmaps=2,count/gears.test.example.com=1,count/leads.test.example.com=0")
		if err := w.TryCreate("gear dev/b"); !status.Is(err, metav1.StatusReasonForbidden) {
			t.Errorf("one too many: %v", err)
		}
		w.Edit("resourcequota dev/q", func(t object.Tree) { t["spec"].(object.Tree)["hard"] = object.Tree{"configmaps": "2"} })
		expect("changed", "configmaps=2")
		if err := w.TryCreate("configmap dev/c"); !status.Is(err, metav1.StatusReasonForbidden) {
			t.Errorf("as many as there may be: %v", err)
		}
		w.Delete("resourcequota dev/q", "")
		w.Create("configmap dev/c")
	})
}

// Pods use their requests until they have terminated. Only pods in the scopes of a quota count.
func TestPods(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Create("resourcequota dev/q", with(`{hard: {pods: 5, requests.cpu: 2, limits.memory: 1Gi}}`))
		w.Create("resourcequota dev/ends", with(`{hard: {pods: 5}, scopes: [Terminating]}`))
		w.Wait()
		pod := `{%s containers: [{name: c, image: i, resources: {requests: {cpu: 500m}, limits: {memory: 128Mi, cpu: 1}}}]}`
		w.Create("pod dev/a", with(fmt.Sprintf(pod, "")))
		w.Create("pod dev/b", with(fmt.Sprintf(pod, "activeDeadlineSeconds: 5,")))
		expect := func(what, all, ends string) {
			t.Helper()
			if got := used(w, "dev/q"); got != all {
				t.Errorf("%s: used %s, want %s", what, got, all)
			}
			if got := used(w, "dev/ends"); got != ends {
				t.Errorf("%s: of those that end used %s, want %s", what, got, ends)
			}
		}
		expect("both", "limits.memory=256Mi,pods=2,requests.cpu=1", "pods=1")
		editStatus(w, "pod dev/b", func(status object.Tree) { status["phase"] = "Succeeded" })
		expect("one has run", "limits.memory=128Mi,pods=1,requests.cpu=500m", "pods=0")
		w.Edit("pod dev/a", func(t object.Tree) { t["spec"].(object.Tree)["activeDeadlineSeconds"] = int64(7) })
		expect("the other one comes into the scope", "limits.memory=128Mi,pods=1,requests.cpu=500m", "pods=1")
	})
}

// A wrong status is corrected within minutes, not at once.
func TestResync(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Create("resourcequota dev/q", with(`{hard: {configmaps: 3}}`))
		w.Wait()
		editStatus(w, "resourcequota dev/q", func(status object.Tree) { status["used"] = object.Tree{"configmaps": "2"} })
		if got := used(w, "dev/q"); got != "configmaps=2" {
			t.Errorf("used %s", got)
		}
		w.Sleep(5 * time.Minute)
		if got := used(w, "dev/q"); got != "configmaps=0" {
			t.Errorf("used %s", got)
		}
	})
}

// Sixty-four clients create and delete custom objects while their quota is created. Once in force,
// the quota is never exceeded: there are never more objects than charged, and never more charges
// than the limit.
func TestNeverExceeded(t *testing.T) {
	const most, clients, each = 300, 64, 12
	synctest.Test(t, func(t *testing.T) {
		w := world(t)
		w.Start()
		w.Create("namespace dev")
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for j := range each {
					name := fmt.Sprintf("lead dev/x%d-%d", i, j)
					switch err := w.TryCreate(name); {
					case err == nil && j%3 == 0:
						w.Delete(name, "")
					case err != nil && !status.Is(err, metav1.StatusReasonForbidden):
						t.Error(err)
					}
				}
			})
		}
		w.Create("resourcequota dev/q", with(fmt.Sprintf("{hard: {count/leads.test.example.com: %d}}", most)))
		all.Wait()
		w.Sleep(time.Second)
		end, err := w.Backend.Revision(w.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		there, name := int64(0), corev1.ResourceName("count/leads.test.example.com")
		charged, limited, moved := int64(0), false, 0
		for batch, err := range w.Backend.Watch(w.Ctx, "/registry/", 1) {
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch.Events {
				switch {
				case strings.HasPrefix(e.Key, "/registry/test.example.com/leads/") && e.Value == nil:
					there--
				case strings.HasPrefix(e.Key, "/registry/test.example.com/leads/"):
					there++
				case strings.HasPrefix(e.Key, "/registry/resourcequotas/"):
					var q corev1.ResourceQuota
					if err := json.Unmarshal(e.Value, &q); err != nil {
						t.Fatal(err)
					}
					amount := q.Status.Used[name]
					now := amount.Value()
					if limited && (there > now || now > max(most, charged)) {
						t.Errorf("at revision %d there are %d, and %d are charged, after %d", e.Revision, there, now, charged)
					}
					charged, limited, moved = now, q.Status.Hard != nil, moved+1
				}
			}
			if batch.Revision >= end {
				break
			}
		}
		if !limited || there != charged || moved < 2 {
			t.Errorf("in the end there are %d, and %d are charged; the quota has moved %d times", there, charged, moved)
		}
	})
}
