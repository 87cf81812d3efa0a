package app

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/anykind/anykind/internal/access/fairness"
	"github.com/anykind/anykind/internal/builtin/flowcontrol"
	"github.com/anykind/anykind/internal/server"
)

// prioritize creates the Dispatcher of priority and fairness.
func (w *wired) prioritize(o Options) error {
	if o.Unclassified {
		return nil
	}
	if o.Limits.Seats() == 0 {
		return errors.New("without a limit there are no seats for priority levels: set Limits or Unclassified")
	}
	schemas, levels := flowcontrol.Fixed()
	w.fairness = fairness.New(fairness.Options{
		Seats:   o.Limits.Seats(),
		Schemas: schemas,
		Levels:  levels,
		Stored: func(group, plural string) (objects, bytes int64) {
			d := w.catalog.Set().Lookup(group, plural)
			if d == nil || !d.Stored() {
				return -1, 0
			}
			return w.cache.Size(d.StoragePrefix)
		},
		Timeout: cmp.Or(o.Timeout, server.DefaultTimeout),
		Gates:   o.Gates,
		Log:     w.log,
	})
	w.fairness.Read(w.cache, w.core)
	w.following = append(w.following, w.fairness.Run)
	return nil
}

// fairnessPages returns the pages with the requests of priority levels; none for nil.
func fairnessPages(d *fairness.Dispatcher) (pages []server.Page) {
	if d == nil {
		return nil
	}
	about := map[string]string{
		"dump_priority_levels": "requests of each priority level",
		"dump_queues":          "requests of each queue of the priority levels",
		"dump_requests":        "each request that waits or is served, with ?includeRequestDetails=1 its path, too",
	}
	all := d.Pages()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pages = append(pages, server.Page{Path: "api_priority_and_fairness/" + name, About: about[name], Serve: all[name]})
	}
	return pages
}
