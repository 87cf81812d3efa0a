// Package check validates the objects in files as a server would, without a server.
//
// It reads files, sends each object in a request to an app.Offline, and maps the errors of the
// response to places in the files. It contains no validation rules: the responses come from the
// handler, registry and schemas of the server. It does not know commands and flags.
package check

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd"
)

// Options configure a check. The zero value checks objects as new ones.
type Options struct {
	// Definitions are files and folders with CustomResourceDefinitions. Those among the objects take
	// precedence.
	Definitions []string
	// Published returns the place and the JSON of a CustomResourceDefinition for a kind without one in
	// the files, or no JSON. It may be nil.
	Published func(group, kind string) (place string, definition []byte, err error)
	// Old are files and folders with stored objects: an object with the same identity is checked as
	// an update.
	Old []string
	// Namespace is the default namespace of objects.
	Namespace string
	// Validation is the fieldValidation of requests; empty is Strict.
	Validation string
	// PassUnknown skips objects of kinds without a definition.
	PassUnknown bool
	// Convert configures conversions of accepted objects.
	Convert Conversions
	// OnlyDefinitions checks only CustomResourceDefinitions, and reports the cost of their rules.
	OnlyDefinitions bool
	// RuntimeConfig and AllowPrivileged are options of the server.
	RuntimeConfig   builtin.RuntimeConfig
	AllowPrivileged bool
	// Gates has the release of Kubernetes and the feature gates of the server.
	Gates gate.Flag
	// Progress is called with the number of checked objects. It may be nil. Calls are concurrent.
	Progress func(done, all int)
	// Observe is called with every request for an object, and its response. It may be nil. Calls are
	// concurrent.
	Observe func(Question, Answer)

	memory *memory // of a Watch
}

// A Report is the result of a check.
type Report struct {
	Results []Result `json:"results"`
	Summary Summary  `json:"summary"`
}

// Run checks all objects at the paths. The path - is in.
func Run(ctx context.Context, paths []string, in io.Reader, o Options) (*Report, error) {
	all, err := read(paths, in)
	if err != nil {
		return nil, err
	}
	return run(ctx, all, o)
}

// run checks the documents with a server of its own.
func run(ctx context.Context, all *Documents, o Options) (*Report, error) {
	if o.OnlyDefinitions {
		all.documents = slices.DeleteFunc(all.documents, func(d Document) bool { return d.broken == nil && !d.isDefinition() && !d.isRules() })
	}
	c, err := newChecker(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.server.Stop(context.WithoutCancel(ctx)) }()
	results, err := c.run(ctx, all)
	if err != nil {
		return nil, err
	}
	report := &Report{Results: results, Summary: summarize(results)}
	report.Summary.Files = all.files
	report.Summary.PassedOver += all.passedOver
	return report, nil
}

// A checker has the server.
type checker struct {
	o      Options
	server *app.Offline
	old    map[identity]*Document
	stored *Documents              // stored objects
	given  map[string]*Document    // the served definitions, by name
	rules  map[string]*Document    // conversion rules by the names of their definitions
	wrong  map[*Document][]Problem // the errors of rules
	kinds  atomic.Pointer[kinds]
	known  map[string]Result // results of the last check that are still valid
	gone   map[kindName]bool // kinds of deleted definitions
	shown  sync.Map          // locks by identity, of objects that are stored for a conversion
	done   atomic.Int64
	all    int
}

func newChecker(ctx context.Context, o Options) (*checker, error) {
	gates, err := o.Gates.Gates()
	if err != nil {
		return nil, err
	}
	server, err := app.NewOffline(ctx, app.OfflineOptions{RuntimeConfig: o.RuntimeConfig, Gates: gates, AllowPrivileged: o.AllowPrivileged})
	if err != nil {
		return nil, err
	}
	c := &checker{o: o, server: server, given: map[string]*Document{}, wrong: map[*Document][]Problem{}, old: map[identity]*Document{}}
	c.learn()
	return c, nil
}

// run checks documents: definitions one by one, then all others concurrently.
func (c *checker) run(ctx context.Context, all *Documents) ([]Result, error) {
	c.all = len(all.documents)
	results := make([]Result, c.all)
	broken, err := c.prepare(ctx, all)
	if err != nil {
		return nil, err
	}
	var rest []int
	for i := range all.documents {
		d := &all.documents[i]
		if !d.isDefinition() {
			rest = append(rest, i)
			continue
		}
		if results[i], err = c.define(ctx, d); err != nil {
			return nil, err
		}
		c.progress()
	}
	if err := c.storeOld(ctx); err != nil {
		return nil, err
	}
	return c.checkAll(ctx, all, rest, append(broken, results...), len(broken))
}

// checkAll checks the documents at some indexes concurrently, and returns the results.
func (c *checker) checkAll(ctx context.Context, all *Documents, rest []int, results []Result, first int) ([]Result, error) {
	err := each(ctx, len(rest), func(n int) (err error) {
		i := rest[n]
		d := &all.documents[i]
		if known, ok := c.recall(d); ok {
			results[first+i] = known
		} else {
			results[first+i], err = c.check(ctx, d)
		}
		c.progress()
		return err
	})
	if m := c.o.memory; m != nil && err == nil {
		for _, i := range rest {
			m.results[keyOf(&all.documents[i])] = results[first+i]
		}
	}
	return results, err
}

// each calls do for the numbers below n concurrently, until one fails.
func each(ctx context.Context, n int, do func(i int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, max(1, runtime.GOMAXPROCS(0)))
	for worker := range errs {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || errs[worker] != nil || ctx.Err() != nil {
					return
				}
				errs[worker] = do(i)
			}
		})
	}
	group.Wait()
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) progress() {
	done := c.done.Add(1)
	if c.o.Progress != nil {
		c.o.Progress(int(done), c.all)
	}
}

// prepare loads the definitions that are not among the documents. It returns the results of rejected
// ones.
func (c *checker) prepare(ctx context.Context, all *Documents) (broken []Result, err error) {
	own := map[string]bool{}
	wanted := map[kindName]bool{}
	note := func(d *Documents) {
		for i := range d.documents {
			wanted[d.documents[i].kind()] = true
		}
	}
	old, err := read(c.o.Old, nil)
	if err != nil {
		return nil, err
	}
	definitions, err := read(c.o.Definitions, nil)
	if err != nil {
		return nil, err
	}
	note(all)
	note(old)
	published, err := c.published(wanted, all.documents, old.documents, definitions.documents)
	if err != nil {
		return nil, err
	}
	definitions.documents = append(definitions.documents, published...)
	if c.o.memory != nil {
		c.known = c.o.memory.recall(all, old, definitions)
	}
	c.rules = rulesOf(definitions, all)
	for i := range all.documents {
		if d := &all.documents[i]; d.isDefinition() {
			own[object.Name(d.tree)] = true
		}
	}
	for i := range old.documents { // definitions first
		if d := &old.documents[i]; d.isDefinition() {
			if err := c.storeDefinition(ctx, d); err != nil {
				return nil, err
			}
		}
	}
	for i := range definitions.documents {
		d := &definitions.documents[i]
		if !d.isDefinition() || own[object.Name(d.tree)] || !wanted[d.defines()] && c.rules[object.Name(d.tree)] == nil || c.old[d.identity("")] != nil {
			continue
		}
		r, err := c.define(ctx, d)
		if err != nil {
			return nil, err
		}
		if r.Verdict != Accepted {
			broken = append(broken, r)
		}
	}
	c.stored = old
	return broken, nil
}

// storeOld stores the existing objects. Their definitions are already served.
func (c *checker) storeOld(ctx context.Context) error {
	c.learn()
	for i := range c.stored.documents {
		if d := &c.stored.documents[i]; !d.isDefinition() {
			if err := c.store(ctx, d); err != nil {
				return fmt.Errorf("%s: %w", d.where(), err)
			}
		}
	}
	return nil
}

// define checks a definition, and serves it if it is accepted.
func (c *checker) define(ctx context.Context, d *Document) (Result, error) {
	r := d.result()
	name := object.Name(d.tree)
	if first := c.given[name]; first != nil && d.broken == nil {
		if !object.Equal(first.tree, d.tree) {
			r.refuse("", fmt.Sprintf("%s is defined twice, and not in the same way: it is in %s, too", name, first.where()))
			d.place(&r)
			return r, nil
		}
		r.Verdict = Accepted
		return r, nil
	}
	var err error
	if rules := c.rules[name]; rules != nil && d.broken == nil {
		r, err = c.defineWithRules(ctx, d, rules)
	} else {
		err = c.ask(ctx, d, &r, false)
	}
	if err == nil && r.Verdict == Accepted {
		c.given[name] = d
	}
	if c.o.OnlyDefinitions && d.broken == nil {
		r.Schemas = costsOf(d.tree)
	}
	return r, err
}

// storeDefinition stores an existing definition, even if the server would now reject it.
func (c *checker) storeDefinition(ctx context.Context, d *Document) error {
	r := d.result()
	if err := c.ask(ctx, d, &r, false); err != nil || d.broken != nil {
		return err
	}
	c.old[d.identity("")] = d
	if r.Verdict == Accepted {
		return nil
	}
	return c.server.Put(ctx, c.server.Definitions().Lookup(crd.Group, crd.Plural).Key("", object.Name(d.tree)), object.AppendJSON(nil, d.tree))
}

// store stores an existing object, even if the server would now reject it.
func (c *checker) store(ctx context.Context, d *Document) error {
	if d.broken != nil {
		return d.broken
	}
	kind, err := c.find(d)
	if err != nil {
		return err
	}
	t, err := asRead(kind.version, d.tree)
	if err != nil {
		return err
	}
	id := c.identify(kind, d)
	asStored(t, kind.definition, id.namespace)
	c.old[id] = &Document{tree: t, file: d.file, line: d.line}
	return c.server.Put(ctx, kind.definition.Key(id.namespace, id.name), object.AppendJSON(nil, t))
}

// asRead returns a stored object as a server reads it in a version. It drops invalid metadata of the custom object
// itself and of embedded objects, as a server does when it reads storage. A server rejects a write with such metadata.
func asRead(v *resource.Version, t object.Tree) (object.Tree, error) {
	out, _, err := v.Schema.Complete(object.CloneTree(t))
	if err == nil {
		return out, nil
	}
	rest := object.CloneTree(t)
	v.Schema.Prune(rest)
	if out, _, failed := v.Schema.Complete(rest); failed == nil {
		return out, nil
	}
	return nil, err
}

// asStored adds the metadata that every stored object has.
func asStored(t object.Tree, d *resource.Definition, namespace string) {
	object.SetMetaString(t, "resourceVersion", "")
	object.SetMetaString(t, "namespace", namespace)
	if object.UID(t) == "" {
		object.SetMetaString(t, "uid", anyUID)
	}
	if object.MetaString(t, "creationTimestamp") == "" {
		object.SetMetaString(t, "creationTimestamp", anyTime)
	}
	if d.HasGeneration && object.Generation(t) == 0 {
		object.SetGeneration(t, 1)
	}
}

// Metadata that asStored adds.
const (
	anyUID  = "00000000-0000-4000-8000-000000000000"
	anyTime = "1970-01-01T00:00:00Z"
)

// check checks one object.
func (c *checker) check(ctx context.Context, d *Document) (Result, error) {
	if d.isRules() && c.rules[d.target()] == d {
		return c.checkRules(ctx, d)
	}
	r := d.result()
	err := c.ask(ctx, d, &r, true)
	if err == nil && r.Verdict == Accepted && c.o.Convert.any() {
		err = c.convert(ctx, d, &r)
	}
	return r, err
}
