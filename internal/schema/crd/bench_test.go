package crd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// many stores n CustomResourceDefinitions like those of a provider, with a status, and returns the
// store and their total size.
func many(b *testing.B, n int) (*memkv.Store, int64) {
	b.Helper()
	made := start(b)
	var templates []string
	for _, text := range provider(b) {
		t, err := made.try(made.crds(""), text)
		if err != nil {
			b.Fatal(err)
		}
		object.SetMetaString(t, "resourceVersion", "")
		templates = append(templates, string(object.AppendJSON(nil, t)))
	}
	store := memkv.New(memkv.Options{})
	b.Cleanup(func() { store.Close() })
	var size int64
	for i := range n {
		template := templates[i%len(templates)]
		was := between(template, `"group":"`, `"`)
		group := fmt.Sprintf("g%d.%s", i/len(templates), was)
		data := strings.ReplaceAll(template, was, group)
		name := between(data[strings.LastIndex(data, `"plural":"`):], `"plural":"`, `"`) + "." + group
		size += int64(len(data))
		if _, err := store.Commit(b.Context(), kv.Write{Key: crd.Prefix + name, Value: []byte(data)}); err != nil {
			b.Fatal(name, err)
		}
	}
	made.stop()
	return store, size
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// BenchmarkStart measures the time until 2,000 stored definitions are served. The rest is the time of
// the cache to load them.
func BenchmarkStart(b *testing.B) {
	store, size := many(b, 2000)
	b.SetBytes(size)
	for b.Loop() {
		s := startOver(b, store)
		if n := s.catalog.Set().Len(); n != 2001 {
			b.Fatalf("%d kinds are served", n)
		}
		s.stop()
	}
}

// BenchmarkIdle measures the memory of 1,000 unused definitions besides their stored bytes, which the
// cache shares.
func BenchmarkIdle(b *testing.B) {
	const n = 1000
	store, _ := many(b, n)
	empty := startOver(b, memkv.New(memkv.Options{}))
	for b.Loop() {
		goroutines := runtime.NumGoroutine()
		before := heap()
		s := startOver(b, store)
		b.ReportMetric(float64(heap()-before)/n, "B/crd")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		s.stop()
	}
	empty.stop()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkDefine measures the time from the create of a definition until it is served, beside 2,000
// others.
func BenchmarkDefine(b *testing.B) {
	store, _ := many(b, 2000)
	for _, size := range []string{"small", "large"} {
		b.Run(size, func(b *testing.B) {
			text := widgets
			if size == "large" {
				for _, definition := range provider(b) {
					if len(definition) > len(text) {
						text = definition
					}
				}
			}
			s := startOver(b, store)
			t := tree(b, text)
			b.SetBytes(int64(len(object.AppendJSON(nil, t))))
			i := 0
			for b.Loop() {
				next := object.CloneTree(t)
				group := fmt.Sprintf("%s%d.example.net", size, i)
				next["spec"].(object.Tree)["group"] = group
				plural := next["spec"].(object.Tree)["names"].(object.Tree)["plural"].(string)
				object.SetMetaString(next, "name", plural+"."+group)
				if _, err := s.create(s.crds(""), next); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
