package catalog

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/offline/check"
)

// crd returns a definition whose spec has a field size with a description.
func crd(group, kind, description string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: %[2]ss, kind: %[3]s, shortNames: [%[2]sy]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, description: %[4]s}
              parts: {type: array, items: {type: object, properties: {color: {type: string}}}}
---
`, group, strings.ToLower(kind), kind, description)
}

func newCatalog(t *testing.T) *Catalog {
	t.Helper()
	return &Catalog{Folder: filepath.Join(t.TempDir(), "catalog"), Client: http.DefaultClient, Read: check.DefinitionTrees}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fails checks that an error has a text.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	c := newCatalog(t)
	write(t, "crds/b.yaml", crd("example.com", "Box", "one"))
	write(t, "crds/a.yaml", crd("example.com", "Apple", "one")+"a: b\n")
	write(t, "crds/template.yaml", "{{ a }}: [")
	e, err := c.Add(t.Context(), "shop", "crds", "")
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Definitions) != 2 || e.Definitions[0].Kind != "Apple" || !filepath.IsAbs(e.Source) {
		t.Errorf("entry %+v", e)
	}
	_, err = c.Add(t.Context(), "shop", "crds", "")
	fails(t, err, `the catalog has an entry "shop": anykind catalog update shop`)
	_, err = c.Add(t.Context(), "../shop", "crds", "")
	fails(t, err, "is no name of an entry")
	_, err = c.Add(t.Context(), "again", "crds", "sha256:0")
	fails(t, err, "has the digest "+e.Digest+", and not sha256:0: nothing is added")
	if same, err := c.Add(t.Context(), "same", "crds", e.Digest); err != nil || same.Digest != e.Digest {
		t.Errorf("%+v, %v", same, err)
	}
	_, err = c.Add(t.Context(), "none", "crds/template.yaml", "")
	fails(t, err, "crds/template.yaml has no CustomResourceDefinitions")
	_, err = c.Add(t.Context(), "none", "nothing", "")
	fails(t, err, "no such file")

	write(t, "crds/b.yaml", crd("example.com", "Box", "two"))
	old, now, err := c.Update(t.Context(), "shop")
	if err != nil || old.Digest != e.Digest || now.Digest == e.Digest || now.Definitions[0] != e.Definitions[0] {
		t.Errorf("%+v, %+v, %v", old, now, err)
	}
	if err := c.Remove("shop"); err != nil {
		t.Fatal(err)
	}
	fails(t, c.Remove("shop"), `the catalog has no entry "shop": anykind catalog list shows its entries`)
	if entries, err := c.Entries(); err != nil || len(entries) != 1 {
		t.Errorf("%+v, %v", entries, err)
	}
}

// A definition with other content than the pinned one is rejected, wherever it is used.
func TestChangedContent(t *testing.T) {
	c := newCatalog(t)
	source := filepath.Join(t.TempDir(), "a.yaml")
	write(t, source, crd("example.com", "Box", "one"))
	if _, err := c.Add(t.Context(), "shop", source, ""); err != nil {
		t.Fatal(err)
	}
	published, err := c.Published()
	if err != nil {
		t.Fatal(err)
	}
	if place, data, err := published("example.com", "Box"); err != nil || place != "catalog shop/boxs.example.com" || !strings.Contains(string(data), `"description":"one"`) {
		t.Errorf("%s, %s, %v", place, data, err)
	}
	if _, data, err := published("example.com", "Other"); data != nil || err != nil {
		t.Errorf("%s, %v", data, err)
	}
	write(t, filepath.Join(c.Folder, "shop", "boxs.example.com.json"), "{}")
	_, _, err = published("example.com", "Box")
	fails(t, err, "boxs.example.com of the catalog entry shop has changed: its digest is sha256:")
	_, err = c.Search("box")
	fails(t, err, "anykind catalog update shop fetches it again")
	if _, _, err := c.Update(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search("box"); err != nil {
		t.Error(err)
	}
}

func TestURL(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/crds.yaml":
			fmt.Fprint(w, crd("example.com", "Box", "one"))
		case "/moved.yaml":
			http.Redirect(w, r, "/crds.yaml", http.StatusFound)
		case "/insecure.yaml":
			http.Redirect(w, r, "http://example.com/crds.yaml", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for _, tt := range []struct{ path, want string }{
		{"/crds.yaml", ""}, {"/moved.yaml", ""},
		{"/insecure.yaml", "it redirects to http://example.com/crds.yaml"},
		{"/none.yaml", "the server says 404 Not Found"},
	} {
		c := newCatalog(t)
		c.Client = server.Client()
		e, err := c.Add(t.Context(), "shop", server.URL+tt.path, "")
		switch {
		case tt.want != "":
			fails(t, err, tt.want)
		case err != nil || e.Source != server.URL+tt.path || len(e.Definitions) != 1:
			t.Errorf("%+v, %v", e, err)
		}
	}
	_, err := newCatalog(t).Add(t.Context(), "shop", "http://example.com/crds.yaml", "")
	fails(t, err, "want a file, a folder, an https URL, or a repository of git")
}

func TestGit(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Chdir(t.TempDir())
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", "shop.git", "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write(t, "shop.git/config/crd/a.yaml", crd("example.com", "Box", "one"))
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "1")
	git("tag", "v1.0")
	first := git("rev-parse", "HEAD")
	write(t, "shop.git/config/crd/a.yaml", crd("example.com", "Apple", "one"))
	git("commit", "-q", "-a", "-m", "2")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"shop.git//config/crd?ref=v1.0", "file://" + here + "/shop.git//config/crd?ref=v1.0", "git+file://" + here + "/shop.git?ref=v1.0"} {
		e, err := newCatalog(t).Add(t.Context(), "shop", source, "")
		if err != nil || e.Commit != first || len(e.Definitions) != 1 || e.Definitions[0].Kind != "Box" {
			t.Errorf("%s: %+v, %v", source, e, err)
		}
	}
	c := newCatalog(t)
	if e, err := c.Add(t.Context(), "shop", "shop.git//config", ""); err != nil || e.Definitions[0].Kind != "Apple" {
		t.Errorf("%+v, %v", e, err)
	}
	_, err = c.Add(t.Context(), "none", "shop.git//config?ref=v9", "")
	fails(t, err, "v9")
	_, err = c.Add(t.Context(), "none", "shop.git//config?ref=--upload-pack=x", "")
	fails(t, err, "is not a revision")
	t.Chdir(t.TempDir()) // a local source is absolute
	if _, _, err := c.Update(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
}

func TestParseGit(t *testing.T) {
	for source, want := range map[string]string{
		"https://example.com/a.git":                  "https://example.com/a.git||",
		"https://example.com/a.git//b/c?ref=v1":      "https://example.com/a.git|b/c|v1",
		"https://example.com/a//b?ref=v1":            "https://example.com/a|b|v1",
		"git+https://example.com/a":                  "https://example.com/a||",
		"git@example.com:a/b.git//c":                 "git@example.com:a/b.git|c|",
		"ssh://git@example.com/a":                    "ssh://git@example.com/a||",
		"https://example.com/crds.yaml":              "",
		"https://example.com/crds.yaml?a=b":          "",
		"config/crd":                                 "",
		"https://example.com/a.git//../../etc?ref=a": "",
	} {
		got := ""
		if r, ok := parseGit(source); ok {
			got = r.url + "|" + filepath.ToSlash(r.path) + "|" + r.ref
		}
		if got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	c := newCatalog(t)
	source := filepath.Join(t.TempDir(), "a.yaml")
	write(t, source, crd("example.com", "Box", "How many things fit in.")+crd("fruit.example.org", "Apple", "The diameter."))
	if _, err := c.Add(t.Context(), "shop", source, ""); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"FRUIT":             "Apple",
		"box":               "Box",
		"appley":            "Apple",
		"diameter":          "Apple spec.size",
		"color":             "Apple spec.parts[].color Box spec.parts[].color",
		"spec.size":         "Apple spec.size Box spec.size",
		"Things":            "Box spec.size",
		"there is no match": "",
	} {
		matches, err := c.Search(word)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range matches {
			got = append(got, m.Kind)
			for _, f := range m.Fields {
				got = append(got, f.Path)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", word, got, want)
		}
	}
}

func TestDefault(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	if got, err := Default(); err != nil || got != filepath.Join(folder, "anykind", "catalog") {
		t.Errorf("%s, %v", got, err)
	}
}
