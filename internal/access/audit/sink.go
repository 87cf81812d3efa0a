package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Modes of a Delivery.
const (
	// Batch collects events, and writes them while requests go on.
	Batch = "batch"
	// Blocking makes a request wait until its event is written, or cannot be.
	Blocking = "blocking"
	// BlockingStrict is Blocking, and rejects a request whose event RequestReceived cannot be written.
	BlockingStrict = "blocking-strict"
)

// Modes are all modes of a Delivery.
var Modes = []string{Batch, Blocking, BlockingStrict}

// A Delivery is the way of events to a sink.
type Delivery struct {
	Mode string

	// These are for the mode Batch.
	BufferSize   int           // events that may wait; further ones are lost
	MaxBatchSize int           // events of a batch
	MaxBatchWait time.Duration // of the first event of a batch
	Throttle     bool
	ThrottleQPS  float32 // batches a second
	Burst        int     // batches at once after a pause

	Truncate     bool  // large events lose their objects
	MaxEventSize int64 // bytes
	MaxBatchSum  int64 // bytes of the events of a batch
}

const (
	// maxWaiting limits the bytes of events that wait for a sink: events are of any size, so a limit of
	// their number does not bound the memory.
	maxWaiting = 128 << 20
	// maxSending limits the batches that are sent at the same time.
	maxSending = 16
	// closeTimeout limits the wait for batches when the server ends.
	closeTimeout = 10 * time.Second
)

func (d *Delivery) validate(plugin string) error {
	var errs []error
	if !slices.Contains(Modes, d.Mode) {
		errs = append(errs, fmt.Errorf("invalid audit %s mode %s, allowed modes are %q", plugin, d.Mode, strings.Join(Modes, ",")))
	}
	if d.Mode == Batch {
		switch {
		case d.BufferSize <= 0:
			errs = append(errs, fmt.Errorf("invalid audit batch %s buffer size %v, must be a positive number", plugin, d.BufferSize))
		case d.MaxBatchSize <= 0:
			errs = append(errs, fmt.Errorf("invalid audit batch %s max batch size %v, must be a positive number", plugin, d.MaxBatchSize))
		case d.Throttle && d.ThrottleQPS <= 0:
			errs = append(errs, fmt.Errorf("invalid audit batch %s throttle QPS %v, must be a positive number", plugin, d.ThrottleQPS))
		case d.Throttle && d.Burst <= 0:
			errs = append(errs, fmt.Errorf("invalid audit batch %s throttle burst %v, must be a positive number", plugin, d.Burst))
		}
	}
	switch {
	case d.MaxEventSize <= 0:
		errs = append(errs, fmt.Errorf("invalid audit truncate %s max event size %v, must be a positive number", plugin, d.MaxEventSize))
	case d.MaxBatchSum < d.MaxEventSize:
		errs = append(errs, fmt.Errorf("invalid audit truncate %s max batch size %v, must be greater than max event size (%v)", plugin, d.MaxBatchSum, d.MaxEventSize))
	}
	return errors.Join(errs...)
}

// A writer writes encoded events.
type writer interface {
	// write returns the number of events that it could not write, with an error.
	write(events [][]byte) (lost int, err error)
	close()
}

// A sink delivers the events of a Log to a writer.
type sink struct {
	Delivery
	plugin string
	legacy bool
	to     writer
	log    *Log

	most    int64       // bytes of events that may wait
	queue   chan []byte // nil without batches
	waiting atomic.Int64
	sending chan struct{} // places for batches that are sent at the same time
	batches sync.WaitGroup
	stopped chan struct{} // closed when no event is accepted any more
	done    chan struct{} // closed when the queue is empty
	once    sync.Once
}

func (l *Log) add(plugin string, to writer, d Delivery, legacy bool) {
	s := &sink{Delivery: d, plugin: plugin, legacy: legacy, to: to, log: l, most: maxWaiting, stopped: make(chan struct{})}
	if d.Mode == Batch {
		s.queue, s.done, s.sending = make(chan []byte, d.BufferSize), make(chan struct{}), make(chan struct{}, maxSending)
		go s.collect()
	}
	l.sinks = append(l.sinks, s)
}

var (
	errLarge   = errors.New("event is too large even after truncating")
	errFull    = errors.New("audit buffer queue blocked")
	errStopped = errors.New("audit backend shut down")
)

// deliver delivers an event. It returns false if the event could not be written and must be.
func (s *sink) deliver(e entry) bool {
	if s.Truncate && e.size() > s.MaxEventSize {
		short, err := e.withoutObjects()
		if err == nil && short.size() > s.MaxEventSize {
			err = errLarge
		}
		if err != nil {
			s.log.failed("truncate", err, 1)
			return true
		}
		e = short
	}
	data := s.render(&e)
	if s.queue != nil {
		if err := s.enqueue(data); err != nil {
			s.log.failed("buffered", err, 1)
		}
		return true
	}
	if lost, err := s.to.write([][]byte{data}); err != nil {
		s.log.failed(s.plugin, err, lost)
		return s.Mode != BlockingStrict
	}
	return true
}

func (s *sink) render(e *entry) []byte {
	switch {
	case s.legacy:
		return e.appendText(nil)
	case s.plugin == "log":
		return e.appendLine(nil)
	default:
		return e.json
	}
}

func (s *sink) enqueue(data []byte) error {
	select {
	case <-s.stopped:
		return errStopped
	default:
	}
	if s.waiting.Add(int64(len(data))) > s.most {
		s.waiting.Add(-int64(len(data)))
		return errFull
	}
	select {
	case s.queue <- data:
		return nil
	default:
		s.waiting.Add(-int64(len(data)))
		return errFull
	}
}

// collect sends batches until the sink is stopped and the queue is empty.
func (s *sink) collect() {
	defer close(s.done)
	limit := limiter{rate: float64(s.ThrottleQPS), burst: float64(s.Burst), tokens: float64(s.Burst)}
	for {
		batch := s.next()
		if len(batch) == 0 {
			return
		}
		if s.Throttle {
			s.pause(limit.take(time.Now()))
		}
		s.sending <- struct{}{}
		s.batches.Go(func() {
			defer func() { <-s.sending }()
			size := 0
			for _, data := range batch {
				size += len(data)
			}
			defer s.waiting.Add(-int64(size))
			if lost, err := s.to.write(batch); err != nil {
				s.log.failed(s.plugin, err, lost)
			}
		})
		if s.plugin == "log" { // lines keep their order
			s.batches.Wait()
		}
	}
}

// pause waits, but not while the sink is being closed.
func (s *sink) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.stopped:
	}
}

// next returns the next batch. It is empty when the sink is stopped and no event waits.
func (s *sink) next() (batch [][]byte) {
	select {
	case data := <-s.queue:
		batch = append(batch, data)
	case <-s.stopped:
		select {
		case data := <-s.queue:
			batch = append(batch, data)
		default:
			return nil
		}
	}
	t := time.NewTimer(s.MaxBatchWait)
	defer t.Stop()
	for len(batch) < s.MaxBatchSize {
		select {
		case data := <-s.queue:
			batch = append(batch, data)
			continue
		default:
		}
		select {
		case data := <-s.queue:
			batch = append(batch, data)
		case <-t.C:
			return batch
		case <-s.stopped:
			return batch
		}
	}
	return batch
}

// close delivers the events that wait, within closeTimeout, and closes the writer.
func (s *sink) close() {
	s.once.Do(func() {
		close(s.stopped)
		if s.queue != nil {
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				<-s.done
				s.batches.Wait()
			}()
			t := time.NewTimer(closeTimeout)
			defer t.Stop()
			select {
			case <-sent:
			case <-t.C:
				s.log.log.Error("audit events are lost", "plugin", s.plugin, "events", len(s.queue), "error", errStopped)
			}
		}
		s.to.close()
	})
}

// A limiter limits a rate. Unused permissions add up to a burst.
type limiter struct {
	rate, burst, tokens float64
	last                time.Time
}

// take returns the time to wait for the next permission.
func (l *limiter) take(now time.Time) time.Duration {
	if !l.last.IsZero() {
		l.tokens = min(l.burst, l.tokens+now.Sub(l.last).Seconds()*l.rate)
	}
	l.last = now
	l.tokens--
	if l.tokens >= 0 {
		return 0
	}
	return time.Duration(-l.tokens / l.rate * float64(time.Second))
}
