package migration

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// NewProgress returns a Progress: a bar if out is a terminal, otherwise a line for each change.
func NewProgress(out io.Writer) Progress {
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &bar{out: out, now: time.Now}
		}
	}
	return &lines{out: out}
}

func (s *State) done() int { return s.Total - s.Left }

// text describes a state.
func (s *State) text() string {
	text := s.Kind + ": "
	if s.Total > 0 {
		text += fmt.Sprintf("%d of %d objects are migrated", s.done(), s.Total)
	} else {
		text += "the migration is asked for"
	}
	if s.Trouble != "" {
		text += "; it waits: " + s.Trouble
	}
	return text
}

// result describes the end of a migration.
func (s *State) result(version string) string {
	if s.Total > 0 {
		return fmt.Sprintf("%s: all %d objects are stored in %s", s.Kind, s.Total, version)
	}
	return fmt.Sprintf("%s: all objects are stored in %s", s.Kind, version)
}

// lines is a Progress that writes lines.
type lines struct {
	out  io.Writer
	last string
}

func (l *lines) Show(s State) {
	if text := s.text(); text != l.last {
		l.last = text
		fmt.Fprintln(l.out, text)
	}
}

func (l *lines) End(text string) {
	if text != "" {
		fmt.Fprintln(l.out, text)
	}
}

// bar is a Progress that redraws one line of a terminal.
type bar struct {
	out   io.Writer
	now   func() time.Time
	kind  string
	began time.Time // time of the first state with a total
	first int       // number of migrated objects then
}

const (
	clear    = "\r\x1b[K"
	barWidth = 30
	// A longer line would wrap on some terminals, and could not be cleared.
	lineWidth = 79
)

func (b *bar) Show(s State) {
	if s.Kind != b.kind || s.Total > 0 && b.began.IsZero() {
		b.kind, b.began, b.first = s.Kind, time.Time{}, 0
		if s.Total > 0 {
			b.began, b.first = b.now(), s.done()
		}
	}
	text := s.text()
	if s.Total > 0 {
		full := barWidth * s.done() / s.Total
		text = fmt.Sprintf("%s [%s%s] %3d%%  %d/%d%s", s.Kind, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full),
			100*s.done()/s.Total, s.done(), s.Total, b.rest(&s))
		if s.Trouble != "" {
			text = s.text()
		}
	}
	if line := []rune(strings.ReplaceAll(text, "\n", " ")); len(line) > lineWidth {
		text = string(line[:lineWidth])
	}
	fmt.Fprint(b.out, clear, text)
}

// rest estimates the remaining time.
func (b *bar) rest(s *State) string {
	done := s.done() - b.first
	if done <= 0 || s.Left == 0 {
		return ""
	}
	took := b.now().Sub(b.began)
	return fmt.Sprintf("  %v left", (took * time.Duration(s.Left) / time.Duration(done)).Round(time.Second))
}

// End leaves the last state, if there is no text.
func (b *bar) End(text string) {
	if text != "" {
		fmt.Fprint(b.out, clear, text)
	}
	fmt.Fprintln(b.out)
}
