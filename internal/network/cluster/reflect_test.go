package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/network/cluster"
)

// scripted is a collector with prepared watches. It records calls, and ends after the last watch.
type scripted struct {
	watches []string // bodies; "" is a watch that fails
	calls   []string
	begun   time.Time
	end     func()
}

func (s *scripted) note(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf("%ds ", int(time.Since(s.begun)/time.Second))+fmt.Sprintf(format, args...))
}

func (s *scripted) List(context.Context) (string, error) {
	s.note("list")
	return "10", nil
}

func (s *scripted) Watch(_ context.Context, query url.Values) (io.ReadCloser, error) {
	s.note("watch from %s", query.Get("resourceVersion"))
	if len(s.watches) == 0 {
		s.end()
		return nil, errors.New("the end")
	}
	body := s.watches[0]
	s.watches = s.watches[1:]
	if body == "" {
		return nil, cluster.ErrUnwatched
	}
	return io.NopCloser(strings.NewReader(body)), nil
}

func (s *scripted) Change(_ context.Context, deleted bool, data []byte) error {
	s.note("deleted %t", deleted)
	return nil
}

func TestReflect(t *testing.T) {
	const (
		added   = `{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}`
		deleted = `{"type":"DELETED","object":{"metadata":{"resourceVersion":"12"}}}`
		mark    = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"13"}}}`
		expired = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}`
	)
	for _, tt := range []struct {
		name    string
		watches []string
		want    []string
	}{
		{"a watch resumes, once a second", []string{added + deleted, mark}, []string{"0s list", "0s watch from 10", "0s deleted false", "0s deleted true", "1s watch from 12", "2s watch from 13"}},
		{"an expired watch", []string{added + expired}, []string{"0s list", "0s watch from 10", "0s deleted false", "list", "watch from 10"}},
		{"a watch that ends at once", []string{" "}, []string{"0s list", "0s watch from 10", "list", "watch from 10"}},
		{"a collection without watches", []string{"", ""}, []string{"0s list", "0s watch from 10", "30s list", "30s watch from 10", "60s list", "60s watch from 10"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := &scripted{watches: tt.watches, begun: time.Now(), end: cancel}
			cluster.Reflect(ctx, s, slog.New(slog.DiscardHandler))
			// Pauses after failures are random: their wants have no time.
			if !slices.EqualFunc(s.calls, tt.want, func(got, want string) bool { return got == want || strings.HasSuffix(got, " "+want) }) {
				t.Errorf("%s: calls %q, want %q", tt.name, s.calls, tt.want)
			}
		})
	}
}
