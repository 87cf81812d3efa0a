package cluster

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

// maxEvent limits an event of a watch. API servers accept objects of 3 MiB.
const maxEvent = 16 << 20

// An Event is a change that a watch reports.
type Event struct {
	Type   watch.EventType
	Object json.RawMessage
}

// Events decodes the events of a watch.
type Events struct {
	from    bounded
	decoder *json.Decoder
}

// NewEvents returns the events of the body of a watch.
func NewEvents(body io.Reader) *Events {
	e := &Events{from: bounded{Reader: body}}
	e.decoder = json.NewDecoder(&e.from)
	return e
}

// Next returns the next event. The error is io.EOF at the end of the watch. An event beyond maxEvent is
// an error, so that another server cannot fill the memory of this one.
func (e *Events) Next() (Event, error) {
	e.from.left = maxEvent
	var next Event
	err := e.decoder.Decode(&next)
	return next, err
}

// A bounded reader fails after a number of bytes.
type bounded struct {
	io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("a watch event is larger than %d bytes", maxEvent)
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
