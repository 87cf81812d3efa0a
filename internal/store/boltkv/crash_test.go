package boltkv_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
)

const (
	// crashRoundsVariable sets how often the crash test kills its child.
	crashRoundsVariable = "ANYKIND_CRASH_ROUNDS"
	crashWriters        = 8
)

// crashChild writes until it is killed. Each writer has keys of its own. It prints each intent and
// each acknowledgement on standard output. A line is one system call, so the output is complete even
// after the kill.
func crashChild(dir string) {
	s, err := boltkv.Open(dir, boltkv.Options{Fatal: func(err error) { crashFailed(err) }})
	if err != nil {
		crashFailed(err)
	}
	ctx := context.Background()
	for writer := range crashWriters {
		go crashWriter(ctx, s, writer)
	}
	for {
		// Compactions run continuously, so that kills hit them too.
		newest, err := s.Revision(ctx)
		if err == nil {
			err = s.Compact(ctx, max(1, newest-300))
		}
		if err != nil {
			crashFailed(err)
		}
		for r := newest; r < newest+100 && err == nil; r, err = s.Revision(ctx) {
		}
	}
}

func crashFailed(err error) {
	fmt.Printf("failed %v\n", err)
	os.Exit(1)
}

func crashWriter(ctx context.Context, s *boltkv.Store, writer int) {
	at := map[string]int64{}
	page, err := s.List(ctx, kv.Range{Prefix: fmt.Sprintf("/%d/", writer)})
	if err != nil {
		crashFailed(err)
	}
	for _, r := range page.Records {
		at[r.Key] = r.Revision
	}
	for {
		w := kv.Write{Key: fmt.Sprintf("/%d/%d", writer, rand.IntN(20))}
		w.Expect = at[w.Key]
		if w.Expect == kv.Absent || rand.IntN(5) > 0 {
			w.Value = crashValue(rand.Uint64())
		}
		fmt.Printf("try %d %s %s\n", writer, w.Key, digest(w.Value))
		revision, err := s.Commit(ctx, w)
		if err != nil {
			crashFailed(err)
		}
		fmt.Printf("did %d %s %s %d\n", writer, w.Key, digest(w.Value), revision)
		if at[w.Key] = revision; w.Value == nil {
			at[w.Key] = kv.Absent
		}
	}
}

// crashValue is bytes of some length that any part of is no such value.
func crashValue(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	size := r.IntN(3000)
	if r.IntN(20) == 0 {
		size = r.IntN(40000)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func digest(value []byte) string {
	if value == nil {
		return "deleted"
	}
	return fmt.Sprintf("%08x.%d", crc32.ChecksumIEEE(value), len(value))
}

// A crashChecker collects the output of the children over all rounds.
type crashChecker struct {
	*testing.T
	state   map[string]string // the value of each key, "digest@revision"
	history map[int64]string  // the acknowledged write of each revision, "key digest"
	pending map[string][2]string
	newest  int64 // found after the last kill
	acked   int64 // the greatest one acknowledged since
}

// hear handles a line of the child.
func (c *crashChecker) hear(line string) {
	f := strings.Fields(line)
	switch {
	case len(f) == 4 && f[0] == "try":
		c.pending[f[1]] = [2]string{f[2], f[3]}
	case len(f) == 5 && f[0] == "did":
		revision, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil {
			c.Fatalf("the child says %q", line)
		}
		if was, ok := c.history[revision]; ok {
			c.Errorf("revision %d was used for %s and now for %s", revision, was, f[2])
		}
		if revision <= c.newest {
			c.Errorf("revision %d was acknowledged when the store had been at %d", revision, c.newest)
		}
		c.history[revision] = f[2] + " " + f[3]
		c.acked = max(c.acked, revision)
		delete(c.pending, f[1])
		c.set(f[2], f[3], revision)
	default:
		c.Errorf("the child says %q", line)
	}
}

func (c *crashChecker) set(key, digest string, revision int64) {
	c.state[key] = fmt.Sprintf("%s@%d", digest, revision)
	if digest == "deleted" {
		delete(c.state, key)
	}
}

// check compares a store opened after a kill with the collected output.
func (c *crashChecker) check(s *boltkv.Store) {
	c.Helper()
	newest, err := s.Revision(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	if newest < c.acked || newest < c.newest {
		c.Fatalf("the store is at revision %d, but %d was acknowledged", newest, max(c.acked, c.newest))
	}
	c.newest, c.acked = newest, 0
	found := c.replay(s, newest)
	c.resolvePending(found)
	if !maps.Equal(found, c.state) {
		for _, key := range slices.Sorted(maps.Keys(c.state)) {
			if found[key] != c.state[key] {
				c.Errorf("key %s is %q, should be %q", key, found[key], c.state[key])
			}
		}
		for key := range found {
			if _, ok := c.state[key]; !ok {
				c.Errorf("key %s is %q, should not be", key, found[key])
			}
		}
	}
}

// replay reads the oldest state and every event since, checks them against what
// was acknowledged and against the newest state, and returns that.
func (c *crashChecker) replay(s *boltkv.Store, newest int64) map[string]string {
	c.Helper()
	oldest := int64(1)
	_, err := s.Get(c.Context(), "/", 1)
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) {
		oldest = compacted.Oldest
	}
	state := c.list(s, oldest)
	last := oldest
	for batch, err := range kvtest.CheckWatch(c.Errorf, "/", oldest, s.Watch(c.Context(), "/", oldest)) {
		if err != nil {
			c.Fatalf("replaying from %d: %v", last, err)
		}
		for _, e := range batch.Events {
			if e.Revision != last+1 {
				c.Fatalf("after revision %d comes %d", last, e.Revision)
			}
			last = e.Revision
			if acked, ok := c.history[last]; ok && acked != e.Key+" "+digest(e.Value) {
				c.Errorf("revision %d is %s %s, acknowledged was %s", last, e.Key, digest(e.Value), acked)
			}
			if prev := fmt.Sprintf("%s@%d", digest(e.Prev), e.PrevRevision); e.Prev != nil && state[e.Key] != prev {
				c.Errorf("revision %d replaced %s, but %s was %s", last, prev, e.Key, state[e.Key])
			}
			delete(state, e.Key)
			if e.Value != nil {
				state[e.Key] = fmt.Sprintf("%s@%d", digest(e.Value), last)
			}
		}
		if last == newest {
			break
		}
	}
	if now := c.list(s, kv.Latest); !maps.Equal(now, state) {
		c.Errorf("the events lead to %v, the store has %v", state, now)
	}
	return state
}

func (c *crashChecker) list(s *boltkv.Store, revision int64) map[string]string {
	c.Helper()
	page, err := s.List(c.Context(), kv.Range{Revision: revision})
	if err != nil {
		c.Fatal(err)
	}
	state := map[string]string{}
	for _, r := range page.Records {
		state[r.Key] = fmt.Sprintf("%s@%d", digest(r.Value), r.Revision)
	}
	return state
}

// resolvePending finds the outcome of unacknowledged writes: each was stored as intended, or not at
// all.
func (c *crashChecker) resolvePending(found map[string]string) {
	for _, p := range c.pending {
		key, wanted := p[0], p[1]
		at, has := found[key]
		if at == c.state[key] {
			continue
		}
		if got, _, _ := strings.Cut(at, "@"); got == wanted || (!has && wanted == "deleted") {
			delete(c.state, key)
			if has {
				c.state[key] = at
			}
		}
	}
	clear(c.pending)
}

// TestCrash repeatedly kills a process that writes, and checks its store: acknowledged writes are
// present, records are complete, no revision is used twice, and the next start needs no repair.
func TestCrash(t *testing.T) {
	rounds := 5
	if testing.Short() {
		rounds = 3
	}
	if n, err := strconv.Atoi(os.Getenv(crashRoundsVariable)); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	c := &crashChecker{
		T: t, state: map[string]string{}, history: map[int64]string{}, pending: map[string][2]string{},
	}
	for round := range rounds {
		acked := c.killOne(dir, rand.IntN(3000))
		s, err := boltkv.Open(dir, boltkv.Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		c.check(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %d acknowledged, then at revision %d with %d keys", round, acked, c.newest, len(c.state))
		if t.Failed() {
			return
		}
	}
}

// killOne starts a child and kills it after some lines; with none, while it still opens the store. It
// returns the number of acknowledged writes.
func (c *crashChecker) killOne(dir string, lines int) (acked int) {
	exe, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), crashDirVariable+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := child.Start(); err != nil {
		c.Fatal(err)
	}
	reader := bufio.NewReader(out)
	var kill sync.Once
	for n := 0; ; n++ {
		if n >= lines {
			kill.Do(func() { _ = child.Process.Kill() })
		}
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.Fatal(err)
		}
		if strings.HasPrefix(line, "did") {
			acked++
		}
		c.hear(line)
	}
	_ = child.Wait()
	if child.ProcessState.Success() || child.ProcessState.Exited() {
		c.Fatalf("the child ended by itself: %v", child.ProcessState)
	}
	return acked
}

// TestCrashWhileCreating opens stores as left by a crash at different points of their creation.
func TestCrashWhileCreating(t *testing.T) {
	for _, left := range [][]byte{{}, make([]byte, 100), bytes.Repeat([]byte{1}, 40000)} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/"+boltkv.FileName+".new", left, 0o600); err != nil {
			t.Fatal(err)
		}
		s := openIn(t, dir)
		if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("v")}); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
