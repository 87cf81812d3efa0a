package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// markup runs a script if a page takes it for HTML.
const markup = `<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>`

// Texts of objects stay texts, wherever a page shows them: in names of columns, descriptions, values, conditions, events,
// errors of the server, and search results.
func TestMarkupInObjects(t *testing.T) {
	f := Start(t)
	definition := strings.NewReplacer("Size of the widget.", markup, `"name":"Phase"`, `"name":"<b>Phase</b>"`, "a failed widget is small", markup, `"enum":["Running","Pending","Failed"],"default":"Pending"`, `"maxLength":500`).Replace(widgets)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	f.Create(t, "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","annotations":{"a":"`+markup+`"},"finalizers":["example.com/`+"x"+`"]},"spec":{"size":1,"phase":"`+markup+`"}}`)
	f.Create(t, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"a","image":"nginx"}]}}`)
	f.Patch(t, pods+"/p/status", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"X","message":"`+markup+`"}]}}`)
	f.Create(t, "/api/v1/namespaces/default/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"type":"Warning","reason":"X","message":"`+markup+`","involvedObject":{"kind":"Pod","name":"p","namespace":"default","uid":"`+f.UID(t, pods+"/p")+`"}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	const shown = `<img src=x onerror="window.pwned=1">`
	for _, view := range []string{"#/list/example.com/widgets", "#/object/example.com/widgets/default/w", "#/object/example.com/widgets/default/w?tab=yaml", "#/object/example.com/widgets/default/w?tab=changes", "#/kind/example.com/widgets?", "#/object/-/pods/default/p", "#/object/-/pods/default/p?tab=changes", "#/list/-/events", "#/changes"} {
		if strings.Contains(view, "tab=changes") && !f.Own {
			continue
		}
		p.Go(view)
		switch {
		case strings.HasPrefix(view, "#/kind"):
			p.Type("[aria-label='Filter fields']", "size")
			p.Sees(shown)
		case strings.Contains(view, "w?tab=yaml"):
			p.Sees(strings.ReplaceAll(shown, `"`, `\"`)) // in quotes of YAML
		case strings.HasSuffix(view, "w?tab=changes"), view == "#/changes":
			p.Until(`document.querySelector(".entry, .feed")`)
		case strings.HasSuffix(view, "p?tab=changes"):
			p.Sees("status.conditions")
		default:
			p.Sees(shown)
		}
	}
	p.Go("#/list/example.com/widgets?label=%3Cimg%20src%3Dx%20onerror%3D%22window.pwned%3D1%22%3E")
	p.Sees("The server rejects the list.")
	p.Go("#/%3Cimg%20src%3Dx%20onerror%3D%22window.pwned%3D1%22%3E")
	p.Sees("there is no such page")
	p.Errors() // of that page
	if Eval[bool](p, `window.pwned === 1 || document.querySelectorAll("#main img, #main script").length > 0`) {
		t.Error("a text of an object became markup")
	}
}

// Another site cannot read the pages, send requests, or show them in a frame.
func TestForeignSite(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("target", "1"))
	origin := f.Origin()
	user := Open(t, f.Console.Link()) // a session exists, as the attack needs
	user.Sees("What are you looking for?")
	site := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>another site</title>")
	})}
	url := listen(t, site)
	path := origin + "/contexts/" + Eval[string](user, `fetch("/console/config", {headers: {Authorization: "Bearer " + localStorage.token}}).then(r => r.json()).then(c => c.contexts[0].name)`) + configMaps
	user.Do(chromedp.Navigate(url))
	for name, attack := range map[string]string{
		"read":         `fetch(%q).then(r => r.text(), () => "blocked")`,
		"opaque read":  `fetch(%q, {mode: "no-cors"}).then(r => r.text(), () => "blocked")`,
		"write":        `fetch(%q, {method: "POST", mode: "no-cors", body: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"evil"}}'}).then(r => r.text(), () => "blocked")`,
		"with a token": `fetch(%q, {headers: {Authorization: "Bearer x"}}).then(r => r.text(), () => "blocked")`,
		"script":       `new Promise(done => { const s = document.createElement("script"); s.src = %q; s.onload = () => done("loaded"); s.onerror = () => done("blocked"); document.head.append(s) })`,
	} {
		target := path
		if name == "script" {
			target = origin + "/console/main.js"
		}
		if got := Eval[string](user, fmt.Sprintf(attack, target)); got != "blocked" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	framed := Eval[string](user, fmt.Sprintf(`new Promise(done => { const f = document.createElement("iframe"); f.src = %q; f.onload = () => { try { done(f.contentDocument ? "blank" : "blocked") } catch { done("blocked") } }; document.body.append(f) })`, origin+"/console/"))
	if framed == "readable" {
		t.Errorf("the frame is %s", framed)
	}
	user.Errors() // the browser says that it blocked the requests
	if err := f.Do(t.Context(), http.MethodGet, configMaps+"/evil", nil, nil); err == nil {
		t.Error("another site created an object")
	}
	// The user is still there.
	user.Do(chromedp.Navigate(origin + "/console/"))
	user.Sees("What are you looking for?")
}

// A browser without a session sees no object, and is told how to get one. Logs lose the sequences of terminals.
func TestWithoutSession(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Origin()+"/console/")
	p.Sees("Sign in", "open the link that anykind console prints")
	p.Do(chromedp.Navigate(f.Origin() + "/console/#secret=WRONG"))
	p.Do(chromedp.Reload())
	p.Sees("this link has been used")
	clean := Eval[string](p, `import("/console/logs.js").then(l => l.clean("a\u001b[31mred\u001b[0m\u001b]0;title\u0007\u001b]52;c;ZXZpbA==\u001b\\b\u0008\u009b1mc\r\n"))`)
	if clean != "aredb1mc\n" && clean != "aredb1mc\r\n" {
		t.Errorf("%q", clean)
	}
}

// Large objects do not stop a page: many lines, a long line, deep nesting.
func TestLargeObjects(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("long", strings.Repeat("x: y # \\\" - ", 80_000)), configMap("many", strings.Repeat("line\n", 20_000)))
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/-/configmaps/default/long?tab=yaml")
	p.Sees("name: long")
	p.Go("#/object/-/configmaps/default/many?tab=yaml")
	p.Until(`document.querySelectorAll(".lines tr").length > 20000`)
	p.Click("Edit")
	p.Until(`document.querySelector("textarea")?.value.length > 100000`)
	p.Type("textarea", "a: &a [1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n")
	p.Until(`document.querySelector(".errors li.bad")`)
}
