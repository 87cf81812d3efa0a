package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// ruled returns a CustomResourceDefinition with properties and validation rules for its objects.
func ruled(kind, properties string, rules ...string) string {
	var all []string
	for _, r := range rules {
		all = append(all, fmt.Sprintf(`{"rule":%q}`, r))
	}
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":%[1]q,"kind":%q},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":%s,"x-kubernetes-validations":[%s]}}}]}}`, plural, kind, properties, strings.Join(all, ","))
}

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

// The log has the reason why a definition with expensive rules is rejected, and bounds that would be
// sufficient.
func TestCostsAreLogged(t *testing.T) {
	var log bytes.Buffer
	a := start(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := client(t, a, admin(t, a))
	properties := func(maxItems, maxLength string) string {
		return fmt.Sprintf(`{"foo":{"type":"array"%s,"items":{"type":"string"%s},"x-kubernetes-validations":[{"rule":"self.all(x, x.contains('a string'))"}]}}`, maxItems, maxLength)
	}
	code, answer := ask(t, c, "POST", a.URL()+definitions, "", ruled("Text", properties("", ""), "true"))
	if code != 422 || !strings.Contains(answer, "estimated rule cost exceeds budget by factor of more than 100x") {
		t.Errorf("%d %s", code, answer)
	}
	code, answer = ask(t, c, "POST", a.URL()+definitions, "", ruled("Text", properties(`,"maxItems":4096`, `,"maxLength":4096`), "true"))
	if code != 201 {
		t.Errorf("with the bounds that the log names: %d %s", code, answer)
	}
	stop(t, a)
	const foo = "spec.validation.openAPIV3Schema.properties[foo]"
	for _, want := range []string{
		`msg="a rule of a CustomResourceDefinition costs too much" name=texts.example.com path=` + foo + `.x-kubernetes-validations[0].rule`,
		`="` + foo + `: maxItems: 4096"`, `="` + foo + `.items: maxLength: 4096"`, "limit=10000000",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, log.String())
		}
	}
}
