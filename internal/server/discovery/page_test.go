package discovery

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// The Accept header of browsers.
const acceptPage = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// A browser gets a page with links to everything; other clients get the paths as in Kubernetes.
func TestPageForPeople(t *testing.T) {
	h, _ := newHandler(t, Options{Build: "v1.2.3", Paths: []string{"/version", "/livez", "/metrics"}})
	w := ask(h, "GET", "/", acceptPage)
	body := w.Body.String()
	if got := w.Header().Get("Content-Type"); w.Code != 200 || got != "text/html; charset=utf-8" {
		t.Fatalf("%d %s", w.Code, got)
	}
	for _, want := range []string{
		"v1.2.3", "Kubernetes " + kubernetes.Name, `href="/metrics"`, `href="/debug/"`, `href="/openapi/v3"`, `href="/?group=disc.anykind.dev"`,
		`<td>Kite</td><td>kites, ki, kt</td><td>namespaces</td>`, `<a href="/apis/disc.anykind.dev/v1/kites">v1</a> <small>/status /scale</small>`,
		`<td>Sky</td><td>skies</td><td>cluster</td>`, `href="/api/v1/configmaps"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "A Kite flies.") {
		t.Error("the page of everything has made a model")
	}
	for _, l := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		path, _, _ := strings.Cut(l[1], "?")
		if h.Handles(path) {
			if w := ask(h, "GET", l[1], acceptPage); w.Code != 200 && w.Code != 406 {
				t.Errorf("%s answered %d", l[1], w.Code)
			}
		}
	}
	for _, accept := range []string{"", "Accept: */*", "Accept: application/json", "Accept: application/json, text/html", "Accept: text/*"} {
		if got := ask(h, "GET", "/", accept).Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%q: %s", accept, got)
		}
	}
}

func TestPageOfAGroup(t *testing.T) {
	h, c := newHandler(t, Options{})
	c.Set().Lookup("disc.anykind.dev", "skies").Versions[0].SelectableFields = map[string]func(map[string]any) string{"hue": nil}
	body := ask(h, "GET", "/?group=disc.anykind.dev", acceptPage).Body.String()
	for _, want := range []string{"A Kite flies.", "field selectors:</small> hue", "<title>anykind: disc.anykind.dev</title>"} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "ConfigMap") {
		t.Error("the page of one group has others")
	}
	if body := ask(h, "GET", "/?group=", acceptPage).Body.String(); !strings.Contains(body, "ConfigMap") || strings.Contains(body, "Kite") {
		t.Errorf("the core group:\n%s", body)
	}
	if w := ask(h, "GET", "/?group=none", acceptPage); w.Code != 404 {
		t.Errorf("no such group: %d", w.Code)
	}
}

// Text of a definition is shown verbatim, and escaped.
func TestPageEscapes(t *testing.T) {
	const evil = `</p><script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	d := custom(t, strings.Replace(skies, "        type: object\n", "        description: '"+strings.ReplaceAll(evil, "'", "''")+"'\n        type: object\n", 1))
	v := d.Versions[0]
	v.Columns = func() []view.Column { return []view.Column{{Name: evil, Description: evil}} }
	v.Deprecated, v.DeprecationWarning = true, evil
	var c resource.Catalog
	c.Swap(resource.NewSet([]*resource.Definition{d}))
	w := ask(New(&c, Options{Build: evil}), "GET", "/?group=disc.anykind.dev", acceptPage)
	body := w.Body.String()
	if strings.Count(body, "&lt;script&gt;alert(1)") != 5 {
		t.Errorf("it is not all there:\n%s", body)
	}
	tags := xml.NewDecoder(strings.NewReader(strings.Replace(body, "<!DOCTYPE html>", "", 1)))
	tags.Strict, tags.AutoClose, tags.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := tags.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if e.Name.Local == "script" || e.Name.Local == "img" {
				t.Errorf("there is a %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("a %s has %s", e.Name.Local, a.Name.Local)
				}
			}
		}
	}
	if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
		t.Errorf("Content-Security-Policy %q", got)
	}
}
