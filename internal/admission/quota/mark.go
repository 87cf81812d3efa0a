package quota

import (
	"context"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry/apply"
)

// mark returns the quota with the charge, to be stored with the write.
func (c *charge) mark(ctx context.Context, quotas *resource.Definition) (resource.Mark, error) {
	data, err := c.JSON()
	if err != nil {
		return resource.Mark{}, err
	}
	old, _, err := codec.Decode(codec.JSON, data)
	if err != nil {
		return resource.Mark{}, status.Internal(err)
	}
	t := object.CloneTree(old)
	state, _ := t["status"].(object.Tree)
	if state == nil {
		state = object.Tree{}
		t["status"] = state
	}
	state["used"] = usage.Tree(c.used)
	t = apply.FieldsOf(quotas, quotas.StorageVersion(), "status").Update(ctx, old, t, apply.Server)
	return resource.Mark{Key: c.Key, Revision: c.Revision, Moves: true, Value: object.AppendJSON(nil, t)}, nil
}
