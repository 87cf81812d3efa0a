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
		patched, err := Operations(operations).Apply(old)
		switch {
		case errors.Is(err, errCopied):
			return nil, status.TooLarge(fmt.Sprintf("Unable to complete the copy, the accumulated size increase of copy is over the limit of %d bytes", MaxCopied))
		case err != nil:
			return nil, unprocessable()
		}
		return patched, nil
	}}, nil
}

// Operations are a JSON patch that somebody else than a client has made: of which fields that
// are unknown say nothing, and which tells what is wrong with it.
type Operations []operation

// DecodeOperations decodes Operations.
func DecodeOperations(data []byte) (Operations, error) {
	var all Operations
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); err != nil {
		return nil, err
	}
	if len(all) > MaxOperations {
		return nil, fmt.Errorf("the allowed maximum operations in a JSON patch is %d, got %d", MaxOperations, len(all))
	}
	return all, nil
}

// Apply returns what the operations make of old, which they do not change and share nothing with.
func (all Operations) Apply(old object.Tree) (object.Tree, error) {
	doc := document{root: object.CloneTree(old)}
	for _, op := range all {
		if err := doc.do(op); err != nil {
			return nil, err
		}
	}
	if object.Deeper(doc.root, object.MaxDepth) {
		return nil, fmt.Errorf("the object is nested more than %d levels deep", object.MaxDepth)
	}
	return doc.root, nil
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

// ErrTest says that an operation has tested a value that is another one.
var ErrTest = errors.New("test failed")

var (
	errMissing = errors.New("missing value")
	errIndex   = errors.New("invalid index referenced")
	errCopied  = fmt.Errorf("the operations copy more than %d bytes", MaxCopied)
)

// A told error says all that there is to be said.
type told struct{ error }

// A document is an object in the middle of being patched. It is its own.
type document struct {
	root   object.Tree
	copied int
}

// do does one operation. What does not fit is told in the words of the library that Kubernetes
// patches with.
func (d *document) do(op operation) error {
	switch op.Op {
	case "add":
		return d.edit(op.Op, "add", "path", op.Path, func(c container) error { return c.add(object.Clone(op.Value)) })
	case "remove":
		return d.edit(op.Op, "remove", "path", op.Path, container.remove)
	case "replace":
		return d.edit(op.Op, "remove", "path", op.Path, func(c container) error { return c.replace(object.Clone(op.Value)) })
	case "test":
		return d.edit(op.Op, "test", "path", op.Path, func(c container) error {
			v, err := c.get()
			if err != nil && c.tree == nil {
				return err
			}
			if !object.Equal(v, op.Value) {
				return fmt.Errorf("testing value %s failed: %w", op.Path, ErrTest)
			}
			return nil
		})
	case "move":
		var moved any
		err := d.edit(op.Op, "move", "from path", op.From, func(c container) (err error) {
			if moved, err = c.get(); err == nil {
				err = c.remove()
			}
			if err != nil { // which names no more of the path
				err = &told{fmt.Errorf("error in move for path: '%s': %w", c.key, err)}
			}
			return err
		})
		if err != nil {
			return err
		}
		return d.edit(op.Op, "move", "destination path", op.Path, func(c container) error { return c.add(moved) })
	case "copy":
		var copied any
		err := d.edit(op.Op, "copy", "from path", op.From, func(c container) error {
			v, err := c.get()
			if err != nil && c.tree == nil {
				return err
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
		return d.edit(op.Op, "copy", "destination path", op.Path, func(c container) error { return c.add(copied) })
	default:
		return fmt.Errorf("Unexpected kind: %s", op.Op)
	}
}

// A container is the object or array that holds what a path points to.
type container struct {
	tree  object.Tree
	list  []any
	store func(list []any) // puts a changed list where it was
	key   string
}

// edit calls change with the container that the last element of a path is in. An error says which
// operation it is of, by the word that it has there, and which of its paths.
func (d *document) edit(op, word, which, path string, change func(container) error) error {
	missing := func() error {
		if op == "add" || op == "remove" {
			path = `"` + path + `"`
		}
		return fmt.Errorf("%s operation does not apply: doc is missing %s: %s: %w", op, which, path, errMissing)
	}
	elements := strings.Split(path, "/")
	if len(elements) < 2 {
		return missing()
	}
	for i, e := range elements {
		elements[i] = strings.ReplaceAll(strings.ReplaceAll(e, "~1", "/"), "~0", "~")
	}
	c := container{tree: d.root}
	for _, element := range elements[1 : len(elements)-1] {
		c.key = element
		next, err := c.get()
		if err != nil {
			return missing()
		}
		switch v := next.(type) {
		case object.Tree:
			c = container{tree: v}
		case []any:
			parent := c
			c = container{list: v, store: func(list []any) { _ = parent.replace(list) }}
		default:
			return missing()
		}
	}
	c.key = elements[len(elements)-1]
	err := change(c)
	var whole *told
	if err == nil || errors.Is(err, ErrTest) || errors.Is(err, errCopied) || errors.As(err, &whole) {
		return err
	}
	return fmt.Errorf("error in %s for path: '%s': %w", word, path, err)
}

// index resolves the key of a list, which has limit places.
func (c container) index(limit int) (int, error) {
	i, err := strconv.Atoi(c.key)
	if err != nil {
		return 0, fmt.Errorf("value was not a proper array index: '%s': %w", c.key, err)
	}
	at := i
	if at < 0 {
		at += limit
	}
	if at < 0 || at >= limit {
		return 0, fmt.Errorf("Unable to access invalid index: %d: %w", i, errIndex)
	}
	return at, nil
}

func (c container) get() (any, error) {
	if c.tree != nil {
		v, ok := c.tree[c.key]
		if !ok {
			return nil, fmt.Errorf("Unable to remove nonexistent key: %s: %w", c.key, errMissing)
		}
		return v, nil
	}
	i, err := c.index(len(c.list))
	if err != nil {
		return nil, err
	}
	return c.list[i], nil
}

func (c container) add(v any) error {
	if c.tree != nil {
		c.tree[c.key] = v
		return nil
	}
	i := len(c.list)
	if c.key != "-" {
		var err error
		if i, err = c.index(len(c.list) + 1); err != nil {
			return err
		}
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
	i, err := c.index(len(c.list))
	if err != nil {
		return err
	}
	c.list[i] = v
	return nil
}

func (c container) remove() error {
	if _, err := c.get(); err != nil {
		return err
	}
	if c.tree != nil {
		delete(c.tree, c.key)
		return nil
	}
	i, _ := c.index(len(c.list))
	c.store(slices.Delete(c.list, i, i+1))
	return nil
}
