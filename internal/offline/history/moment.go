package history

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// A Moment is a time or a revision of a server. The zero Moment is now.
type Moment struct {
	Time     time.Time
	Revision string
}

// ParseMoment reads a revision, or a time as ParseTime does.
func ParseMoment(s string, now time.Time) (Moment, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
		return Moment{Revision: s}, nil
	}
	t, err := ParseTime(s, now)
	if err != nil {
		err = fmt.Errorf("%w, or a revision such as 1234", err)
	}
	return Moment{Time: t}, err
}

// ParseTime reads a time: RFC 3339, a date, or a duration before now.
func ParseTime(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	text := strings.TrimPrefix(s, "-")
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return time.Time{}, fmt.Errorf("%q: want a time such as 2026-11-20T08:00:00Z or 2026-11-20, or a duration before now such as 90m, 2h or 7d", s)
	}
	return now.Add(-d), nil
}

func (m Moment) query() string {
	query := url.Values{}
	switch {
	case m.Revision != "":
		query.Set("resourceVersion", m.Revision)
		query.Set("resourceVersionMatch", "Exact")
	case !m.Time.IsZero():
		query.Set("asOf", stamp(m.Time))
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// At returns an object at a moment, or all objects of a kind. A missing object is none.
func (c Client) At(ctx context.Context, o Object, m Moment) ([]object.Tree, error) {
	all, err := c.Objects(ctx, o.path()+m.query())
	switch {
	case refusesHistory(err):
		return nil, ErrNone
	case o.Name != "" && apiclient.Missing(err):
		return nil, nil
	}
	return all, err
}

// Present returns the present object. A missing one is an error.
func (c Client) Present(ctx context.Context, o Object) (object.Tree, error) {
	var now object.Tree
	err := c.Get(ctx, o.path(), &now)
	return now, err
}
