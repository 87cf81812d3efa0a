package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A bar shows at a terminal how much is done, and elsewhere nothing.
type bar struct {
	out  io.Writer // nil if it is no terminal
	what string

	mu    sync.Mutex
	shown time.Time
}

// Of a bar.
const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

func newBar(out io.Writer, what string) *bar {
	b := &bar{what: what, shown: time.Now()}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			b.out = out
		}
	}
	return b
}

// show shows how much is done, not too often. If nobody knows how much there is, all is 0.
func (b *bar) show(done, all int) {
	if b.out == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.shown) < barEvery {
		return
	}
	b.shown = time.Now()
	if all == 0 {
		fmt.Fprintf(b.out, "\r\x1b[K%s %d", b.what, done)
		return
	}
	full := barWidth * done / all
	fmt.Fprintf(b.out, "\r\x1b[K[%-*s] %s %d of %d", barWidth, strings.Repeat("=", full), b.what, done, all)
}

// clear takes the bar away.
func (b *bar) clear() {
	if b.out != nil {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
