package serviceaccounttoken

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// in runs a test in a world with the controller, and the account dev/robot.
func in(t *testing.T, test func(w *controllertest.World)) {
	keys, err := serviceaccount.OpenKeys("")
	if err != nil {
		t.Fatal(err)
	}
	issuer := serviceaccount.NewIssuer(serviceaccount.Options{})
	issuer.Use(keys)
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New(issuer, []byte("trust me"))}}, func(w *controllertest.World) {
		w.Create("serviceaccount dev/robot")
		test(w)
	})
}

// tokenOf is a feature of a Secret: the token of an account.
func tokenOf(account string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		t["type"] = "kubernetes.io/service-account-token"
		kind.Child(object.Metadata(t), "annotations")["kubernetes.io/service-account.name"] = account
	}
}

// data returns the data of a Secret.
func data(w *controllertest.World, key string) string {
	w.T.Helper()
	text, err := base64.StdEncoding.DecodeString(kind.Text(w.Get("secret dev/t"), "data", key))
	if err != nil {
		w.T.Fatal(err)
	}
	return string(text)
}

// A token Secret is filled and repaired; an existing token stays.
func TestFilled(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Create("secret dev/t", tokenOf("robot"))
		check := func() {
			t.Helper()
			w.Wait()
			if ca, ns := data(w, "ca.crt"), data(w, "namespace"); ca != "trust me" || ns != "dev" || strings.Count(data(w, "token"), ".") != 2 {
				t.Fatalf("ca %q, namespace %q, token %q", ca, ns, data(w, "token"))
			}
			if uid := kind.Pairs(w.Get("secret dev/t"), "metadata", "annotations")["kubernetes.io/service-account.uid"]; uid != object.UID(w.Get("serviceaccount dev/robot")) {
				t.Fatalf("it is for the uid %q", uid)
			}
		}
		check()
		first := data(w, "token")
		for _, key := range []string{"ca.crt", "namespace"} {
			w.Edit("secret dev/t", func(t object.Tree) { delete(kind.Child(t, "data"), key) })
			check()
			if data(w, "token") != first {
				t.Error("another token came with", key)
			}
		}
		w.Edit("secret dev/t", func(t object.Tree) { delete(kind.Child(t, "data"), "token") })
		check()

		// Other Secrets stay unchanged.
		w.Create("secret dev/other")
		w.Wait()
		if w.Get("secret dev/other")["data"] != nil {
			t.Error("a Secret of another type was filled")
		}
	})
}

// A Secret from before the start of the controller is filled, too.
func TestFilledLater(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Stop()
		w.Create("secret dev/t", tokenOf("robot"))
		w.Wait()
		if w.Get("secret dev/t")["data"] != nil {
			t.Fatal("the controller still runs")
		}
		w.Start()
		w.Wait()
		if data(w, "token") == "" {
			t.Error("there is no token")
		}
	})
}

// A Secret is deleted with its account, and one without an account is deleted at once.
func TestGone(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Create("serviceaccount dev/other")
		w.Create("secret dev/a", tokenOf("robot"))
		w.Create("secret dev/b", tokenOf("robot"))
		w.Create("secret dev/c", tokenOf("other"))
		w.Create("secret dev/d", tokenOf("missing"))
		w.Create("secret dev/e", tokenOf("other"), func(_ *controllertest.World, t object.Tree) {
			kind.Child(object.Metadata(t), "annotations")["kubernetes.io/service-account.uid"] = "of another one"
		})
		w.Shows(`
			secret dev/a
			secret dev/b
			secret dev/c
			serviceaccount dev/other
			serviceaccount dev/robot`)
		w.Delete("serviceaccount dev/robot", "")
		w.Create("serviceaccount dev/robot")
		w.Shows(`
			secret dev/c
			serviceaccount dev/other
			serviceaccount dev/robot`)
	})
}

// A deleted Secret is removed from its account.
func TestUnlisted(t *testing.T) {
	in(t, func(w *controllertest.World) {
		w.Create("secret dev/a", tokenOf("robot"))
		w.Create("secret dev/b", tokenOf("robot"))
		w.Wait()
		w.Edit("serviceaccount dev/robot", func(t object.Tree) {
			t["secrets"] = []any{object.Tree{"name": "a"}, object.Tree{"name": "b"}, object.Tree{"name": "elsewhere"}}
		})
		w.Delete("secret dev/a", "")
		w.Wait()
		list := kind.List(w.Get("serviceaccount dev/robot"), "secrets")
		if want := []any{object.Tree{"name": "b"}, object.Tree{"name": "elsewhere"}}; !object.Equal(list, want) {
			t.Errorf("it lists %v", list)
		}
	})
}
