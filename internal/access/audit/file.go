package audit

import (
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/object/order"
)

// output is a writer to a file that the server did not open.
type output struct{ *os.File }

func (o output) write(events [][]byte) (int, error) {
	return each(events, func(data []byte) error {
		_, err := o.Write(data)
		return err
	})
}

// each writes all events, and returns the number of errors, and the last one.
func each(events [][]byte, write func([]byte) error) (lost int, last error) {
	for _, data := range events {
		if err := write(data); err != nil {
			lost++
			last = err
		}
	}
	return lost, last
}

func (output) close() {}

// A rotating file is renamed when it is full, and begins anew. Rotated files have the time of their
// rotation in their names, as those of kube-apiserver do. Old ones are removed.
type rotating struct {
	options FileOptions
	max     int64 // bytes; 0 for no rotation

	mu   sync.Mutex
	file *os.File
	size int64

	log     *slog.Logger
	failing bool // the last rotation failed
	closing atomic.Bool
	tidying sync.WaitGroup
	tidy    sync.Mutex
}

const (
	megabyte   = 1 << 20
	timeInName = "2006-01-02T15-04-05.000"
	gz         = ".gz"
)

func openRotating(o *FileOptions, log *slog.Logger) (*rotating, error) {
	f := &rotating{options: *o, max: int64(o.MaxSize) * megabyte, log: log}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, err
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	f.clean()
	return f, nil
}

// open opens the file at its end. A device is not rotated.
func (f *rotating) open() error {
	file, err := os.OpenFile(f.options.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	if !info.Mode().IsRegular() {
		f.max = 0
	}
	return nil
}

// write writes each event at once, so that a file ends with a whole line.
func (f *rotating) write(events [][]byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return each(events, f.writeOne)
}

func (f *rotating) writeOne(data []byte) error {
	if f.file == nil {
		return os.ErrClosed
	}
	if f.max > 0 && f.size > 0 && f.size+int64(len(data)) > f.max {
		err := f.rotate(time.Now())
		if err != nil && !f.failing {
			f.log.Error("the audit log is not rotated, and grows", "file", f.options.Path, "error", err)
		}
		f.failing = err != nil
	}
	n, err := f.file.Write(data)
	if err != nil && n > 0 { // a part of a line would spoil the next one
		err = errors.Join(err, f.file.Truncate(f.size))
		n = 0
	}
	f.size += int64(n)
	return err
}

// rotate renames the file, and opens a new one with its mode and owner. If that fails, events are
// written to the old one.
func (f *rotating) rotate(now time.Time) error {
	stem, ext := f.parts()
	name := filepath.Join(filepath.Dir(f.options.Path), stem+now.UTC().Format(timeInName)+ext)
	if err := os.Rename(f.options.Path, name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	old := f.file
	if err := f.open(); err != nil {
		return err
	}
	likewise(f.file, old)
	_ = old.Close()
	f.clean()
	return nil
}

// likewise gives a file the mode and, if it may, the owner of another one.
func likewise(file, of *os.File) {
	if info, err := of.Stat(); err == nil {
		_ = file.Chmod(info.Mode().Perm())
		own(file, info)
	}
}

// parts returns the name of the file up to the time of a rotation, and after it.
func (f *rotating) parts() (stem, ext string) {
	base := filepath.Base(f.options.Path)
	ext = filepath.Ext(base)
	return strings.TrimSuffix(base, ext) + "-", ext
}

// clean removes and compresses rotated files, while writes go on.
func (f *rotating) clean() {
	f.tidying.Go(func() {
		f.tidy.Lock()
		defer f.tidy.Unlock()
		rotated := f.rotated()
		for i, r := range rotated {
			if f.closing.Load() {
				return
			}
			path := filepath.Join(filepath.Dir(f.options.Path), r.name)
			old := f.options.MaxAge > 0 && time.Since(r.at) > time.Duration(f.options.MaxAge)*24*time.Hour
			switch {
			case old || f.options.MaxBackups > 0 && i >= f.options.MaxBackups:
				_ = os.Remove(path)
			case f.options.Compress && !strings.HasSuffix(path, gz):
				if compress(path) == nil {
					_ = os.Remove(path)
				}
			}
		}
	})
}

type rotatedFile struct {
	name string
	at   time.Time
}

// rotated returns the rotated files, newest first.
func (f *rotating) rotated() (all []rotatedFile) {
	stem, ext := f.parts()
	entries, err := os.ReadDir(filepath.Dir(f.options.Path))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), stem)
		rest = strings.TrimSuffix(strings.TrimSuffix(rest, gz), ext)
		if at, err := time.Parse(timeInName, rest); ok && err == nil {
			all = append(all, rotatedFile{e.Name(), at})
		}
	}
	order.Stable(all, func(a, b rotatedFile) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	return all
}

// compress writes the compressed copy of a file.
func compress(path string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path+gz, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, to.Close()); err != nil {
			_ = os.Remove(path + gz)
		}
	}()
	likewise(to, from)
	w := gzip.NewWriter(to)
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	return w.Close()
}

// close waits for the file that is being compressed, and leaves the others to the next start.
func (f *rotating) close() {
	f.closing.Store(true)
	f.mu.Lock()
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
	f.mu.Unlock()
	f.tidying.Wait()
}
