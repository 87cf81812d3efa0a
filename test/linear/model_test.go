package linear

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// The model and its checker find each violation.
func TestModel(t *testing.T) {
	op := func(call, end int64, in input, out output) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: end}
	}
	made := op(0, 1, input{operation: create, value: 7}, output{now: entry{7, 3}})
	patched := op(2, 9, input{operation: patch, value: 8}, output{now: entry{8, 4}})
	lost := output{outcome: unknown}
	both := state{entries: [objects]entry{{8, 4}}}
	for _, tt := range []struct {
		name string
		then []porcupine.Operation
		want bool
	}{
		{"one after the other", []porcupine.Operation{op(10, 11, input{operation: get}, output{now: entry{8, 4}})}, true},
		{"while it is written, before", []porcupine.Operation{op(3, 4, input{operation: get}, output{now: entry{7, 3}})}, true},
		{"while it is written, after", []porcupine.Operation{op(3, 4, input{operation: get}, output{now: entry{8, 4}})}, true},
		{"forth and back", []porcupine.Operation{
			op(3, 4, input{operation: get}, output{now: entry{8, 4}}), op(5, 6, input{operation: get}, output{now: entry{7, 3}})}, false},
		{"a stale read", []porcupine.Operation{op(10, 11, input{operation: get}, output{now: entry{7, 3}})}, false},
		{"a list", []porcupine.Operation{op(10, 11, input{operation: list}, output{all: both, revision: 4})}, true},
		{"a stale list", []porcupine.Operation{op(10, 11, input{operation: list}, output{all: both, revision: 3})}, false},
		{"an update of what was not seen", []porcupine.Operation{
			op(10, 11, input{operation: update, value: 9, expects: 3}, output{now: entry{9, 5}})}, false},
		{"an update that is refused", []porcupine.Operation{
			op(10, 11, input{operation: update, value: 9, expects: 3}, output{outcome: conflict})}, true},
		{"an update that is refused for nothing", []porcupine.Operation{
			op(10, 11, input{operation: update, value: 9, expects: 4}, output{outcome: conflict})}, false},
		{"a revision of before", []porcupine.Operation{op(10, 11, input{operation: patch, value: 9}, output{now: entry{9, 2}})}, false},
		{"gone", []porcupine.Operation{
			op(10, 11, input{operation: remove}, output{}), op(12, 13, input{operation: get}, output{outcome: absent})}, true},
		{"gone and there", []porcupine.Operation{
			op(10, 11, input{operation: remove}, output{}), op(12, 13, input{operation: get}, output{now: entry{8, 4}})}, false},
		{"a write without an answer that was not done", []porcupine.Operation{
			op(10, 11, input{operation: patch, value: 9}, lost), op(12, 13, input{operation: get}, output{now: entry{8, 4}})}, true},
		{"that was done", []porcupine.Operation{
			op(10, 11, input{operation: patch, value: 9}, lost), op(12, 13, input{operation: get}, output{now: entry{9, 5}})}, true},
		{"that was done and undone", []porcupine.Operation{
			op(10, 11, input{operation: patch, value: 9}, lost), op(12, 13, input{operation: get}, output{now: entry{9, 5}}),
			op(14, 15, input{operation: get}, output{now: entry{8, 4}})}, false},
		{"that was done late, and seen in nothing but what others were told", []porcupine.Operation{
			op(10, 11, input{operation: remove}, lost), op(12, 13, input{operation: get}, output{now: entry{8, 4}}),
			op(14, 15, input{operation: create, value: 9}, output{now: entry{9, 6}})}, true},
		{"that was done before it was asked for", []porcupine.Operation{
			op(12, 13, input{operation: remove}, lost), op(10, 11, input{operation: get}, output{outcome: absent})}, false},
	} {
		history := append([]porcupine.Operation{made, patched}, tt.then...)
		resolveUnknown(history)
		if got := porcupine.CheckOperations(model(), history); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
