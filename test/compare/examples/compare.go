package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
	"github.com/anykind/anykind/test/corpus"
)

// A Comparison sends documents to two servers.
type Comparison struct {
	pair  *servers.Pair
	known judge.Known

	mu       sync.Mutex
	kinds    map[string]int // documents by kind
	neither  map[string]int // documents of kinds that neither server has
	sent     map[string]int
	codes    map[int]int // of creates on kube-apiserver
	unknown  map[judge.Signature][]string
	accepted []*Document    // by both
	did      map[string]int // objects, by kubectl's message with kube-apiserver
}

// All compares documents: first the dependencies of others, then the rest.
func (c *Comparison) All(ctx context.Context, all []*Document) error {
	var first, rest []*Document
	for _, d := range all {
		if d.Kind == "Namespace" || d.Kind == "CustomResourceDefinition" {
			first = append(first, d)
		} else {
			rest = append(rest, d)
		}
	}
	kinds, err := discover(ctx, c.pair)
	if err != nil {
		return err
	}
	c.some(ctx, kinds, first)
	if err := c.define(ctx); err != nil {
		return err
	}
	if kinds, err = discover(ctx, c.pair); err != nil {
		return err
	}
	if err := c.namespaces(ctx, kinds, rest); err != nil {
		return err
	}
	c.some(ctx, kinds, rest)
	return nil
}

// define creates the definitions of the examples.
func (c *Comparison) define(ctx context.Context) error {
	for _, f := range []corpus.Folder{corpus.GatewayAPIExperimental, corpus.CertManager} {
		definitions, err := f.Definitions()
		if err != nil {
			return err
		}
		for _, d := range definitions {
			body, err := json.Marshal(d)
			if err == nil {
				err = c.ensure(ctx, servers.Definitions, body)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, client := range []*wire.Client{c.pair.Theirs, c.pair.Ours} {
		err := servers.Wait(ctx, func() bool {
			a := client.Do(ctx, wire.Step{Method: "GET", Path: servers.Definitions})
			served := strings.Count(string(a.Body), `"type":"Established","status":"True"`) + strings.Count(string(a.Body), `"status":"True","type":"Established"`)
			return served > 0 && served == strings.Count(string(a.Body), `"acceptedNames"`)
		})
		if err != nil {
			return fmt.Errorf("definitions are not served: %w", err)
		}
	}
	return nil
}

// namespaces creates the namespaces of documents.
func (c *Comparison) namespaces(ctx context.Context, kinds Kinds, all []*Document) error {
	made := map[string]bool{}
	for _, d := range all {
		r, name := kinds.of(d), d.namespace()
		if r == nil || !r.Namespaced || made[name] {
			continue
		}
		made[name] = true
		if err := c.ensure(ctx, "/api/v1/namespaces", []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

// ensure creates an object on both servers, unless it exists.
func (c *Comparison) ensure(ctx context.Context, path string, body []byte) error {
	for _, client := range []*wire.Client{c.pair.Theirs, c.pair.Ours} {
		a := client.Do(ctx, wire.Step{Method: "POST", Path: path, Header: []wire.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body})
		if a.Code != http.StatusCreated && a.Code != http.StatusConflict {
			return fmt.Errorf("%s: POST %s: %d %s %s", client.Host(), path, a.Code, a.Failed, a.Body)
		}
	}
	return nil
}

// some compares documents in parallel. Documents with the same name run one after the other.
func (c *Comparison) some(ctx context.Context, kinds Kinds, all []*Document) {
	var names []string
	byName := map[string][]*Document{}
	for _, d := range all {
		kind, r := d.APIVersion+" "+d.Kind, kinds.of(d)
		if r == nil {
			c.neither[kind]++
			continue
		}
		c.kinds[kind]++
		name := r.Plural + "." + r.Group + "/" + d.Metadata.Name
		if r.Namespaced {
			name += "/" + d.namespace()
		}
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], d)
	}
	next := make(chan []*Document)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for documents := range next {
				for _, d := range documents {
					c.document(ctx, d, kinds.of(d))
				}
			}
		})
	}
	for _, name := range names {
		next <- byName[name]
	}
	close(next)
	done.Wait()
}

// A side is one of the two servers.
type side struct {
	client  *wire.Client
	judge   *judge.Server
	answers map[int]*wire.Answer
	normal  *judge.Normal // of the last response
}

// scope is not the name of a sequence: names in documents stay unchanged.
const scope = "no sequence"

// document compares the responses to all requests for a document, until a request succeeds on only one
// server.
func (c *Comparison) document(ctx context.Context, d *Document, r *generate.Resource) {
	s := steps(d, r)
	sides := [2]*side{}
	for i, client := range []*wire.Client{c.pair.Theirs, c.pair.Ours} {
		sides[i] = &side{client: client, judge: judge.NewServer(scope), answers: map[int]*wire.Answer{}}
	}
	for _, step := range s.Steps {
		each(sides, func(x *side) { x.do(ctx, step) })
		theirs, ours := sides[0].normal, sides[1].normal
		c.add(d, step, judge.Compare(theirs, ours), theirs.Code)
		if refused(theirs) != refused(ours) || step.Kind == "create" && refused(theirs) {
			break
		}
	}
	if a, b := sides[0].answers[created], sides[1].answers[created]; a != nil && b != nil && a.Code == http.StatusCreated && b.Code == http.StatusCreated {
		c.mu.Lock()
		c.accepted = append(c.accepted, d)
		c.mu.Unlock()
	}
	each(sides, func(x *side) { x.clean(ctx, s) })
}

func refused(n *judge.Normal) bool { return n.Failed != "" || n.Code >= http.StatusBadRequest }

func each(sides [2]*side, do func(*side)) {
	var done sync.WaitGroup
	for _, x := range sides {
		done.Go(func() { do(x) })
	}
	done.Wait()
}

// patience limits the wait until a server serves a definition, or has removed it.
const patience = 10 * time.Second

// do sends a step.
func (x *side) do(ctx context.Context, step wire.Step) {
	step = step.For(scope, x.answers)
	x.judge.Sent(step)
	a := x.client.Do(ctx, step)
	x.answers[step.ID] = a
	x.normal = x.judge.Normal(a)
	x.normal.Body = given(x.normal.Body, step)
	if step.Kind == "create" && strings.HasPrefix(step.Resource, "customresourcedefinitions") && a.Code == http.StatusCreated {
		servers.Settle(ctx, x.client, a, patience)
	}
}

// clean removes the objects of the steps, if there are any.
func (x *side) clean(ctx context.Context, s wire.Sequence) {
	if a := x.answers[created]; a == nil || a.Code != http.StatusCreated {
		return
	}
	for _, step := range s.Cleanup {
		x.client.Do(ctx, step.For(scope, x.answers))
	}
	gone := wire.Step{Method: "GET", Path: s.Steps[len(s.Steps)-1].Path}.For(scope, x.answers)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = servers.Wait(ctx, func() bool { return x.client.Do(ctx, gone).Code == http.StatusNotFound }) // a leftover makes the next document fail
}

// add counts the result of a step.
func (c *Comparison) add(d *Document, step wire.Step, differences []judge.Difference, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[step.Kind]++
	if step.Kind == "create" {
		c.codes[code]++
	}
	for _, f := range differences {
		signature := f.Signature(step)
		if c.known.Match(signature) == nil {
			c.unknown[signature] = append(c.unknown[signature], fmt.Sprintf("%s\n%s %s\nK %s: %s\nA %s: %s", d, step.Method, step.Path,
				f.Place, wire.Printable([]byte(f.Theirs), 800), f.Place, wire.Printable([]byte(f.Ours), 800)))
		}
	}
}

var (
	address = regexp.MustCompile(`\b10\.0\.0\.\d+\b`)
	port    = regexp.MustCompile(`:3[0-2]\d{3}/`)
)

// given returns a body without the addresses and ports that the server allocated to a Service.
func given(body any, step wire.Step) any {
	table, _ := body.(map[string]any)
	rows, _ := table["rows"].([]any)
	if step.Kind != "get row" || step.Resource != "services" {
		return body
	}
	for _, row := range rows {
		r, _ := row.(map[string]any)
		cells, _ := r["cells"].([]any)
		for i, cell := range cells {
			if text, ok := cell.(string); ok {
				cells[i] = port.ReplaceAllString(address.ReplaceAllString(text, "ADDRESS"), ":PORT/")
			}
		}
	}
	return body
}
