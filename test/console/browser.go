// Package console has the tests of the console: its pages in a headless Chromium, against a running server.
//
// The tests do as users do: they click, type, and read the page. A page that logs an error, throws an exception or breaks
// its Content-Security-Policy fails its test. Programs that are missing, such as Chromium, are installed as root on Debian.
package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience limits one step of a user, unless a page has more of it.
const patience = time.Minute

// chromium returns the path of a Chromium.
var chromium = sync.OnceValues(func() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return installed("chromium", "chromium")
})

// installed returns the path of a program. A missing program is installed on Debian.
func installed(program, from string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return "", fmt.Errorf("there is no %s in PATH", program)
	}
	apt := "apt-get -o Acquire::http::Timeout=20 -o Acquire::Retries=1 "
	one := apt + "install -y --no-install-recommends " + from
	install := exec.Command("sh", "-c", one+" || ("+apt+"update && "+one+")")
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("installing %s: %w\n%s", from, err, out)
	}
	return exec.LookPath(program)
}

// A Page is a tab of a browser.
type Page struct {
	Patience time.Duration // of one step

	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string // of the console of the page
}

// maxStarts limits the starts of a browser. On a busy machine, Chromium sometimes ends before it listens.
const maxStarts = 3

// Open opens a URL in a new browser with a profile of its own.
func Open(t *testing.T, url string, options ...chromedp.ExecAllocatorOption) *Page {
	t.Helper()
	path, err := chromium()
	if err != nil {
		t.Skip(err)
	}
	all := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(patience))
	p := &Page{Patience: patience, t: t}
	for starts := 1; ; starts++ {
		ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(all, options...)...)
		t.Cleanup(cancel)
		p.ctx, cancel = chromedp.NewContext(ctx)
		t.Cleanup(cancel)
		chromedp.ListenTarget(p.ctx, p.listen)
		err := chromedp.Run(p.ctx) // starts the browser; it lives as long as the context
		if err == nil {
			break
		}
		if starts == maxStarts {
			t.Fatalf("starting Chromium: %v", err)
		}
		cancel()
	}
	t.Cleanup(func() {
		for _, e := range p.Errors() {
			t.Errorf("the page reports: %s", e)
		}
	})
	p.Do(chromedp.Navigate(url))
	return p
}

func (p *Page) listen(event any) {
	var message string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		message = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.APITypeError {
			return
		}
		for _, a := range e.Args {
			message += string(a.Value) + a.Description + " "
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level != cdplog.LevelError || e.Entry.Source == cdplog.SourceNetwork {
			return // the page shows errors of requests itself
		}
		message = e.Entry.Text
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, message)
}

// Errors returns what the page has logged as errors, and forgets it.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.errors
	p.errors = nil
	return all
}

// Do runs actions, and fails the test if they fail.
func (p *Page) Do(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.Patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page shows:\n%s", err, p.Shown())
	}
}

// Eval evaluates JavaScript, and waits for the result of a promise.
func Eval[T any](p *Page, script string) (out T) {
	p.t.Helper()
	p.Do(chromedp.Evaluate(script, &out, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return out
}

// Shown returns the text of the page.
func (p *Page) Shown() (out string) {
	ctx, cancel := context.WithTimeout(p.ctx, p.Patience)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Evaluate(`[...document.querySelectorAll("#main, dialog, #toasts")].map(e => e.innerText).join("\n---\n")`, &out)); err != nil {
		return err.Error()
	}
	return out
}

// Until waits for a condition in JavaScript. A page that navigates meanwhile is asked again.
func (p *Page) Until(condition string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, p.Patience)
	defer cancel()
	var ok bool
	script := fmt.Sprintf(`new Promise(done => { const look = () => { let ok = false; try { ok = Boolean(%s) } catch {} ok ? done(true) : setTimeout(look, 20) }; look() })`, condition)
	for {
		err := chromedp.Run(ctx, chromedp.Evaluate(script, &ok, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
		if err == nil {
			return
		}
		if !navigated(err) {
			p.t.Fatalf("waiting for %s: %v; the page shows:\n%s", condition, err, p.Shown())
		}
	}
}

// navigated reports an evaluation that ended because its page navigated. The DevTools Protocol has no codes for these errors.
func navigated(err error) bool {
	var e *cdproto.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, text := range []string{"Inspected target navigated", "Execution context was destroyed", "Cannot find context"} {
		if strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// Sees waits for texts on the page.
func (p *Page) Sees(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		p.Until(fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").includes(%q)`, text))
	}
}

// Go opens a view by its address.
func (p *Page) Go(hash string) {
	p.t.Helper()
	Eval[any](p, fmt.Sprintf(`(location.hash = %q, null)`, hash))
}

// Click clicks the first element of a selector, or the first button or link with a text.
func (p *Page) Click(what string) {
	p.t.Helper()
	find := fmt.Sprintf(`(() => { try { const e = document.querySelector(%[1]q); if (e) return e } catch {} return [...document.querySelectorAll("dialog[open] button, button, a, summary, [role=option]")].find(e => e.innerText.trim() === %[1]q && e.offsetParent) })()`, what)
	p.Until(find)
	Eval[any](p, find+".click()")
}

// Tab opens a tab of an object.
func (p *Page) Tab(title string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("[role=tab]")].find(e => e.innerText === %q)`, title)
	p.Until(find)
	Eval[any](p, find+".click()")
}

// Type writes a text into an input, as if it were typed.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	Eval[any](p, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})) })()`, selector, text))
}

// Key presses a key.
func (p *Page) Key(key string, modifiers ...string) {
	p.t.Helper()
	flags := ""
	for _, m := range modifiers {
		flags += ", " + m + "Key: true"
	}
	Eval[any](p, fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true%s})), null`, key, flags))
}

// Keys types a text on the keyboard; a newline is Enter.
func (p *Page) Keys(text string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(text))
}

// Rows returns the rows in view of a list, a line each, without the column for selection.
func (p *Page) Rows() []string {
	p.t.Helper()
	text := Eval[string](p, `[...document.querySelectorAll(".space .row:not([hidden])")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(r => [...r.children].slice(1).map(c => c.textContent).join(" ")).join("\n")`)
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
