package watchcache_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

var update = flag.Bool("update", false, "rewrite the transcripts with what happens now")

// TestTranscripts runs the files of testdata. A line is a command, the indented lines below it are its
// output. Keys are those of crontabs. -update rewrites the output.
//
//	history N            before all: keep N events of the resource
//	put KEY VALUE        write, and wait until the cache has seen it
//	raw KEY VALUE        the same with the value as the whole object
//	delete KEY
//	elsewhere            write to another resource
//	compact REVISION     compact the store
//	restart              another cache of the same store
//	get KEY
//	list [REVISION]      a snapshot
//	scan PREFIX [AFTER]  part of the newest, with its length as counted
//	watch NAME PREFIX [AFTER]
//	next NAME            the next events, within a second
//	progress NAME
//	forget               the resource
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			synctest.Test(t, func(t *testing.T) { got = transcribe(t, string(want)) })
			if bytes.Equal(got, want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s says now:\n%s", file, got)
		})
	}
}

func transcribe(t *testing.T, script string) []byte {
	p := &player{watchers: map[string]*watchcache.Watcher{}}
	store := memkv.New(memkv.Options{})
	defer store.Close()
	defer func() { p.stop() }()
	var options watchcache.Options
	var out bytes.Buffer
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch {
		case words[0] == "history":
			options.HistoryEvents, _ = strconv.Atoi(words[1])
			continue
		case p.fixture == nil:
			p.fixture = run(t, store, options, nil)
		case words[0] == "restart":
			p.stop()
			p.fixture = run(t, store, options, nil)
			continue
		}
		said, err := p.do(t, words[0], words[1:])
		if err != nil {
			said = p.words(err)
		}
		for l := range strings.Lines(said) {
			fmt.Fprintf(&out, "  %s\n", strings.TrimRight(l, " \n"))
		}
	}
	return out.Bytes()
}

// player runs the commands of a transcript.
type player struct {
	*fixture
	watchers map[string]*watchcache.Watcher
}

func (p *player) words(err error) string {
	var compacted *kv.CompactedError
	var future *kv.FutureError
	switch {
	case errors.As(err, &compacted):
		return "COMPACTED " + compacted.Error()
	case errors.As(err, &future):
		return "FUTURE " + future.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "nothing yet"
	}
	return "ERROR " + err.Error()
}

func (p *player) do(t *testing.T, command string, args []string) (string, error) {
	args = append(args, "", "", "")
	number := func(i int) int64 { n, _ := strconv.ParseInt(args[i], 10, 64); return n }
	resource := p.cache.Resource(crontabs)
	switch command {
	case "put":
		return fmt.Sprint(p.put(crontabs+args[0], args[1])), nil
	case "raw":
		revision := write(t, p.store, crontabs+args[0], []byte(args[1]))
		p.synced(revision)
		return fmt.Sprint(revision), nil
	case "delete":
		return fmt.Sprint(p.del(crontabs + args[0])), nil
	case "elsewhere":
		return fmt.Sprint(p.put("/registry/secrets/a/b", "")), nil
	case "compact":
		return "", p.store.Compact(t.Context(), number(0))
	case "get":
		o, err := resource.Get(t.Context(), crontabs+args[0])
		return said(o), err
	case "list":
		s, err := resource.Snapshot(t.Context(), number(0))
		if err != nil {
			return "", err
		}
		return describe(s, crontabs), nil
	case "scan":
		return p.scan(args[0], args[1]), nil
	case "forget":
		p.cache.Forget(crontabs)
		return "", nil
	case "watch":
		w, err := resource.Watch(t.Context(), crontabs+strings.TrimPrefix(args[1], "."), number(2))
		p.watchers[args[0]] = w
		return "", err
	case "next":
		return p.next(t, args[0])
	case "progress":
		return fmt.Sprint(p.watchers[args[0]].Progress()), nil
	}
	return "", fmt.Errorf("no command %q", command)
}

func (p *player) scan(prefix, after string) string {
	s := p.snapshot(crontabs, kv.Latest)
	prefix = crontabs + strings.TrimPrefix(prefix, ".")
	if after != "" {
		after = crontabs + after
	}
	var names []string
	for o := range s.Scan(prefix, after) {
		names = append(names, strings.TrimPrefix(o.Key, crontabs))
	}
	return fmt.Sprintf("%d: %s", s.Len(prefix, after), strings.Join(names, " "))
}

func (p *player) next(t *testing.T, name string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	b, err := p.watchers[name].Next(ctx)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, e := range b.Events {
		fmt.Fprintln(&out, describeEvent(e, crontabs))
	}
	fmt.Fprintf(&out, "up to %d", b.Revision)
	return out.String(), nil
}
