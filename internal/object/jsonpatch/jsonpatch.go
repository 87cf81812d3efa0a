// Package jsonpatch applies JSON patches (RFC 6902) to trees.
//
// Errors have the words of the library that Kubernetes uses. The package knows no requests.
package jsonpatch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

const (
	// MaxOperations limits the operations of a JSON patch.
	MaxOperations = 10_000
	// MaxCopied limits the bytes that the copy operations of one JSON patch may add.
	MaxCopied = 3 << 20
)

// An Operation is one operation of a JSON patch.
type Operation struct {
	Op    string  `json:"op"`
	Path  *string `json:"path"`
	From  *string `json:"from"`
	Value any     `json:"value"`
}

// operations are the valid values of op.
var operations = []string{"add", "remove", "replace", "test", "move", "copy"}

// lacks returns an error if a required field of an operation is missing.
func (op *Operation) lacks() error {
	switch {
	case op.From == nil && (op.Op == "move" || op.Op == "copy"):
		return fmt.Errorf("%s operation failed to decode from: operation, missing from field: %w", op.Op, errMissing)
	case op.Path != nil:
		return nil
	case op.Op == "replace" || op.Op == "test" || op.Op == "move":
		return fmt.Errorf("%s operation failed to decode path: operation missing path field: %w", op.Op, errMissing)
	default:
		return fmt.Errorf("%s operation failed to decode path: %w", op.Op, errMissing)
	}
}

// Operations are a JSON patch from another source than a client. Unknown fields in it are ignored, and
// its errors are complete.
type Operations []Operation

// Decode decodes Operations.
func Decode(data []byte) (Operations, error) {
	var all Operations
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); err != nil {
		return nil, err
	}
	if len(all) > MaxOperations {
		return nil, fmt.Errorf("the allowed maximum operations in a JSON patch is %d, got %d", MaxOperations, len(all))
	}
	return all, nil
}

// Apply returns old with the operations applied. It does not change old and shares nothing with it.
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

// ErrTest is the error of a test operation whose value differs.
var ErrTest = errors.New("test failed")

// ErrCopied is the error of operations that copy too much.
var ErrCopied = fmt.Errorf("the operations copy more than %d bytes", MaxCopied)

var (
	errMissing = errors.New("missing value")
	errIndex   = errors.New("invalid index referenced")
)

// A document is a patched object in progress. It shares nothing with others.
type document struct {
	root   object.Tree
	copied int
}

// do executes one operation. Errors have the words of Kubernetes' JSON patch library.
func (d *document) do(op Operation) error {
	if !slices.Contains(operations, op.Op) {
		return fmt.Errorf("Unexpected kind: %s", op.Op)
	}
	if err := op.lacks(); err != nil {
		return err
	}
	switch op.Op {
	case "add":
		return d.add("add operation does not apply: doc is missing path: \"%s\"", "error in add for path: '%s'", *op.Path, object.Clone(op.Value))
	case "remove":
		c, found := d.find(*op.Path)
		if !found {
			return missing("remove operation does not apply: doc is missing path: \"%s\"", *op.Path)
		}
		return failed("error in remove for path: '%s'", *op.Path, c.remove())
	case "replace":
		return d.replace(op)
	case "test":
		return d.test(op)
	case "move":
		return d.move(op)
	default:
		return d.copy(op)
	}
}

func missing(words, path string) error { return fmt.Errorf(words+": %w", path, errMissing) }

// failed wraps an error with words that name a path. It returns nil for nil.
func failed(words, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(words+": %w", path, err)
}

func (d *document) add(lost, wrong, path string, v any) error {
	c, found := d.find(path)
	if !found {
		return missing(lost, path)
	}
	return failed(wrong, path, c.add(v))
}

func (d *document) replace(op Operation) error {
	if *op.Path == "" {
		whole, ok := object.Clone(op.Value).(object.Tree)
		if !ok {
			return errors.New("replace operation value must be object or array: %!w(<nil>)")
		}
		d.root = whole
		return nil
	}
	c, found := d.find(*op.Path)
	if !found {
		return missing("replace operation does not apply: doc is missing path: %s", *op.Path)
	}
	if err := c.replace(object.Clone(op.Value)); err != nil {
		return missing("replace operation does not apply: doc is missing key: %s", *op.Path)
	}
	return nil
}

func (d *document) test(op Operation) error {
	var v any = d.root
	if *op.Path != "" {
		c, found := d.find(*op.Path)
		if !found {
			return missing("test operation does not apply: is missing path: %s", *op.Path)
		}
		var err error
		if v, err = c.get(); err != nil && c.tree == nil {
			return failed("error in test for path: '%s'", *op.Path, err)
		}
	}
	if !object.Equal(v, op.Value) {
		return fmt.Errorf("testing value %s failed: %w", *op.Path, ErrTest)
	}
	return nil
}

func (d *document) move(op Operation) error {
	c, found := d.find(*op.From)
	if !found {
		return missing("move operation does not apply: doc is missing from path: %s", *op.From)
	}
	moved, err := c.get()
	if err == nil {
		err = c.remove()
	}
	if err != nil { // it names no more of the path
		return failed("error in move for path: '%s'", c.key, err)
	}
	return d.add("move operation does not apply: doc is missing destination path: %s", "error in move for path: '%s'", *op.Path, moved)
}

func (d *document) copy(op Operation) error {
	c, found := d.find(*op.From)
	if !found {
		return missing("copy operation does not apply: doc is missing from path: %s", *op.From)
	}
	v, err := c.get()
	if err != nil && c.tree == nil {
		return failed("error in copy for from: '%s'", *op.From, err)
	}
	if d.copied += len(object.AppendJSON(nil, v)); d.copied > MaxCopied {
		return ErrCopied
	}
	return d.add("copy operation does not apply: doc is missing destination path: %s", "error while adding value during copy%.0s", *op.Path, object.Clone(v))
}

// A container is the parent of a path: an object or an array.
type container struct {
	tree  object.Tree
	list  []any
	store func(list []any) // replaces the list in its parent
	key   string
}

// Elements returns the elements of a JSON pointer (RFC 6901). The first element is the text before the first
// slash.
func Elements(pointer string) []string {
	elements := strings.Split(pointer, "/")
	for i, e := range elements {
		elements[i] = strings.ReplaceAll(strings.ReplaceAll(e, "~1", "/"), "~0", "~")
	}
	return elements
}

// find returns the container of the last element of a path.
func (d *document) find(path string) (c container, found bool) {
	elements := Elements(path)
	if len(elements) < 2 {
		return c, false
	}
	c = container{tree: d.root}
	for _, element := range elements[1 : len(elements)-1] {
		c.key = element
		next, err := c.get()
		if err != nil {
			return c, false
		}
		switch v := next.(type) {
		case object.Tree:
			c = container{tree: v}
		case []any:
			parent := c
			c = container{list: v, store: func(list []any) { _ = parent.replace(list) }}
		default:
			return c, false
		}
	}
	c.key = elements[len(elements)-1]
	return c, true
}

// index resolves the index of a list with limit places.
func (c container) index(limit int) (int, error) {
	i, err := strconv.Atoi(c.key)
	if err != nil {
		return 0, err
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
		if i, err = c.index(len(c.list) + 1); errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("value was not a proper array index: '%s': %w", c.key, err)
		}
		if err != nil {
			return err
		}
	}
	c.store(slices.Insert(c.list, i, v))
	return nil
}

// replace replaces a value. In an object, as in Kubernetes, it also adds a missing one.
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
