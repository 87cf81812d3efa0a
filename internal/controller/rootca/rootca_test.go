package rootca

import (
	"fmt"
	"testing"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/controller/serviceaccount"
	"github.com/anykind/anykind/internal/object"
)

// Every namespace gets its default objects. They are repaired, except in a namespace in deletion.
func TestProvided(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{
		{Name: Name, New: New([]byte("trust me"))}, {Name: serviceaccount.Name, New: serviceaccount.New}, {Name: namespace.Name, New: namespace.New},
	}, func(w *controllertest.World) {
		check := func() {
			t.Helper()
			w.Wait()
			account, trust := w.Get("serviceaccount dev/default"), w.Get("configmap dev/kube-root-ca.crt")
			if account == nil || trust == nil {
				t.Fatalf("account %v, trust %v", account, trust)
			}
			annotations, _ := object.Metadata(trust)["annotations"].(object.Tree)
			if got := fmt.Sprint(trust["data"]); got != "map[ca.crt:trust me]" || annotations[descriptionKey] != description {
				t.Fatalf("data %s, annotations %v", got, annotations)
			}
		}
		check()
		w.Delete("serviceaccount dev/default", "")
		w.Delete("configmap dev/kube-root-ca.crt", "")
		check()
		w.Edit("configmap dev/kube-root-ca.crt", func(t object.Tree) { t["data"] = object.Tree{"ca.crt": "me", "x": "y"} })
		check()
		w.Edit("configmap dev/kube-root-ca.crt", func(t object.Tree) { delete(object.Metadata(t), "annotations") })
		check()
		w.Edit("configmap dev/kube-root-ca.crt", func(t object.Tree) {
			object.Metadata(t)["annotations"] = object.Tree{descriptionKey: "my own"}
		})
		w.Wait()
		if got := object.Metadata(w.Get("configmap dev/kube-root-ca.crt"))["annotations"]; fmt.Sprint(got) != "map["+descriptionKey+":my own]" {
			t.Errorf("annotations %v", got)
		}

		w.Create("lead dev/a", controllertest.Finalizer("test.example.com/f"))
		w.Delete("namespace dev", "")
		w.Wait()
		if w.Get("serviceaccount dev/default") != nil || w.Get("configmap dev/kube-root-ca.crt") != nil {
			t.Error("they were made again")
		}
	})
}
