package history

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// Uids are the uids in a server by those in a copy of it; "" for an object that a step creates.
type Uids map[string]string

// Brings plans the change of an object that was made in a copy of the server. Owners have to be planned, and
// written, before the objects that they own: uids are shared by the steps of all changes.
func (c Client) Brings(ctx context.Context, o Object, change Change, uids Uids, force bool) (*Step, error) {
	uid := ""
	if change.Type != Deleted {
		uid = object.UID(change.Object)
	}
	change.Before, change.Object = uids.rename(change.Object), change.Before
	switch change.Type {
	case Added:
		change.Type = Deleted
	case Deleted:
		change.Type = Added
	}
	s := &Step{Object: o, Changes: []Change{change}, copied: true, uids: uids, uid: uid}
	if err := c.plan(ctx, s, s.Changes, force); err != nil {
		return nil, err
	}
	if uid != "" && s.result != nil {
		uids[uid] = object.UID(s.now)
	}
	return s, nil
}

func owners(o object.Tree) []any {
	metadata, _ := o["metadata"].(object.Tree)
	references, _ := metadata["ownerReferences"].([]any)
	return references
}

// rename returns an object with the uids of its owners in the server.
func (u Uids) rename(o object.Tree) object.Tree {
	if u == nil || len(owners(o)) == 0 {
		return o
	}
	o = object.CloneTree(o)
	for _, r := range owners(o) {
		reference, _ := r.(object.Tree)
		uid, _ := reference["uid"].(string)
		if in := u[uid]; in != "" {
			reference["uid"] = in
		}
	}
	return o
}

// creates reports whether a step creates the owner of a reference.
func (u Uids) creates(reference object.Tree) bool {
	uid, _ := reference["uid"].(string)
	in, ok := u[uid]
	return ok && in == ""
}

// writeOwned writes a step, with the uids of owners that earlier steps created.
func (c Client) writeOwned(ctx context.Context, s *Step) error {
	s.result = s.uids.rename(s.result)
	for _, r := range owners(s.result) {
		if reference, _ := r.(object.Tree); s.uids.creates(reference) {
			return fmt.Errorf("its owner was not created: %v %v", reference["kind"], reference["name"])
		}
	}
	answer, err := c.write(ctx, s, false)
	if s.Action() == remove && apiclient.Missing(err) { // a controller was faster
		return nil
	}
	if err == nil && s.uids != nil && s.Action() == create {
		s.uids[s.uid] = object.UID(answer)
	}
	return err
}
