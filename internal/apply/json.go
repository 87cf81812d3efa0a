package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/status"
)

const (
	// MaxOperations is how many operations a JSON patch may have.
	MaxOperations = 10_000
	// MaxCopied is how many bytes the copy operations of one JSON patch may add.
	MaxCopied = 3 << 20
)

// An operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// JSON decodes a JSON patch (RFC 6902). As in Kubernetes, the whole object can
// be neither the target nor the source of an operation, and a negative index
// counts from the end of an array.
func JSON(data []byte) (*Patch, error) {
	if !json.Valid(data) {
		return nil, status.BadRequest("invalid JSON patch")
	}
	var operations []operation
	strict, err := kjson.UnmarshalStrict(data, &operations)
	if err != nil {
		return nil, status.BadRequest("error decoding patch: %v", err)
	}
	var problems []string
	for _, e := range strict {
		problems = append(problems, "json patch "+e.Error())
	}
	if len(operations) > MaxOperations {
		return nil, status.TooLarge(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", MaxOperations, len(operations)))
	}
	return &Patch{Duplicates: problems, apply: func(old object.Tree) (object.Tree, error) {
		doc := document{root: object.CloneTree(old)}
		for _, op := range operations {
			if err := doc.do(op); errors.Is(err, errCopied) {
				return nil, status.TooLarge(fmt.Sprintf("Unable to complete the copy, the accumulated size increase of copy is over the limit of %d bytes", MaxCopied))
			} else if err != nil {
				return nil, unprocessable()
			}
		}
		if object.Deeper(doc.root, object.MaxDepth) {
			return nil, unprocessable()
		}
		return doc.root, nil
	}}, nil
}

// unprocessable says, in the few words that Kubernetes has for it, that a patch
// does not fit the object.
func unprocessable() *status.Error {
	return &status.Error{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request",
		Details: &metav1.StatusDetails{},
	}}
}

var (
	errMisfit = errors.New("the operation does not fit the object")
	errCopied = errors.New("the patch copies too much")
)

// A document is an object in the middle of being patched. It is its own.
type document struct {
	root   object.Tree
	copied int
}

func (d *document) do(op operation) error {
	switch op.Op {
	case "add":
		return d.edit(op.Path, func(c container) error { return c.add(object.Clone(op.Value)) })
	case "remove":
		return d.edit(op.Path, container.remove)
	case "replace":
		return d.edit(op.Path, func(c container) error { return c.replace(object.Clone(op.Value)) })
	case "test":
		return d.edit(op.Path, func(c container) error {
			if v, _ := c.get(); !object.Equal(v, op.Value) {
				return errMisfit
			}
			return nil
		})
	case "move":
		var moved any
		err := d.edit(op.From, func(c container) error {
			var ok bool
			if moved, ok = c.get(); !ok {
				return errMisfit
			}
			return c.remove()
		})
		if err != nil {
			return err
		}
		return d.edit(op.Path, func(c container) error { return c.add(moved) })
	case "copy":
		var copied any
		err := d.edit(op.From, func(c container) error {
			v, ok := c.get()
			if !ok && c.tree == nil {
				return errMisfit
			}
			if d.copied += len(object.AppendJSON(nil, v)); d.copied > MaxCopied {
				return errCopied
			}
			copied = object.Clone(v)
			return nil
		})
		if err != nil {
			return err
		}
		return d.edit(op.Path, func(c container) error { return c.add(copied) })
	default:
		return errMisfit
	}
}

// A container is the object or array that holds what a path points to.
type container struct {
	tree  object.Tree
	list  []any
	store func(list []any) // puts a changed list where it was
	key   string
}

// edit calls change with the container that path's last element is in.
func (d *document) edit(path string, change func(container) error) error {
	elements := strings.Split(path, "/")
	if len(elements) < 2 {
		return errMisfit
	}
	for i, e := range elements {
		elements[i] = strings.ReplaceAll(strings.ReplaceAll(e, "~1", "/"), "~0", "~")
	}
	c := container{tree: d.root}
	for _, element := range elements[1 : len(elements)-1] {
		c.key = element
		next, ok := c.get()
		if !ok {
			return errMisfit
		}
		switch v := next.(type) {
		case object.Tree:
			c = container{tree: v}
		case []any:
			parent := c
			c = container{list: v, store: func(list []any) { _ = parent.replace(list) }}
		default:
			return errMisfit
		}
	}
	c.key = elements[len(elements)-1]
	return change(c)
}

// index resolves the key of a list, which has limit places.
func (c container) index(limit int) (int, bool) {
	i, err := strconv.Atoi(c.key)
	if err != nil {
		return 0, false
	}
	if i < 0 {
		i += limit
	}
	return i, i >= 0 && i < limit
}

func (c container) get() (any, bool) {
	if c.tree != nil {
		v, ok := c.tree[c.key]
		return v, ok
	}
	i, ok := c.index(len(c.list))
	if !ok {
		return nil, false
	}
	return c.list[i], true
}

func (c container) add(v any) error {
	if c.tree != nil {
		c.tree[c.key] = v
		return nil
	}
	i, ok := len(c.list), c.key == "-"
	if !ok {
		i, ok = c.index(len(c.list) + 1)
	}
	if !ok {
		return errMisfit
	}
	c.store(slices.Insert(c.list, i, v))
	return nil
}

// replace puts v where something is; in an object, as in Kubernetes, also where
// nothing is.
func (c container) replace(v any) error {
	if c.tree != nil {
		c.tree[c.key] = v
		return nil
	}
	i, ok := c.index(len(c.list))
	if !ok {
		return errMisfit
	}
	c.list[i] = v
	return nil
}

func (c container) remove() error {
	if _, ok := c.get(); !ok {
		return errMisfit
	}
	if c.tree != nil {
		delete(c.tree, c.key)
		return nil
	}
	i, _ := c.index(len(c.list))
	c.store(slices.Delete(c.list, i, i+1))
	return nil
}
