package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// memory is a File.
type memory struct {
	data   []byte
	synced int
	fails  error
}

func (m *memory) WriteAt(data []byte, at int64) (int, error) { return copy(m.data[at:], data), m.fails }
func (m *memory) Sync() error                                { m.synced++; return nil }
func (m *memory) Allocate(_, to int64) error {
	m.data = append(m.data, make([]byte, to-int64(len(m.data)))...)
	return nil
}

// write appends frames of consecutive positions, whose content is their number and some bytes.
func write(t *testing.T, j *Journal, first int64, sizes ...int) {
	t.Helper()
	for i, size := range sizes {
		at := first + int64(i)
		frame := append(Begin(nil), content(at, size)...)
		if err := j.Append(frame, at, at, first-1); err != nil {
			t.Fatal(err)
		}
	}
}

func content(at int64, size int) []byte {
	return append(fmt.Appendf(nil, "%d ", at), bytes.Repeat([]byte{byte(at)}, size)...)
}

func contents(frames []Frame) (got []string) {
	for _, f := range frames {
		got = append(got, fmt.Sprintf("%d-%d %.8s", f.First, f.Last, f.Content))
	}
	return got
}

func files(a, b *memory) []Content { return []Content{{"a", a.data}, {"b", b.data}} }

// TestTurns fills both files several times. All frames that are not filed are found.
func TestTurns(t *testing.T) {
	a, b := &memory{}, &memory{}
	j, err := New(7, 8<<10, a, b)
	if err != nil {
		t.Fatal(err)
	}
	for first := int64(1); first < 100; first += 3 {
		write(t, j, first, 10, 1500, 2500)
		frames, err := Read(7, first-1, files(a, b)...)
		if err != nil || len(frames) != 3 || frames[2].Last != first+2 || !bytes.Equal(frames[1].Content, content(first+1, 1500)) {
			t.Fatalf("from %d: %v, %v", first, contents(frames), err)
		}
	}
	if a.synced+b.synced != 99 || a.synced == 0 || b.synced == 0 {
		t.Errorf("%d and %d syncs for 99 frames", a.synced, b.synced)
	}
	if len(a.data) != step || len(b.data) != step {
		t.Errorf("the files have %d and %d bytes", len(a.data), len(b.data))
	}
}

func TestBothFilesInUse(t *testing.T) {
	a, b := &memory{}, &memory{}
	j, _ := New(7, 4<<10, a, b)
	var err error
	last := int64(0)
	for err == nil {
		last++
		err = j.Append(append(Begin(nil), content(last, 1000)...), last, last, 0)
	}
	if !errors.Is(err, ErrBusy) || last != 5 {
		t.Fatalf("frame %d: %v", last, err)
	}
	if err := j.Append(append(Begin(nil), content(last, 1000)...), last, last, 2); err != nil {
		t.Errorf("after the first file is filed: %v", err)
	}
	if frames, err := Read(7, 2, files(a, b)...); err != nil || len(frames) != 3 {
		t.Errorf("%v, %v", contents(frames), err)
	}
}

// A frame that is larger than a file makes it longer.
func TestLargeFrame(t *testing.T) {
	a, b := &memory{}, &memory{}
	j, _ := New(7, 4<<10, a, b)
	write(t, j, 1, 3*step, 10)
	if frames, err := Read(7, 0, files(a, b)...); err != nil || len(frames) != 2 || len(frames[0].Content) < 3*step {
		t.Errorf("%v, %v", contents(frames), err)
	}
}

// TestFlippedBits flips a bit of frames. Either Read returns an error, or the frame is missing at the end.
func TestFlippedBits(t *testing.T) {
	a, b := &memory{}, &memory{}
	j, _ := New(7, 8<<10, a, b)
	write(t, j, 1, 10, 1500, 600, 2500, 4000, 20)
	whole, err := Read(7, 0, files(a, b)...)
	if err != nil || len(whole) != 6 {
		t.Fatal(contents(whole), err)
	}
	refused := 0
	for range 2000 {
		file := []*memory{a, b}[rand.IntN(2)]
		at, bit := rand.IntN(12<<10), byte(1)<<rand.IntN(8)
		file.data[at] ^= bit
		frames, err := Read(7, 0, files(a, b)...)
		file.data[at] ^= bit
		var corrupt *kv.CorruptError
		switch {
		case errors.As(err, &corrupt):
			refused++
		case err != nil || len(frames) < 5 || fmt.Sprint(contents(frames)) != fmt.Sprint(contents(whole[:len(frames)])):
			t.Fatalf("byte %d: %v, %v", at, contents(frames), err)
		}
	}
	if refused < 500 {
		t.Errorf("only %d flipped bits were found", refused)
	}
}

// TestForgedFrames has a frame of another journal in the content of one that a crash tore.
func TestForgedFrames(t *testing.T) {
	a, b := &memory{}, &memory{}
	other, _ := New(8, 8<<10, a, b)
	write(t, other, 2, 100)
	forged := slices.Clone(a.data[:Sector])
	a, b = &memory{}, &memory{}
	j, _ := New(7, 8<<10, a, b)
	write(t, j, 1, 10)
	frame := append(Begin(nil), make([]byte, Sector-header)...)
	frame = append(frame, forged...)
	if err := j.Append(frame, 2, 2, 0); err != nil {
		t.Fatal(err)
	}
	a.data[Sector+header+5] ^= 1
	if frames, err := Read(7, 0, files(a, b)...); err != nil || len(frames) != 1 {
		t.Errorf("%v, %v", contents(frames), err)
	}
}

// A frame that could not be written does not count, and the next one takes its place.
func TestFailedWrite(t *testing.T) {
	a, b := &memory{}, &memory{}
	j, _ := New(7, 8<<10, a, b)
	write(t, j, 1, 10)
	a.fails = errors.New("no space")
	if err := j.Append(append(Begin(nil), content(2, 10)...), 2, 2, 0); !errors.Is(err, a.fails) {
		t.Fatal(err)
	}
	a.fails = nil
	write(t, j, 2, 20)
	if frames, err := Read(7, 0, files(a, b)...); err != nil || len(frames) != 2 || len(frames[1].Content) != 22 {
		t.Errorf("%v, %v", contents(frames), err)
	}
}
