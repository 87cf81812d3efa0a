package console

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var pictures = flag.Bool("pictures", false, "write the pictures of docs/console.md")

// listen serves on a free port until the test ends, and returns the URL.
func listen(t *testing.T, s *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + l.Addr().String()
}

// Views of a server with something to see, by the name of their picture.
var views = []struct{ name, address, ready string }{
	{"home", "#/", `document.querySelector(".cards")`},
	{"list", "#/list/example.com/widgets?namespace=default", `document.querySelectorAll(".space .row:not([hidden])").length > 10`},
	{"state", "#/object/apps/deployments/default/web", `document.body.innerText.includes("does not exist")`},
	{"yaml", "#/object/apps/deployments/default/web?tab=yaml", `document.querySelector(".lines")`},
	{"changes", "#/object/apps/deployments/default/web?tab=changes", `document.querySelector(".differences")`},
	{"all-changes", "#/changes?namespace=default", `document.querySelector(".feed .differences code")`},
	{"edit", "#/object/apps/deployments/default/web?tab=yaml&", `document.querySelector(".sheet .wrong") || (document.querySelector("textarea") ? false : ([...document.querySelectorAll("button")].find(b => b.innerText === "Edit")?.click(), (t => t && (t.value = t.value.replace("replicas: 5", "replicas: -5"), t.dispatchEvent(new Event("input"))))(document.querySelector("textarea")), false))`},
	{"graph", "#/object/apps/deployments/default/web?tab=graph", `document.querySelector(".graph path")`},
	{"form", "#/object/apps/deployments/default/web?tab=form", `document.querySelector("[id='field-spec.replicas']")`},
	{"admission", "#/object/apps/deployments/default/web?tab=admission", `document.body.innerText.includes("bound by team-label-everywhere")`},
	{"terminal", "#/object/-/pods/default/web-0?tab=terminal", `(a => /Apache-2.0/.test(document.querySelector(".screen")?.innerText) || (a || [...document.querySelectorAll("button")].find(b => b.innerText === "Start a shell")?.click(), a && !a.dataset.typed && /[$#]/.test(document.querySelector(".screen").innerText) && (a.dataset.typed = "yes", a.value = "ls -l --color=always /usr/share/common-licenses\r", a.dispatchEvent(new Event("input"))), false))(document.querySelector(".keys-of-terminal"))`},
	{"versions", "#/kind/example.com/lamps?with=v1", `document.querySelector("mark")`},
	{"kind", "#/kind/example.com/widgets", `(document.querySelectorAll(".fields details").forEach(d => d.open = /spec/.test(d.querySelector("summary").innerText)), document.body.innerText.includes("a failed widget is small"))`},
	{"definition", "#/definition/widgets.example.com", `document.querySelector(".review td") && ([...document.querySelectorAll(".review h2")].length > 1 || (t => (t.value.includes("maximum: 1000") && (t.value = t.value.replace("maximum: 1000", "maximum: 500"), t.dispatchEvent(new Event("input"))), false))(document.querySelector("textarea")))`},
	{"rights", "#/access?verb=get&resource=secrets", `document.body.innerText.includes("jane")`},
	{"search", "#/?", `document.querySelector("[role=option] b") || (document.querySelector(".query") ? false : (document.querySelector(".bigfind").click(), (q => (q.value = "web", q.dispatchEvent(new Event("input"))))(document.querySelector(".query")), false))`},
}

// furnish creates the objects of the pictures.
func furnish(t *testing.T, f *Fixture) {
	t.Helper()
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets, twoVersions)
	for i := range 40 {
		f.Create(t, "/apis/example.com/v1/namespaces/default/widgets", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"widget-%03d","labels":{"app":"a%d"}},"spec":{"size":%d,"phase":%q}}`, i, i%5, 20*i+1, []string{"Running", "Running", "Pending", "Failed"}[i%4]))
	}
	f.Create(t, deployments+"?fieldManager=kubectl", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1.27","envFrom":[{"configMapRef":{"name":"web-settings"}}],"resources":{"requests":{"cpu":"100m"}}}]}}}}`)
	f.policy(t, "replica-limit", "apps", "deployments", `{}`, "object.spec.replicas <= 10", "at most 10 replicas", "Deny")
	f.policy(t, "team-label", "apps", "deployments", `{}`, "has(object.metadata.labels.team)", "a Deployment needs the label team", "Warn")
	f.Patch(t, deployments+"/web?fieldManager=hpa", `{"spec":{"replicas":5}}`)
	_ = f.Do(t.Context(), http.MethodPatch, deployments+"/web?fieldManager=hpa", rawJSON(`{"spec":{"replicas":50}}`), nil) // for the picture of a rejection
	f.Patch(t, deployments+"/web/status?fieldManager=deployment-controller", `{"status":{"observedGeneration":2,"replicas":5,"readyReplicas":3,"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable","message":"Deployment does not have minimum availability.","lastTransitionTime":"2026-11-28T08:00:00Z"},
		{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":"ReplicaSet \"web-7c5\" has successfully progressed.","lastTransitionTime":"2026-11-28T07:00:00Z"}]}}`)
	owner := fmt.Sprintf(`"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":%q,"controller":true}]`, f.UID(t, deployments+"/web"))
	for i := range 2 {
		name := fmt.Sprintf("web-7c5-%d", i)
		f.Create(t, pods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"web"},%s},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"nginx:1.27","envFrom":[{"configMapRef":{"name":"web-settings"}}]}]}}`, name, owner))
		f.Patch(t, pods+"/"+name+"/status", `{"status":{"phase":"Pending","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"containers with unready status: [web]","lastTransitionTime":"2026-11-28T08:00:00Z"}],
			"containerStatuses":[{"name":"web","image":"nginx:1.27","imageID":"","ready":false,"restartCount":0,"state":{"waiting":{"reason":"CreateContainerConfigError","message":"configmap \"web-settings\" not found"}}}]}}`)
	}
	startKubelet(t, f)
	f.Create(t, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"},"spec":{"nodeName":"node","automountServiceAccountToken":false,"containers":[{"name":"web","image":"nginx:1.27"}]}}`)
	f.Create(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"admins"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"jane","apiGroup":"rbac.authorization.k8s.io"}]}`)
}

// dress sets the theme of a page.
func (p *Page) dress(theme string) {
	p.t.Helper()
	p.Do(chromedp.ActionFunc(func(ctx context.Context) error {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}).Do(ctx)
	}))
}

// No view breaks a rule of WCAG 2.2 AA that a program can check, in both themes, and on a phone. No view is wider
// than the window, also at 200 %.
func TestAccessibility(t *testing.T) {
	axe, err := axeCore()
	if err != nil {
		t.Skip(err)
	}
	f := Start(t)
	furnish(t, f)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Do(page.SetBypassCSP(true)) // the checker is no part of the page
	for _, theme := range []string{"light", "dark"} {
		p.dress(theme)
		for _, v := range views {
			if (strings.HasSuffix(v.name, "changes") || v.name == "terminal") && !f.Own {
				continue
			}
			p.Go("#/list/-/namespaces")
			p.Sees("● live")
			p.Go(v.address)
			p.Until(v.ready)
			Eval[any](p, axe+";null")
			broken := Eval[[]string](p, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join("; ")))`)
			for _, b := range broken {
				t.Errorf("%s in %s: %s", v.name, theme, b)
			}
			for _, width := range []int64{1280, 640, 360} { // a window, the same at 200 %, and a phone
				p.Do(chromedp.EmulateViewport(width, 800))
				if wide := Eval[int64](p, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%s is %d wide in a window of %d", v.name, wide, width)
				}
			}
			p.Do(chromedp.EmulateViewport(1280, 800))
			Eval[any](p, `(document.querySelector("dialog")?.close(), null)`)
		}
	}
}

// TestPictures draws the pictures of docs/console.md, with -pictures.
func TestPictures(t *testing.T) {
	if !*pictures {
		t.Skip("-pictures draws them")
	}
	f := Start(t)
	furnish(t, f)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Do(chromedp.EmulateViewport(1280, 800))
	for _, theme := range []string{"light", "dark"} {
		p.dress(theme)
		for _, v := range views {
			p.Go("#/list/-/namespaces")
			p.Sees("● live")
			p.Go(v.address)
			p.Until(v.ready)
			var picture []byte
			p.Do(chromedp.CaptureScreenshot(&picture))
			if err := os.WriteFile(filepath.Join("../../docs/console", v.name+"-"+theme+".png"), small(t, picture), 0o644); err != nil {
				t.Fatal(err)
			}
			Eval[any](p, `(document.querySelector("dialog")?.close(), null)`)
		}
	}
}

// small returns a picture with the 256 colours that occur most.
func small(t *testing.T, data []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.RGBA]int{} // of colours with five bits a channel, so that each hue has its place
	for y := range full.Bounds().Dy() {
		for x := range full.Bounds().Dx() {
			r, g, b, _ := full.At(x, y).RGBA()
			counts[color.RGBA{uint8(r>>8) &^ 7, uint8(g>>8) &^ 7, uint8(b>>8) &^ 7, 255}]++
		}
	}
	rough := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	var colours color.Palette
	for _, c := range rough[:min(len(rough), 255)] {
		colours = append(colours, color.RGBA{c.R | c.R>>5, c.G | c.G>>5, c.B | c.B>>5, 255})
	}
	out := image.NewPaletted(full.Bounds(), colours)
	draw.Draw(out, out.Bounds(), full, image.Point{}, draw.Src)
	var encoded bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, out); err != nil {
		t.Fatal(err)
	}
	return encoded.Bytes()
}

// axeCore returns the program of axe-core, a checker for accessibility, from the npm registry.
func axeCore() (string, error) {
	const (
		from = "https://registry.npmjs.org/axe-core/-/axe-core-4.10.3.tgz"
		sum  = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
	)
	a, err := (&http.Client{Timeout: patience}).Get(from)
	if err != nil {
		return "", fmt.Errorf("axe-core cannot be downloaded: %w", err)
	}
	defer a.Body.Close()
	hash := sha512.New()
	z, err := gzip.NewReader(io.TeeReader(a.Body, hash))
	if err != nil {
		return "", err
	}
	var program []byte
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if h.Name == "package/axe.min.js" {
			if program, err = io.ReadAll(r); err != nil {
				return "", err
			}
		}
	}
	if _, err := io.Copy(hash, a.Body); err != nil {
		return "", err
	}
	if got := base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != sum {
		return "", fmt.Errorf("axe-core has another checksum: %s", got)
	}
	return string(program), nil
}
