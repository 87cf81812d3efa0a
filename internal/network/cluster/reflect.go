package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// minWatch is the minimal duration of a watch; the maximal one is twice that.
	minWatch = 5 * time.Minute
	// firstPause is the pause after the first failure. Further pauses are longer, up to
	// lastPause.
	firstPause = 800 * time.Millisecond
	lastPause  = 30 * time.Second
	// unwatched is the pause between lists of a collection that cannot be watched.
	unwatched = 30 * time.Second
	// shortWatch is the minimal time between the beginnings of two watches.
	shortWatch = time.Second
)

// ErrUnwatched is the error of Watch for a collection that can only be listed.
var ErrUnwatched = errors.New("the collection cannot be watched")

var errEndedAtOnce = errors.New("the watch ended at once")

// A Collector gets the objects of a collection in the order of their changes.
type Collector interface {
	// List requests all objects and processes them. It returns the resourceVersion of the list.
	List(ctx context.Context) (at string, err error)
	// Watch opens a watch with a query.
	Watch(ctx context.Context, query url.Values) (io.ReadCloser, error)
	// Change processes an event of the watch: the last state of a deleted object, or the state of another.
	// An error of Change starts a new list.
	Change(ctx context.Context, deleted bool, data []byte) error
}

// Reflect lists and watches a collection until ctx ends. It lists again if a watch cannot resume. A
// collection that cannot be watched is listed at intervals. log has the name of the collection.
func Reflect(ctx context.Context, c Collector, log *slog.Logger) {
	pause := firstPause
	for ctx.Err() == nil {
		listed, err := once(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if listed {
			pause = firstPause
		}
		if errors.Is(err, ErrUnwatched) {
			wait(ctx, unwatched)
			continue
		}
		if err != nil {
			log.Warn("objects of another server cannot be watched; retrying", "pause", pause, "error", err)
		}
		wait(ctx, time.Duration(float64(pause)*(1+rand.Float64())))
		pause = min(2*pause, lastPause)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// once lists, then watches until the watch cannot resume.
func once(ctx context.Context, c Collector) (listed bool, err error) {
	at, err := c.List(ctx)
	if err != nil {
		return false, err
	}
	for ctx.Err() == nil {
		begun := time.Now()
		next, err := changes(ctx, c, at)
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return true, nil
		case err != nil:
			return true, err
		case next == at && time.Since(begun) < shortWatch:
			return true, errEndedAtOnce
		}
		at = next
		wait(ctx, time.Until(begun.Add(shortWatch)))
	}
	return true, nil
}

// changes processes the changes after a resourceVersion, until the server ends the watch. It returns the
// resourceVersion to resume from.
func changes(ctx context.Context, c Collector, at string) (string, error) {
	lasts := time.Duration(float64(minWatch) * (1 + rand.Float64()))
	stream, err := c.Watch(ctx, url.Values{
		"watch": {"true"}, "resourceVersion": {at}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(int(lasts.Seconds()))},
	})
	if err != nil {
		return at, err
	}
	defer stream.Close()
	for events := NewEvents(stream); ctx.Err() == nil; {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			at, err = change(ctx, c, event, at)
		}
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// change processes an event, and returns its resourceVersion.
func change(ctx context.Context, c Collector, e Event, before string) (at string, err error) {
	if e.Type == watch.Error {
		var s metav1.Status
		if err := json.Unmarshal(e.Object, &s); err != nil {
			return before, err
		}
		return before, &apierrors.StatusError{ErrStatus: s}
	}
	var of struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(e.Object, &of); err != nil {
		return before, err
	}
	if e.Type == watch.Bookmark {
		return of.Metadata.ResourceVersion, nil
	}
	return of.Metadata.ResourceVersion, c.Change(ctx, e.Type == watch.Deleted, e.Object)
}
