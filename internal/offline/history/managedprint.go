package history

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// An event is an Event of core/v1.
type event struct {
	Type           string    `json:"type"`
	Reason         string    `json:"reason"`
	Message        string    `json:"message"`
	FirstTimestamp time.Time `json:"firstTimestamp"`
	LastTimestamp  time.Time `json:"lastTimestamp"`
	EventTime      time.Time `json:"eventTime"`
	Source         struct {
		Component string `json:"component"`
	} `json:"source"`
	Reporter string `json:"reportingComponent"`
}

func (e *event) time() time.Time {
	for _, t := range []time.Time{e.LastTimestamp, e.EventTime} {
		if !t.IsZero() {
			return t
		}
	}
	return e.FirstTimestamp
}

// events returns the Events of an object. A user without access to them gets none.
func (c Client) events(ctx context.Context, o object.Tree) ([]event, error) {
	path := "/api/v1/events"
	if ns := object.Namespace(o); ns != "" {
		path = "/api/v1/namespaces/" + url.PathEscape(ns) + "/events"
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	err := c.Get(ctx, path+"?"+url.Values{"fieldSelector": {"involvedObject.uid=" + object.UID(o)}}.Encode(), &list)
	if code := apiclient.Code(err); code == http.StatusForbidden || code == http.StatusNotFound {
		return nil, nil
	}
	var all []event
	for _, item := range list.Items {
		var e event
		if err := json.Unmarshal(item, &e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, err
}

// WriteManaged writes the managedFields and the Events of an object, the oldest first.
func (c Client) WriteManaged(ctx context.Context, out io.Writer, o object.Tree, since time.Time, limit int) error {
	all, err := entries(o)
	if err != nil {
		return err
	}
	happened, err := c.events(ctx, o)
	if err != nil {
		return err
	}
	type trace struct {
		at time.Time
		row
	}
	var traces []trace
	for i := range all {
		e := all[i].change()
		r := row{[]string{clock(e.Time), e.actor(), e.action()}, managedPaths(nil, "", all[i].Fields)}
		traces = append(traces, trace{e.Time, r})
	}
	for i := range happened {
		e := &happened[i]
		r := row{[]string{clock(e.time()), cmp.Or(e.Source.Component, e.Reporter, "-"), "Event " + e.Reason}, []string{e.Message}}
		traces = append(traces, trace{e.time(), r})
	}
	traces = slices.DeleteFunc(traces, func(t trace) bool { return t.at.Before(since) })
	order.Stable(traces, func(a, b trace) int { return a.at.Compare(b.at) })
	if limit > 0 {
		traces = traces[max(0, len(traces)-limit):]
	}
	rows := []row{{cells: []string{"TIME", "MANAGER", "OPERATION"}}}
	for _, t := range traces {
		rows = append(rows, t.row)
	}
	return writeRows(out, rows)
}
