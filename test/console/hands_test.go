package console

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const waiting = 20 * time.Second // for one answer

// A tool answers questions to a person with a keyboard and a mouse.
type tool interface {
	begin(t *testing.T)                          // opens the first page
	act(t *testing.T, step step)                 // takes a step
	shows(t *testing.T, patterns []string) error // waits until the visible text matches all patterns
	screen(t *testing.T) string                  // the visible text
}

// A step is an action, or a pause until a text is visible:
//
//	key Ctrl+K       presses keys together
//	type TEXT        types a text
//	enter TEXT       types a text and Enter
//	click TEXT       clicks an element with the text or name
//	fill NAME = TEXT selects the content of a field, and types another: two actions
//	choose NAME = TEXT opens a list of choices, and clicks one of them: two actions
//	replace A => B   selects a part of a text in an editor, and types another: two actions
//	scroll TEXT      scrolls until a text is visible
//	await PATTERN    waits; no action
type step struct{ verb, words string }

func stepOf(text string) step {
	verb, words, _ := strings.Cut(text, " ")
	return step{verb, words}
}

// actions returns the number of actions of a person.
func (s step) actions() int {
	switch s.verb {
	case "await":
		return 0
	case "fill", "choose", "replace":
		return 2
	}
	return 1
}

// A browser has a program that is a page.
type browser struct {
	*Page
	home  string // URL
	ready string // pattern of its first page
	fresh bool   // it begins without the settings of earlier questions
}

func (b *browser) begin(t *testing.T) {
	t.Helper()
	b.t = t
	if b.fresh {
		Eval[any](b.Page, `(localStorage.clear(), sessionStorage.clear(), null)`)
	}
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.home))
	if err := b.shows(t, []string{b.ready}); err != nil {
		t.Fatal(err)
	}
}

// reading defines functions of a page: seen returns the text that is visible in the window, in the order of reading, and
// found returns the element that a person clicks for a text.
const reading = `
	const seen = () => {
		const parts = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
		const put = (e, box, text) => {
			const x = Math.min(Math.max(box.left + 2, 0) + 1, box.right - 1), y = (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2;
			if (!box.width || !box.height || box.bottom < 0 || box.right < 0 || box.top > innerHeight || box.left > innerWidth) return;
			const top = document.elementFromPoint(x, y);
			if (top && (top.contains(e) || e.contains(top))) parts.push([Math.round(box.top / 6), box.left, text]);
		};
		for (let n; (n = walk.nextNode()); ) if (n.data.trim() && n.parentElement.tagName !== "OPTION") {
			range.selectNodeContents(n);
			put(n.parentElement, range.getBoundingClientRect(), n.data);
		}
		for (const e of document.querySelectorAll("input:not([type=checkbox]), textarea, select")) put(e, e.getBoundingClientRect(), e.selectedOptions?.[0]?.text ?? e.value);
		return parts.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(p => p[2]).join(" ").replace(/\s+/g, " ");
	};
	const named = name => {
		const is = e => {
			const box = e.getBoundingClientRect();
			return box.width && box.height && !e.disabled && [e.ariaLabel, e.placeholder, e.title, e.textContent.trim(), e.labels?.[0]?.textContent.trim()].includes(name);
		};
		if (/^[.[]/.test(name)) return [...document.querySelectorAll(name)];
		const some = "a, button, summary, input, textarea, select, label, td, th, li, p, span, div, b, code, small, [role]";
		const active = "a, button, summary, input, textarea, select, [role=button], [role=option], [role=menuitem], [role=treeitem]";
		const good = e => (e.closest("dialog[open], [role=dialog], [role=menu], [role=listbox]") ? 4 : 0) + (e.closest("[role=tab]") ? 2 : e.matches(active) || e.parentElement.closest(active) ? 1 : 0);
		return [...document.querySelectorAll(some)].filter(is).map((e, i) => [good(e), i, e]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).map(c => c[2]);
	};
	const found = name => named(name)[0];
	const holding = text => [...document.querySelectorAll("body *")].findLast(e => e.textContent.includes(text) && ![...e.children].some(c => c.textContent.includes(text)));
	const shown = text => {
		const e = holding(text);
		if (e) return e.scrollIntoView({block: "center"}), true;
		for (const editor of globalThis.monaco?.editor?.getEditors() ?? []) {
			const match = editor.getModel()?.findMatches(text)[0];
			if (match) return editor.revealRangeInCenter(match.range), true;
		}
		return false;
	};
	const replaced = (from, to) => { // in a textarea, or in Monaco
		const area = [...document.querySelectorAll("textarea")].find(e => e.value.includes(from) && !e.closest(".monaco-editor"));
		if (area) return area.value = area.value.replace(from, to), area.dispatchEvent(new Event("input", {bubbles: true})), true;
		for (const e of globalThis.monaco?.editor?.getEditors() ?? []) {
			const match = e.getModel()?.findMatches(from)[0];
			e.since ??= performance.now(); // its page does not listen to it at once
			if (match && performance.now() - e.since > 300) return e.executeEdits("", [{range: match.range, text: to}]), true;
		}
		return false;
	};`

// run evaluates a script with the functions of reading.
func run[T any](b *browser, script string) T {
	b.t.Helper()
	return Eval[T](b.Page, "(() => {"+reading+script+"})()")
}

func (b *browser) screen(t *testing.T) string {
	t.Helper()
	return run[string](b, "return seen()")
}

func (b *browser) shows(t *testing.T, patterns []string) error {
	t.Helper()
	list, err := json.Marshal(patterns)
	if err != nil {
		return err
	}
	ok := run[bool](b, fmt.Sprintf(`
		const all = %s.map(p => [p.startsWith("!"), new RegExp(p.replace(/^!/, ""))]), end = performance.now() + %d;
		return new Promise(done => {
			const look = () => {
				const text = seen();
				if (all.every(([not, p]) => p.test(text) !== not)) done(true);
				else performance.now() > end ? done(false) : setTimeout(look, 20);
			};
			look();
		});`, list, waiting.Milliseconds()))
	if !ok {
		return fmt.Errorf("%q is not on the page:\n%s", patterns, b.screen(t))
	}
	return nil
}

func (b *browser) act(t *testing.T, s step) {
	t.Helper()
	switch s.verb {
	case "key":
		b.press(s.words)
	case "type":
		if !run[bool](b, fmt.Sprintf(`const e = globalThis.monaco?.editor?.getEditors().find(e => e.hasTextFocus()); e?.executeEdits("", [{range: e.getSelection(), text: %q}]); return Boolean(e)`, s.words)) {
			b.Do(input.InsertText(s.words))
		}
	case "enter":
		b.Do(input.InsertText(s.words), chromedp.KeyEvent(kb.Enter))
	case "click":
		b.mouse(t, s.words, "")
	case "fill":
		name, text, _ := strings.Cut(s.words, " = ")
		b.mouse(t, name, "e.focus(), e.select()")
		b.Do(input.InsertText(text))
	case "choose":
		name, text, _ := strings.Cut(s.words, " = ")
		run[any](b, fmt.Sprintf(`const e = found(%q); e.value = [...e.options].find(o => o.text === %q).value; e.dispatchEvent(new Event("change", {bubbles: true})); return null`, name, text))
	case "scroll":
		b.Until(fmt.Sprintf(`(() => {`+reading+`return shown(%q) })()`, s.words))
	case "replace":
		from, to, _ := strings.Cut(s.words, " => ")
		to = strings.ReplaceAll(to, `\n`, "\n")
		b.Until(fmt.Sprintf(`(() => {`+reading+`return replaced(%q, %q)})()`, from, to))
	default:
		t.Fatalf("there is no step %q", s)
	}
}

// mouse clicks an element as soon as it stands still, and then runs a script with it.
func (b *browser) mouse(t *testing.T, name, then string) {
	t.Helper()
	at := run[[]float64](b, fmt.Sprintf(`
		const end = performance.now() + %d;
		return new Promise(done => {
			let last = "", still = 0;
			const look = () => {
				for (const e of named(%q)) {
					let box = e.getBoundingClientRect();
					if (box.top < 0 || box.bottom > innerHeight) e.scrollIntoView({block: "center"}), box = e.getBoundingClientRect();
					const x = box.left + box.width / 2, y = box.top + Math.min(box.height / 2, 12), top = document.elementFromPoint(x, y);
					if (!top || !(e.contains(top) || top.contains(e))) continue; // it is below another
					const now = [x, y].join();
					if (now !== last) still = 0;
					else if (++still === 3) return done([x, y]);
					last = now;
					break;
				}
				performance.now() > end ? done([]) : setTimeout(look, 20);
			};
			look();
		});`, waiting.Milliseconds(), name))
	if len(at) == 0 {
		t.Fatalf("there is no %q to click:\n%s", name, b.screen(t))
	}
	b.Do(chromedp.MouseClickXY(at[0], at[1]))
	if then != "" {
		run[any](b, fmt.Sprintf(`const e = found(%q); %s; return null`, name, then))
	}
}

// press presses a key, with others such as Ctrl.
func (b *browser) press(keys string) {
	b.t.Helper()
	all := strings.Split(keys, "+")
	key := all[len(all)-1]
	if named, ok := map[string]string{"Enter": kb.Enter, "End": kb.End, "Escape": kb.Escape}[key]; ok {
		b.Do(chromedp.KeyEvent(named))
		return
	}
	if len(all) == 1 {
		b.Do(input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key))
		return
	}
	down := input.DispatchKeyEvent(input.KeyRawDown).WithKey(strings.ToLower(key)).WithCode("Key" + key).WithWindowsVirtualKeyCode(int64(key[0])).WithModifiers(input.ModifierCtrl)
	up := *down
	up.Type = input.KeyUp
	b.Do(down, &up)
}

// newConsole opens the console.
func newConsole(t *testing.T, f *Fixture) *browser {
	t.Helper()
	p := Open(t, f.Console.Link(), chromedp.WindowSize(1600, 1000))
	p.Sees("What are you looking for?")
	return &browser{Page: p, home: f.Origin() + "/", ready: "What are you looking for"}
}

// newHeadlamp starts a server of Headlamp with its pages, and opens them.
func newHeadlamp(t *testing.T, f *Fixture, program, built string) *browser {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, dir := listener.Addr().String(), t.TempDir()
	_, port, _ := net.SplitHostPort(address)
	_ = listener.Close() // the program opens it again
	server := exec.CommandContext(t.Context(), program, "-kubeconfig", f.Kubeconfig, "-html-static-dir", built, "-listen-addr", "127.0.0.1", "-port", port, "-plugins-dir", dir, "-user-plugins-dir", dir)
	server.Env = append(os.Environ(), "HOME="+dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	awaitServer(t, "http://"+address)
	p := Open(t, "http://"+address, chromedp.WindowSize(1600, 1000))
	t.Cleanup(func() { p.Errors() }) // they are not ours
	p.Sees("All Clusters", "spare")  // a page that is left earlier leaves its database locked
	return &browser{Page: p, home: "http://" + address + "/c/anykind/", ready: "Overview.*Only warnings", fresh: true}
}

// awaitServer waits for the answer of a server.
func awaitServer(t *testing.T, url string) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(waiting); ; <-again.C {
		answer, err := http.Get(url) //nolint:noctx // the loop has a limit
		if err == nil {
			_ = answer.Body.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
