package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// A found is a difference between the responses to one step.
type found struct {
	judge.Difference
	judge.Signature
	step int // the index
}

// An attempt is the run of a sequence on both servers.
type attempt struct {
	pair   *servers.Pair
	audits *audits // nil to compare responses
	known  func(judge.Signature) bool
	scope  string
	seq    wire.Sequence
	sides  [2]side
	found  []found
	over   bool // later differences may follow from an earlier one, and do not count
	sent   map[string]int
	equal  []int // the steps whose audit events are compared

	forgotten int // revisions that one of the servers had compacted
}

// A side is one of the two servers in an attempt.
type side struct {
	client  *wire.Client
	server  *judge.Server
	answers map[int]*wire.Answer // by the ID of the step
	latest  string               // the revision of the last write
}

// try sends a sequence to both servers and returns the differences between the responses. It stops at
// the first unknown difference, or when a request succeeds on only one server: later differences may
// follow from it.
func try(ctx context.Context, pair *servers.Pair, audits *audits, known func(judge.Signature) bool, seq wire.Sequence, scope string) *attempt {
	a := &attempt{pair: pair, audits: audits, known: known, scope: scope, seq: seq, sent: map[string]int{}}
	for i, c := range []*wire.Client{pair.Theirs, pair.Ours} {
		a.sides[i] = side{client: c, server: judge.NewServer(scope), answers: map[int]*wire.Answer{}}
	}
	defer a.clean(ctx)
	a.both(func(n int, s *side) {
		s.answers[0] = pair.Elsewhere[n]
		s.server.Normal(s.answers[0])
	})
	for i := range seq.Steps {
		if a.step(ctx, i); a.over || ctx.Err() != nil {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
	case a.audits != nil:
		a.events(ctx)
	case !a.over:
		a.watches()
	}
	return a
}

// step sends one step to both and compares.
func (a *attempt) step(ctx context.Context, i int) {
	step := a.seq.Steps[i]
	a.sent[step.Kind]++
	if a.audits != nil {
		step = audited(step, a.auditID(i))
	}
	var normal [2]*judge.Normal
	a.both(func(n int, s *side) {
		filled := step.For(a.scope, s.answers)
		s.server.Sent(filled)
		s.catchUp(ctx, filled)
		answer := s.client.Do(ctx, filled)
		s.wrote(filled, answer)
		switch {
		case answer.Code >= 300:
		case strings.HasPrefix(step.Kind, "define "):
			servers.Settle(ctx, s.client, answer, enough)
		case strings.HasPrefix(step.Resource, "flowschemas.") && step.Method != http.MethodGet:
			servers.SettleSchema(ctx, s.client, answer, time.Second)
		}
		s.answers[step.ID] = answer
		normal[n] = s.server.Normal(answer)
	})
	if step.Around && normal[0].Code == http.StatusOK && normal[1].Code == http.StatusOK {
		normal[0].Body, normal[1].Body = nil, nil
	}
	switch {
	case ctx.Err() != nil:
	case a.audits == nil:
		a.add(i, judge.Compare(normal[0], normal[1]))
	case len(judge.Compare(normal[0], normal[1])) == 0:
		a.equal = append(a.equal, i)
	}
	a.over = a.over || done(normal[0]) != done(normal[1])
}

// done reports whether a request succeeded.
func done(n *judge.Normal) bool { return n.Failed == "" && n.Code < 300 }

func (a *attempt) both(do func(n int, s *side)) {
	var done sync.WaitGroup
	for n := range a.sides {
		done.Go(func() { do(n, &a.sides[n]) })
	}
	done.Wait()
}

func (a *attempt) add(i int, differences []judge.Difference) {
	for _, d := range differences {
		if d.Place == judge.Forgotten {
			a.forgotten++
			continue
		}
		f := found{d, d.Signature(a.seq.Steps[i]), i}
		a.found = append(a.found, f)
		a.over = a.over || !a.known(f.Signature)
	}
}

// quiet is the time without an event after which a watch counts as complete, if both have equally many
// events. enough is the maximal delay of one behind the other.
const (
	quiet  = 150 * time.Millisecond
	enough = 4 * time.Second
)

// watches reads the watches of both at the same path and compares their events.
func (a *attempt) watches() {
	for i, step := range a.seq.Steps {
		their, our := a.sides[0].answers[step.ID], a.sides[1].answers[step.ID]
		if their == nil || our == nil || their.Stream == nil || our.Stream == nil {
			continue
		}
		await(their.Stream, our.Stream)
		a.add(i, judge.Compare(a.sides[0].server.Events(their), a.sides[1].server.Events(our)))
	}
}

// await returns once two streams have had equally many events for a while, or once one falls behind
// for too long.
func await(a, b *wire.Stream) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	began := time.Now()
	since, last := began, [2]int{-1, -1}
	for now := range look.C {
		n, endedA := a.Len()
		m, endedB := b.Len()
		if last != [2]int{n, m} {
			since, last = now, [2]int{n, m}
		}
		if n == m && now.Sub(since) > quiet && endedA == endedB || now.Sub(began) > enough {
			return
		}
	}
}

// clean ends the watches and sends the cleanup steps of the sequence.
func (a *attempt) clean(ctx context.Context) {
	a.both(func(_ int, s *side) {
		s.endWatches()
		for _, step := range a.seq.Cleanup {
			s.client.Do(ctx, step.For(a.scope, nil))
		}
	})
}

// endWatches ends the watches of the sequence.
func (s *side) endWatches() {
	for _, answer := range s.answers {
		if answer.Stream != nil {
			answer.Stream.Close()
		}
	}
}
