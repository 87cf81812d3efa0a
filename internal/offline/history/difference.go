package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/merge"
	"github.com/anykind/anykind/internal/object/order"
)

// A Changed is an object that differs between two moments.
type Changed struct {
	Object
	Before, After object.Tree // nil if it did not exist
}

// Between returns the objects of kinds that differ between two moments. If all is set, kinds without a
// history are left out, as long as one kind has a history.
func (c Client) Between(ctx context.Context, objects []Object, from, to Moment, all bool) ([]Changed, error) {
	var out []Changed
	kept := false
	for _, o := range objects {
		err := c.Kept(ctx, o)
		if all && errors.Is(err, ErrNone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Title(), err)
		}
		kept = true
		before, err := c.At(ctx, o, from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Title(), err)
		}
		after, err := c.At(ctx, o, to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Title(), err)
		}
		if o.Name != "" && len(before)+len(after) == 0 {
			return nil, fmt.Errorf("%s existed at neither of the two moments", o.Title())
		}
		out = append(out, changed(o, before, after)...)
	}
	if !kept && len(objects) > 0 {
		return nil, ErrNone
	}
	return out, nil
}

// changed returns the objects of a kind that differ, by namespace and name.
func changed(o Object, before, after []object.Tree) []Changed {
	byPath := map[string]*Changed{}
	of := func(t object.Tree) *Changed {
		at := Object{o.Kind, object.Namespace(t), object.Name(t)}
		c := byPath[at.path()]
		if c == nil {
			c = &Changed{Object: at}
			byPath[at.path()] = c
		}
		return c
	}
	for _, t := range before {
		of(t).Before = t
	}
	for _, t := range after {
		of(t).After = t
	}
	var out []Changed
	for _, c := range byPath {
		if c.Before == nil || c.After == nil || len(merge.Compare(c.Before, c.After)) > 0 {
			out = append(out, *c)
		}
	}
	order.Stable(out, func(a, b Changed) int { return strings.Compare(a.path(), b.path()) })
	return out
}

// WriteChanged writes objects that differ, with their fields.
func WriteChanged(out io.Writer, all []Changed) error {
	for _, c := range all {
		sign, lines := " ", []string(nil)
		switch {
		case c.Before == nil:
			sign = "+"
		case c.After == nil:
			sign = "-"
		default:
			for _, d := range merge.Compare(c.Before, c.After) {
				lines = append(lines, d.String())
			}
		}
		if _, err := fmt.Fprintf(out, "%s %s\n", sign, c.Title()); err != nil {
			return err
		}
		for _, line := range lines {
			if _, err := fmt.Fprintf(out, "    %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}
