package migration

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// NewProgress returns one that shows a bar if out is a terminal, and otherwise writes
// a line whenever something is new.
func NewProgress(out io.Writer) Progress {
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &bar{out: out, now: time.Now}
		}
	}
	return &lines{out: out}
}

func (s *State) done() int { return s.Total - s.Left }

// text is a state in words.
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

// result is how a migration ended, in words.
func (s *State) result(version string) string {
	if s.Total > 0 {
		return fmt.Sprintf("%s: all %d objects are stored in %s", s.Kind, s.Total, version)
	}
	return fmt.Sprintf("%s: all objects are stored in %s", s.Kind, version)
}

// lines writes lines.
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

// bar draws over one line of a terminal.
type bar struct {
	out   io.Writer
	now   func() time.Time
	kind  string
	began time.Time // when the first object was seen to be left
	first int       // how many were migrated then
}

const (
	clear    = "\r\x1b[K"
	barWidth = 30
	// A longer line would be two on some terminals, and could not be cleared.
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

// rest is how long the rest takes if it goes on as until now.
func (b *bar) rest(s *State) string {
	done := s.done() - b.first
	if done <= 0 || s.Left == 0 {
		return ""
	}
	took := b.now().Sub(b.began)
	return fmt.Sprintf("  %v left", (took * time.Duration(s.Left) / time.Duration(done)).Round(time.Second))
}

// End leaves what was shown last, where there is nothing else to say.
func (b *bar) End(text string) {
	if text != "" {
		fmt.Fprint(b.out, clear, text)
	}
	fmt.Fprintln(b.out)
}
