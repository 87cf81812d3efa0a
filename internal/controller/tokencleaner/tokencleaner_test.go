package tokencleaner

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// expiring is a feature of a Secret: a token that expires after a duration, never if 0.
func expiring(in time.Duration) controllertest.Feature {
	text := ""
	if in != 0 {
		text = time.Now().Add(in).UTC().Format(time.RFC3339)
	}
	return expiringAt(text)
}

func expiringAt(text string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		t["type"] = "bootstrap.kubernetes.io/token"
		t["data"] = object.Tree{"expiration": base64.StdEncoding.EncodeToString([]byte(text))}
	}
}

// Tokens are deleted at their expiry, even across a restart. Other Secrets stay.
func TestExpired(t *testing.T) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Create("namespace kube-system")
		w.Create("secret kube-system/bootstrap-token-aaaaaa", expiring(time.Hour))
		w.Create("secret kube-system/bootstrap-token-bbbbbb", expiring(3*time.Hour))
		w.Create("secret kube-system/bootstrap-token-cccccc", expiring(0))
		w.Create("secret kube-system/bootstrap-token-dddddd", expiring(-time.Hour))
		w.Create("secret kube-system/bootstrap-token-eeeeee", expiringAt("tomorrow"))
		w.Create("secret kube-system/bootstrap-token-ffffff", expiring(time.Hour))
		w.Create("secret dev/bootstrap-token-aaaaaa", expiring(-time.Hour))
		w.Create("secret kube-system/other", func(w *controllertest.World, o object.Tree) {
			expiring(-time.Hour)(w, o)
			o["type"] = "Opaque"
		})
		rest := func(names ...string) {
			t.Helper()
			w.Wait()
			want := map[string]bool{}
			for _, name := range names {
				want[name] = true
			}
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				what := "secret kube-system/bootstrap-token-" + name + name + name + name + name + name
				if there := w.Get(what) != nil; there != want[name] {
					t.Errorf("after %v: %s is there: %v", names, what, there)
				}
			}
		}
		rest("a", "b", "c", "f")
		w.Edit("secret kube-system/bootstrap-token-ffffff", func(t object.Tree) { expiring(2*time.Hour)(w, t) })
		w.Sleep(time.Hour)
		rest("b", "c", "f")
		w.Stop()
		w.Sleep(2 * time.Hour)
		rest("b", "c", "f")
		w.Start()
		rest("c")
		for _, what := range []string{"secret dev/bootstrap-token-aaaaaa", "secret kube-system/other"} {
			if w.Get(what) == nil {
				t.Errorf("%s is gone", what)
			}
		}
	})
}
