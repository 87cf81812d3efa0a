package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
)

// Samples are example objects of definitions. They are reread from their files for each pass, so
// that memory does not limit their number.
type Samples struct {
	paths []string
	in    []byte // content of the path -
	plain *Plain
	trees []object.Tree
	files int // number of files in the last pass
}

// A Plain is the kind of documents that have only the spec of an object.
type Plain struct{ APIVersion, Kind string }

// wrap turns the spec in a document into an object.
func (p *Plain) wrap(d *Document) {
	d.tree = object.Tree{"apiVersion": p.APIVersion, "kind": p.Kind, "spec": d.tree}
	d.body, d.media, d.isSpec = object.AppendJSON(nil, d.tree), codec.JSON, true
}

// FindSamples finds the documents at some paths. It reads in for the path -. Plain is nil if all
// documents are whole objects.
func FindSamples(paths []string, in io.Reader, plain *Plain) (*Samples, error) {
	s := &Samples{paths: paths, plain: plain}
	if slices.Contains(paths, "-") && in != nil {
		var err error
		if s.in, err = io.ReadAll(in); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// TheseSamples returns Samples in memory.
func TheseSamples(trees []object.Tree) *Samples { return &Samples{trees: trees} }

// Each calls visit for each object. An unreadable document is an error.
func (s *Samples) Each(visit func(object.Tree) error) error {
	return s.each(func(d *Document) error {
		if d.broken != nil {
			return fmt.Errorf("%s: %w", d.where(), d.broken)
		}
		if err := visit(d.tree); err != nil {
			return fmt.Errorf("%s: %w", d.where(), err)
		}
		return nil
	})
}

func (s *Samples) each(visit func(*Document) error) error {
	for i, t := range s.trees {
		if err := visit(&Document{file: fileOf(i), line: 1, tree: t, body: object.AppendJSON(nil, t), media: codec.JSON}); err != nil {
			return err
		}
	}
	r := &reader{visit: visit, plain: s.plain}
	defer func() { s.files = r.files }()
	return r.all(s.paths, bytes.NewReader(s.in))
}

// atOnce is the number of samples per batch.
const atOnce = 256

// Verify checks definitions, and samples of their kinds, with strict field validation. The report
// has only rejections. Samples of a rejected definition are skipped. The status is validated as any
// other field, although a server accepts it only in a subresource.
func Verify(ctx context.Context, definitions []*v1.CustomResourceDefinition, samples *Samples, o Options) (*Report, error) {
	c, err := newChecker(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.server.Stop(context.WithoutCancel(ctx)) }()
	report := &Report{}
	note := func(r Result) {
		report.Summary.add(&r)
		if r.Verdict != Accepted {
			report.Results = append(report.Results, r)
		}
	}
	wanted := map[kindName]bool{}
	for _, d := range definitions {
		r, err := c.defineWhole(ctx, d)
		if err != nil {
			return nil, err
		}
		wanted[kindName{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}] = r.Verdict == Accepted
		if r.Verdict != Accepted {
			note(r)
		}
	}
	c.learn()
	batch := &Documents{}
	flush := func() error {
		c.all = 0 // unknown
		results, err := c.checkAll(ctx, batch, allOf(len(batch.documents)), make([]Result, len(batch.documents)), 0)
		for i := range results {
			note(results[i])
		}
		batch.documents = nil
		return err
	}
	err = samples.each(func(d *Document) error {
		if d.broken == nil && !wanted[d.kind()] {
			return nil
		}
		batch.documents = append(batch.documents, asNew(d))
		if len(batch.documents) < atOnce {
			return nil
		}
		return flush()
	})
	report.Summary.Files = samples.files
	return report, errors.Join(err, flush())
}

// Accepts reports, for each object, whether a server with some definitions would accept it. Objects
// of a rejected definition are not accepted.
func Accepts(ctx context.Context, definitions []*v1.CustomResourceDefinition, trees []object.Tree) ([]bool, error) {
	report, err := Verify(ctx, definitions, TheseSamples(trees), Options{})
	if err != nil {
		return nil, err
	}
	refused := map[string]bool{}
	for _, r := range report.Results {
		refused[r.File] = true
	}
	accepts := make([]bool, len(trees))
	for i, t := range trees {
		defined := slices.ContainsFunc(definitions, func(d *v1.CustomResourceDefinition) bool {
			return kindOf(t) == kindName{Group: d.Spec.Group, Kind: d.Spec.Names.Kind} && !refused[d.Name]
		})
		accepts[i] = defined && !refused[fileOf(i)]
	}
	return accepts, nil
}

// fileOf returns a file name for an object in memory.
func fileOf(i int) string { return fmt.Sprintf("object %d", i+1) }

func allOf(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// defineWhole checks a definition, and then serves it without subresources, so that a write covers
// the whole object.
func (c *checker) defineWhole(ctx context.Context, d *v1.CustomResourceDefinition) (Result, error) {
	document, err := documentOf(d)
	if err != nil {
		return Result{}, err
	}
	r := document.result()
	if err := c.ask(ctx, document, &r, true); err != nil || r.Verdict != Accepted {
		return r, err
	}
	whole := d.DeepCopy()
	for i := range whole.Spec.Versions {
		whole.Spec.Versions[i].Subresources = nil
	}
	whole.Spec.Conversion = nil // to call no webhook
	if document, err = documentOf(whole); err != nil {
		return r, err
	}
	return c.define(ctx, document)
}

// documentOf returns a document for a definition in memory.
func documentOf(d *v1.CustomResourceDefinition) (*Document, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	t, _, err := codec.Decode(codec.JSON, body)
	return &Document{file: d.Name, line: 1, tree: t, body: body, media: codec.JSON}, err
}

// asNew returns an object for a create: without metadata that only a server sets, and with a name.
func asNew(d *Document) Document {
	named := object.Name(d.tree) != "" || object.MetaString(d.tree, "generateName") != ""
	if d.broken != nil || named && object.ResourceVersion(d.tree) == "" {
		return *d
	}
	one := *d
	one.tree = object.CloneTree(d.tree)
	object.SetMetaString(one.tree, "resourceVersion", "")
	if !named {
		object.SetMetaString(one.tree, "name", "sample")
	}
	one.body, one.media = object.AppendJSON(nil, one.tree), codec.JSON
	return one
}
