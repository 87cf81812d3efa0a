//go:build !race

// The race detector multiplies the processor time of the rules by ten.

package app

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Rejecting definitions and objects with expensive rules does not block other requests, and keeps no
// memory.
func TestRuleBombs(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	awaitStart(t, a)
	c := client(t, a, admin(t, a))
	post := func(path, body string, code int, says string) {
		t.Helper()
		if got, answer := ask(t, c, "POST", a.URL()+path, "", body); got != code || !strings.Contains(answer, says) {
			t.Errorf("%d %.300s, want %d %s", got, answer, code, says)
		}
	}
	// The estimated cost is just below the limits: of each rule, and of all rules together.
	post(definitions, ruled("Bomb", `{"foo":{"type":"array","items":{"type":"integer"}}}`, slices.Repeat([]string{"self.foo.all(x, x == x)"}, 12)...), 201, "")
	post(definitions, ruled("Small", `{"x":{"type":"integer"}}`, "self.x > 0"), 201, "")
	bomb := `{"apiVersion":"example.com/v1","kind":"Bomb","metadata":{"name":"a"},"foo":[` + strings.Repeat("1,", 150_000) + `1]}`
	small := func(i int) {
		post("/apis/example.com/v1/smalls?dryRun=All", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Small","metadata":{"name":"s%d"},"x":1}`, i), 201, "")
	}
	nested := strings.Repeat("[1, 2, 3].all(x, ", 12) + "true" + strings.Repeat(")", 12)
	list := "[" + strings.Repeat("1, ", 30_000) + "1].all(x, x > 0)"
	compile := ruled("Wrong", `{"x":{"type":"integer"}}`, nested, list, strings.Repeat("(", 40_000), strings.Repeat("!", 60_001)+"true", "self.x."+strings.Repeat("a.", 40_000)+"b > 0", "self.y > 0")

	alone := measure(100, small)
	heap := heapInUse()
	bombs := make(chan struct{})
	go func() {
		defer close(bombs)
		post("/apis/example.com/v1/bombs", bomb, 422, "no further validation rules will be run")
		post(definitions, compile, 422, "undefined field 'y'")
	}()
	var beside []time.Duration
	for done := false; !done; {
		select {
		case <-bombs:
			done = true
		default:
			beside = append(beside, measure(1, small)...)
		}
	}
	t.Logf("%d requests beside 2 bombs, the median took %.1f times as long as alone", len(beside), median(beside)/median(alone))
	if len(beside) < 20 {
		t.Errorf("%d others were served while 2 bombs were", len(beside))
	}
	if grown := heapInUse() - heap; grown > 64<<20 {
		t.Errorf("%d MiB more are in use", grown>>20)
	}
}

func measure(n int, f func(i int)) []time.Duration {
	var out []time.Duration
	for i := range n {
		began := time.Now()
		f(i)
		out = append(out, time.Since(began))
	}
	return out
}

func median(all []time.Duration) float64 {
	all = slices.Sorted(slices.Values(all))
	return float64(all[len(all)/2])
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
