package row

import (
	"time"

	"github.com/anykind/anykind/test/bench/payload"
)

// A Size is the amount of work of a run.
type Size struct {
	Mode       string
	Pairs      int // runs of each server in the short scenarios
	LongPairs  int // ... in the long ones
	Settle     time.Duration
	One        int           // creates by one client
	Many       int           // creates, patches, deletes by 32
	Read       time.Duration // duration of reads
	List       int           // objects in the list of the table
	Events     int           // writes for 200 watchers
	Builtins   int           // pods, and Deployments, for each encoding
	Defined    int           // definitions of the large load
	Stored     int           // objects of the large load
	Informers  int           // informers that start at once
	Informed   int           // objects for each informer
	Fleet      time.Duration
	Bindings   int   // role bindings to users without requests
	Objects    []int // the steps of the curves
	Kinds      []int
	Watchers   []int
	Counted    int // requests for the count of instructions
	CurvePairs int
	Life       life
	CurveTime  time.Duration // limit of the load at one point of a curve
}

// Quick takes minutes. Its large loads are a tenth of the full size, and the report says so.
func Quick() Size {
	return Size{
		Mode: "quick", Pairs: 2, LongPairs: 1, CurvePairs: 1, Settle: 3 * time.Second,
		One: 300, Many: 4000, Read: 3 * time.Second, List: 5000, Events: 500, Builtins: 1500,
		Defined: 200, Stored: 10_000, Informers: 200, Informed: 200, Fleet: 5 * time.Second, Bindings: 10_000,
		Objects: []int{1000, 10_000}, Kinds: []int{10, 100}, Watchers: []int{10, 100, 1000}, Counted: 400, CurveTime: 5 * time.Minute,
		Life: life{Nodes: 50, Deployments: 10, Replicas: 50},
	}
}

// Full is the size in DESIGN. It takes hours, and 32 GB of memory for the reference with 5,000
// definitions. With less memory, the report says so.
func Full() Size {
	return Size{
		Mode: "full", Pairs: 5, LongPairs: 2, CurvePairs: 1, Settle: 10 * time.Second,
		One: 2000, Many: 20_000, Read: 10 * time.Second, List: 5000, Events: 2000, Builtins: 5000,
		Defined: 2000, Stored: 100_000, Informers: 1000, Informed: 500, Fleet: 30 * time.Second, Bindings: 10_000,
		Objects: []int{1000, 10_000, 100_000, 1_000_000}, Kinds: []int{10, 100, 1000, 5000},
		Watchers: []int{10, 100, 1000, 10_000}, Counted: 2000, CurveTime: 8 * time.Minute,
		Life: life{Nodes: 500, Deployments: 20, Replicas: 250},
	}
}

// Scenarios returns all scenarios, in the order of their runs.
func Scenarios(s Size, only func(string) bool) ([]*Scenario, error) {
	large, err := payload.ReadCorpus()
	if err != nil {
		return nil, err
	}
	var chosen []*Scenario
	for _, sc := range []*Scenario{
		table(s), builtins(s), definitions(s, large), stored(s), informers(s), fleet(s), byRoles(s), byWebhooks(s), aggregated(s), byPolicies(s), guarded(s), greedy(s), underQuota(s), aLife(s),
		byObjects(s), byKinds(s), byWatchers(s), instructions(s),
		etcdTable(s), etcdDefinitions(s, large), byServers(s),
	} {
		match := only(sc.Name)
		for _, r := range sc.Rows {
			match = match || only(r.ID)
		}
		if match {
			chosen = append(chosen, sc)
		}
	}
	return chosen, nil
}
