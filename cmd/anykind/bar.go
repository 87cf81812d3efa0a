package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A bar shows progress at a terminal. Elsewhere it shows nothing.
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

// show shows the progress, at most every barEvery. all is 0 if unknown.
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

// clear removes the bar.
func (b *bar) clear() {
	if b.out != nil {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
