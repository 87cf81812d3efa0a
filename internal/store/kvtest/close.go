package kvtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/anykind/anykind/internal/store/kv"
)

var closeTests = []test{
	{"everything after Close is ErrClosed", func(s *store) {
		r := s.create("/a", "1")
		if err := s.Close(); err != nil {
			s.Fatal(err)
		}
		_, err := s.Get(s.ctx, "/a", kv.Latest)
		s.expectError("get", err, kv.ErrClosed)
		_, err = s.List(s.ctx, kv.Range{})
		s.expectError("list", err, kv.ErrClosed)
		_, err = s.Commit(s.ctx, kv.Write{Key: "/b", Value: []byte("x")})
		s.expectError("commit", err, kv.ErrClosed)
		_, err = s.Revision(s.ctx)
		s.expectError("revision", err, kv.ErrClosed)
		s.expectError("compact", s.Compact(s.ctx, r), kv.ErrClosed)
		s.expectError("watch", s.watchError(s.ctx, "/", r), kv.ErrClosed)
		if err := s.Close(); err != nil {
			s.Errorf("closing again: %v", err)
		}
	}},
	{"Close ends watches", func(s *store) {
		after := s.revision()
		const watches = 5
		var started, ended sync.WaitGroup
		errs := make([]error, watches)
		for i := range watches {
			started.Add(1)
			ended.Go(func() {
				first := true
				for _, err := range s.watch(s.ctx, "/", after) {
					if first {
						started.Done()
						first = false
					}
					errs[i] = err
				}
			})
		}
		if s.except[LateProgress] {
			s.create("/a", "1")
		}
		started.Wait()
		if err := s.Close(); err != nil {
			s.Fatal(err)
		}
		ended.Wait()
		for i, err := range errs {
			s.expectError(fmt.Sprintf("watch %d", i), err, kv.ErrClosed)
		}
	}},
	{"Close does not wait for a consumer", func(s *store) {
		after := s.revision()
		s.create("/a", "1")
		next, stop := iter.Pull2(s.watch(s.ctx, "/", after))
		defer stop()
		if _, err, _ := next(); err != nil {
			s.Fatal(err)
		}
		// The consumer is in the middle of its batch now.
		if err := s.Close(); err != nil {
			s.Fatal(err)
		}
		var err error
		for err == nil {
			_, err, _ = next()
		}
		s.expectError("watch", err, kv.ErrClosed)
	}},
	{"Close while others write and read", func(s *store) {
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		var running, under sync.WaitGroup
		for i := range 8 {
			under.Add(1)
			running.Go(func() {
				r := s.create(fmt.Sprintf("/%d", i), "v")
				under.Done()
				for {
					next, err := s.Commit(ctx, kv.Write{Key: fmt.Sprintf("/%d", i), Value: []byte("w"), Expect: r})
					if err == nil {
						r = next
						_, err = s.Get(ctx, fmt.Sprintf("/%d", i), kv.Latest)
					}
					if err == nil {
						_, err = s.List(ctx, kv.Range{})
					}
					if err != nil {
						if !errors.Is(err, kv.ErrClosed) && !(s.except[UncertainWrites] && errors.Is(err, kv.ErrUncertain)) {
							s.Errorf("got error %v, want %v", err, kv.ErrClosed)
						}
						return
					}
				}
			})
		}
		under.Wait()
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(func() {
				if err := s.Close(); err != nil {
					s.Errorf("close: %v", err)
				}
			})
		}
		closing.Wait()
		running.Wait()
	}},
}
