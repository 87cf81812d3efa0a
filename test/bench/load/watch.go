package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// An Audience is a set of concurrent watches. It counts events, and does not parse them: an event is a
// line.
type Audience struct {
	conns  []*Conn
	counts [][]int64 // for each connection, the events of each of its streams
	seen   atomic.Int64
	waits  atomic.Int64 // number of events for which Wait waits
	all    chan struct{}
	failed chan error
	group  sync.WaitGroup
	ended  atomic.Bool
}

// Streams is the number of watches that share a connection.
const Streams = 50

// Watch opens n watches of a path, and returns once the server has accepted all of them. It counts
// events from then on.
func Watch(ctx context.Context, t Target, path string, n int) (*Audience, error) {
	a := &Audience{all: make(chan struct{}, 1), failed: make(chan error, 1)}
	var opening sync.WaitGroup
	var mu sync.Mutex
	var first error
	places := make(chan int)
	for range 8 {
		opening.Go(func() {
			for streams := range places {
				c, counts, err := a.open(ctx, t, path, streams)
				mu.Lock()
				if err != nil {
					first = errors.Join(first, err)
				} else {
					a.conns, a.counts = append(a.conns, c), append(a.counts, counts)
				}
				mu.Unlock()
			}
		})
	}
	for left := n; left > 0; left -= Streams {
		places <- min(left, Streams)
	}
	close(places)
	opening.Wait()
	if first != nil {
		a.Close()
		return nil, first
	}
	for i := range a.conns {
		a.group.Go(func() { a.follow(a.conns[i], a.counts[i]) })
	}
	return a, nil
}

// open sends the requests of one connection and reads until the server has accepted all.
func (a *Audience) open(ctx context.Context, t Target, path string, streams int) (*Conn, []int64, error) {
	c, err := Dial(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	for range streams {
		if _, err := c.send(&Request{Method: "GET", Path: path}); err != nil {
			c.Close()
			return nil, nil, err
		}
	}
	counts := make([]int64, streams)
	for accepted := 0; accepted < streams; {
		f, err := c.read()
		if err != nil {
			c.Close()
			return nil, nil, err
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			if c.status != 200 || f.StreamEnded() {
				c.Close()
				return nil, nil, fmt.Errorf("a watch was answered with %d", c.status)
			}
			accepted++
		case *http2.DataFrame:
			a.count(f, counts)
		case *http2.RSTStreamFrame:
			c.Close()
			return nil, nil, fmt.Errorf("a watch was given up: %v", f.ErrCode)
		}
	}
	return c, counts, nil
}

func (a *Audience) count(f *http2.DataFrame, counts []int64) {
	n := int64(bytes.Count(f.Data(), []byte{'\n'}))
	if n == 0 {
		return
	}
	counts[(f.StreamID-1)/2] += n
	now := a.seen.Add(n)
	if want := a.waits.Load(); want > 0 && now >= want {
		select {
		case a.all <- struct{}{}:
		default:
		}
	}
}

func (a *Audience) follow(c *Conn, counts []int64) {
	for {
		f, err := c.read()
		if err == nil {
			switch f := f.(type) {
			case *http2.DataFrame:
				a.count(f, counts)
				if f.StreamEnded() {
					err = errors.New("a watch ended")
				}
			case *http2.RSTStreamFrame:
				err = fmt.Errorf("a watch was given up: %v", f.ErrCode)
			}
		}
		if err != nil {
			if !a.ended.Load() {
				select {
				case a.failed <- err:
				default:
				}
			}
			return
		}
	}
}

// Seen returns the number of events so far.
func (a *Audience) Seen() int64 { return a.seen.Load() }

// Wait returns once all watches together have seen that many events. It fails if a watch ends earlier.
func (a *Audience) Wait(ctx context.Context, events int64, timeout time.Duration) error {
	a.waits.Store(events)
	late := time.NewTimer(timeout)
	defer late.Stop()
	for a.seen.Load() < events {
		select {
		case <-a.all:
		case err := <-a.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("%d events of %d were seen", a.seen.Load(), events)
		}
	}
	return nil
}

// Close ends all watches, and returns the lowest and the highest number of events that one of them has
// seen.
func (a *Audience) Close() (least, most int64) {
	a.ended.Store(true)
	for _, c := range a.conns {
		c.Close()
	}
	a.group.Wait()
	least = -1
	for _, counts := range a.counts {
		for _, n := range counts {
			if most = max(most, n); least < 0 || n < least {
				least = n
			}
		}
	}
	return max(least, 0), most
}
