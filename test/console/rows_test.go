package console

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var (
	rows    = flag.Int("rows", 20_000, "objects of TestManyRows")
	kinds   = flag.Int("kinds", 50, "other kinds of TestManyRows")
	watched = flag.Duration("watched", 3*time.Second, "time for which TestManyRows changes objects and scrolls")
)

// all calls do with the numbers below n, several at a time.
func all(t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	next := make(chan int)
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	for range 32 {
		wg.Go(func() {
			for i := range next {
				if err := do(t.Context(), i); err != nil {
					once.Do(func() { failed = err })
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	if wg.Wait(); failed != nil {
		t.Fatal(failed)
	}
}

// A list of very many objects has elements for those in view only, and shows each of 500 changes a second. At the end it
// has the same rows as the server. Figures of frames and memory are printed, since they depend on the machine.
func TestManyRows(t *testing.T) {
	if testing.Short() {
		*rows = min(*rows, 5000)
	}
	f := Start(t)
	all(t, *kinds, func(ctx context.Context, i int) error {
		return f.create(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", rawJSON(strings.NewReplacer("widgets", fmt.Sprintf("others%d", i), "widget", fmt.Sprintf("other%d", i), "Widget", fmt.Sprintf("Other%d", i)).Replace(widgets)))
	})
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	const path = "/apis/example.com/v1/namespaces/default/widgets"
	all(t, *rows, func(ctx context.Context, i int) error {
		return f.create(ctx, path, rawJSON(fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%06d"},"spec":{"size":%d,"phase":%q}}`, i, i%800+1, []string{"Running", "Pending", "Failed"}[i%3])))
	})
	p := Open(t, f.Console.Link(), chromedp.Flag("enable-precise-memory-info", true))
	p.Sees("What are you looking for?")
	paint := Eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	opened := time.Now()
	p.Go("#/list/example.com/widgets?sort=Size")
	p.Until(`document.querySelector(".count")`)
	p.Patience = 10*time.Minute + *watched
	p.Until(fmt.Sprintf(`document.querySelector(".live.live").innerText.includes("live") && document.querySelector(".count").innerText.replaceAll(",", "") === "%d"`, *rows))
	loaded := time.Since(opened)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	changed := 0
	writer.Go(func() {
		tick := time.NewTicker(time.Second / 500)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				name := fmt.Sprintf("w%06d", changed*7919%*rows)
				if err := f.Do(t.Context(), http.MethodPatch, path+"/"+name, rawJSON(fmt.Sprintf(`{"spec":{"size":%d}}`, changed%800+1)), nil); err != nil {
					t.Error(err)
					return
				}
				changed++
			}
		}
	})
	seen := Eval[struct{ Frames, Memory []float64 }](p, fmt.Sprintf(`new Promise(done => {
		const g = document.querySelector(".grid"), frames = [], memory = [], begin = performance.now(), time = %d;
		let last = begin;
		const frame = now => {
			frames.push(now - last);
			last = now;
			g.scrollTop = g.scrollTop + 997 + g.clientHeight > g.scrollHeight ? 0 : g.scrollTop + 997;
			if (now - begin > memory.length * time / 6) memory.push(Math.round(performance.memory.usedJSHeapSize / 1e6));
			now - begin < time ? requestAnimationFrame(frame) : done({frames: frames.sort((a, b) => a - b), memory});
		};
		requestAnimationFrame(frame);
	})`, watched.Milliseconds()))
	close(stop)
	writer.Wait()
	if n := Eval[int](p, `document.querySelectorAll(".space .row").length`); n > 100 {
		t.Errorf("%d rows have elements", n)
	}
	sameRows(t, f, p, path)
	frames := seen.Frames
	t.Logf("%d rows, %d kinds: first paint %.0f ms, all rows after %v, %d changes, %d frames: median %.1f ms, 95 %% %.1f ms, 99 %% %.1f ms; heap %v MB", *rows, *kinds, paint, loaded.Round(time.Millisecond), changed, len(frames),
		frames[len(frames)/2], frames[len(frames)*95/100], frames[len(frames)*99/100], seen.Memory)
}

// sameRows compares rows at several places with the objects of the server, by size and uid.
func sameRows(t *testing.T, f *Fixture, p *Page, path string) {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID string }
			Spec     struct{ Size int }
		}
	}
	if err := f.Do(t.Context(), http.MethodGet, path, nil, &list); err != nil {
		t.Fatal(err)
	}
	sort.Slice(list.Items, func(i, j int) bool {
		a, b := list.Items[i], list.Items[j]
		return a.Spec.Size < b.Spec.Size || a.Spec.Size == b.Spec.Size && a.Metadata.UID < b.Metadata.UID
	})
	for part := range 10 {
		i := part * (len(list.Items) - 1) / 9
		o := list.Items[i]
		p.Until(fmt.Sprintf(`(document.querySelector(".grid").scrollTop = %d, [...document.querySelectorAll(".space .row:not([hidden])")].some(r => r.ariaRowIndex === "%d" && r.children[2].innerText === %q && r.children[3].innerText === "%d"))`, i*30, i+2, o.Metadata.Name, o.Spec.Size))
	}
}
