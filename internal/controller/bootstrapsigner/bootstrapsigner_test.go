package bootstrapsigner

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// token is a feature of a Secret: a bootstrap token, with changed data.
func token(id string, changes map[string]string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		t["type"] = "bootstrap.kubernetes.io/token"
		data := map[string]string{"token-id": id, "token-secret": strings.Repeat("s", 16), "usage-bootstrap-signing": "true"}
		maps.Copy(data, changes)
		encoded := object.Tree{}
		for key, value := range data {
			encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
		t["data"] = encoded
	}
}

const info = "configmap kube-public/cluster-info"

// in runs a test in a world with the ConfigMap and the token aaaaaa.
func in(t *testing.T, test func(w *controllertest.World)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Create("namespace kube-system")
		w.Create("namespace kube-public")
		w.Create("secret kube-system/bootstrap-token-aaaaaa", token("aaaaaa", nil))
		w.Create(info, func(_ *controllertest.World, t object.Tree) {
			t["data"] = object.Tree{"kubeconfig": "clusters: []", "other": "stays"}
		})
		test(w)
	})
}

// check compares the signatures in the ConfigMap with the expected ones.
func check(t *testing.T, w *controllertest.World, signatures ...string) {
	t.Helper()
	w.Wait()
	want := []string{"kubeconfig", "other"}
	for _, id := range signatures {
		want = append(want, "jws-kubeconfig-"+id)
	}
	slices.Sort(want)
	data, _ := w.Get(info)["data"].(object.Tree)
	if got := slices.Sorted(maps.Keys(data)); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// Signing tokens sign as long as they exist and have not expired.
func TestSigned(t *testing.T) {
	in(t, func(w *controllertest.World) {
		check(t, w, "aaaaaa")
		for name, change := range map[string]map[string]string{
			"bbbbbb": {"usage-bootstrap-signing": "false"}, "cccccc": {"token-id": "dddddd"}, "eeeeee": {"token-secret": ""},
			"ffffff": {"expiration": time.Now().Add(-time.Hour).Format(time.RFC3339)}, "gggggg": {"expiration": "tomorrow"}, "HHHHHH": nil, "short": nil,
		} {
			w.Create("secret kube-system/bootstrap-token-"+strings.ToLower(name), token(name, change))
		}
		w.Create("secret kube-system/other", token("iiiiii", nil))
		w.Create("secret dev/bootstrap-token-jjjjjj", token("jjjjjj", nil))
		w.Create("secret kube-system/bootstrap-token-kkkkkk", token("kkkkkk", map[string]string{"expiration": time.Now().Add(time.Hour).Format(time.RFC3339)}))
		check(t, w, "aaaaaa", "kkkkkk")
		w.Sleep(time.Hour)
		check(t, w, "aaaaaa")
		w.Edit("secret kube-system/bootstrap-token-bbbbbb", func(o object.Tree) { token("bbbbbb", nil)(w, o) })
		check(t, w, "aaaaaa", "bbbbbb")
		w.Delete("secret kube-system/bootstrap-token-aaaaaa", "")
		check(t, w, "bbbbbb")
	})
}

// Signatures follow the content of the ConfigMap, and are repaired.
func TestSignature(t *testing.T) {
	in(t, func(w *controllertest.World) {
		verify := func(content string) {
			t.Helper()
			w.Wait()
			text, _ := w.Get(info)["data"].(object.Tree)["jws-kubeconfig-aaaaaa"].(string)
			parsed, err := jose.ParseDetached(text, []byte(content), []jose.SignatureAlgorithm{jose.HS256})
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			// The library rejects a secret of fewer than 32 bytes. HMAC pads a secret with zeros, so a padded
			// one verifies the same signatures.
			secret := append(bytes.Repeat([]byte("s"), 16), make([]byte, 16)...)
			if _, err := parsed.Verify(secret); err != nil || parsed.Signatures[0].Header.KeyID != "aaaaaa" {
				t.Errorf("%q, of %+v: %v", text, parsed.Signatures[0].Header, err)
			}
		}
		verify("clusters: []")
		w.Edit(info, func(t object.Tree) { t["data"].(object.Tree)["kubeconfig"] = "clusters: [{}]" })
		verify("clusters: [{}]")
		w.Edit(info, func(t object.Tree) { t["data"].(object.Tree)["jws-kubeconfig-aaaaaa"] = "forged" })
		verify("clusters: [{}]")
		w.Edit(info, func(t object.Tree) { t["data"] = object.Tree{"other": "stays"} })
		w.Wait()
		if data := w.Get(info)["data"].(object.Tree); len(data) != 1 {
			t.Errorf("there is nothing to sign, and %v", data)
		}
	})
}
