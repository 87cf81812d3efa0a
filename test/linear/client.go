package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/anykind/anykind/test/process"
)

// A client sends one request after the other, and records the responses.
type client struct {
	number  int
	random  *rand.Rand
	api     process.API
	path    string // of the objects
	began   time.Time
	next    int
	lossy   bool           // Options.Lossy
	seen    [objects]int64 // the resourceVersions of its last reads
	history []porcupine.Operation
}

type metadata struct {
	Name            string `json:"name,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

type configMap struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   metadata          `json:"metadata"`
	Data       map[string]string `json:"data,omitempty"`
}

func name(object int) string { return fmt.Sprintf("object-%d", object) }

func (c *client) run(ctx context.Context, requests int) error {
	for range requests {
		in := input{operation: operation(c.random.IntN(int(list) + 1)), object: c.random.IntN(objects)}
		c.next++
		in.value = c.number<<20 + c.next
		switch in.operation {
		case update, removeExact:
			if in.expects = c.seen[in.object]; in.expects == 0 {
				in.operation = get // it has no resourceVersion to expect
			}
		}
		call := time.Since(c.began)
		out, err := c.ask(ctx, in)
		if c.lossy && process.Unanswered(err) && ctx.Err() == nil {
			if in.operation == get || in.operation == list {
				continue // there was no effect
			}
			out, err = output{outcome: unknown}, nil
		}
		if err != nil {
			return fmt.Errorf("client %d: %w", c.number, err)
		}
		c.history = append(c.history, porcupine.Operation{
			ClientId: c.number, Input: in, Output: out, Call: int64(call), Return: int64(time.Since(c.began)),
		})
		if in.operation != list && out.now.revision != 0 {
			c.seen[in.object] = out.now.revision
		}
	}
	return nil
}

// ask sends one request.
func (c *client) ask(ctx context.Context, in input) (output, error) {
	at := c.path + "/" + name(in.object)
	body := configMap{APIVersion: "v1", Kind: "ConfigMap", Metadata: metadata{Name: name(in.object)},
		Data: map[string]string{"value": strconv.Itoa(in.value)}}
	exactly := strconv.FormatInt(in.expects, 10)
	var answer configMap
	var err error
	switch in.operation {
	case list:
		return c.list(ctx)
	case get:
		err = c.api.Do(ctx, http.MethodGet, at, nil, &answer)
	case create:
		err = c.api.Do(ctx, http.MethodPost, c.path, body, &answer)
	case update:
		body.Metadata.ResourceVersion = exactly
		err = c.api.Do(ctx, http.MethodPut, at, body, &answer)
	case patch:
		err = c.api.Do(ctx, http.MethodPatch, at, map[string]any{"data": body.Data}, &answer)
	case remove:
		return outcomeOf(c.api.Do(ctx, http.MethodDelete, at, nil, nil))
	case removeExact:
		options := map[string]any{"preconditions": map[string]any{"resourceVersion": exactly}}
		return outcomeOf(c.api.Do(ctx, http.MethodDelete, at, options, nil))
	}
	out, err := outcomeOf(err)
	if err != nil || out.outcome != done {
		return out, err
	}
	out.now, err = answer.entry()
	return out, err
}

func (c *client) list(ctx context.Context) (output, error) {
	var all struct {
		Metadata metadata
		Items    []configMap
	}
	var out output
	if err := c.api.Do(ctx, http.MethodGet, c.path, nil, &all); err != nil {
		return out, err
	}
	revision, err := strconv.ParseInt(all.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return out, err
	}
	out.revision = revision
	for _, item := range all.Items {
		for i := range objects {
			if item.Metadata.Name == name(i) {
				if out.all.entries[i], err = item.entry(); err != nil {
					return out, err
				}
			}
		}
	}
	return out, nil
}

func (m *configMap) entry() (entry, error) {
	value, err := strconv.Atoi(m.Data["value"])
	if err != nil {
		return entry{}, err
	}
	revision, err := strconv.ParseInt(m.Metadata.ResourceVersion, 10, 64)
	return entry{value, revision}, err
}

// outcomeOf maps the responses that the model knows. Any other is an error.
func outcomeOf(err error) (output, error) {
	var refused *process.Refused
	switch {
	case err == nil:
		return output{}, nil
	case !errors.As(err, &refused):
		return output{}, err
	case refused.Code == http.StatusNotFound:
		return output{outcome: absent}, nil
	case refused.Code == http.StatusConflict && refused.Reason() == "AlreadyExists":
		return output{outcome: exists}, nil
	case refused.Code == http.StatusConflict:
		return output{outcome: conflict}, nil
	default:
		return output{}, err
	}
}
