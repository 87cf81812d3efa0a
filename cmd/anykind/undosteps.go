package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/offline/history"
)

// steps returns the undo that flags and arguments name.
func (f *undoFlags) steps(ctx context.Context, c history.Client, args []string, namespace string) ([]*history.Step, error) {
	if f.by != "" {
		return f.stepsBy(ctx, c, args)
	}
	objects, err := named(ctx, c, args, namespace)
	if err != nil {
		return nil, err
	}
	var step *history.Step
	if f.toRevision != "" {
		step, err = c.Returns(ctx, objects[0], f.toRevision)
	} else {
		step, err = c.Undoes(ctx, objects[0], f.change, f.force)
	}
	return []*history.Step{step}, err
}

func (f *undoFlags) stepsBy(ctx context.Context, c history.Client, args []string) ([]*history.Step, error) {
	since, err := history.ParseTime(f.since, time.Now())
	if err != nil {
		return nil, usageError{fmt.Errorf("--since is %w", err)}
	}
	objects, err := everyKind(ctx, c, f.namespace)
	if len(args) > 0 {
		objects, err = nil, nil
		for _, arg := range args { // two kinds are no KIND NAME
			kinds, err := named(ctx, c, []string{arg}, f.namespace)
			if err != nil {
				return nil, err
			}
			objects = append(objects, kinds...)
		}
	}
	if err != nil {
		return nil, err
	}
	steps, err := c.UndoesBy(ctx, f.by, since, objects, len(args) == 0, f.force)
	if err == nil && len(steps) == 0 {
		return nil, fmt.Errorf("%s changed nothing since %s", f.by, since.UTC().Format(time.RFC3339))
	}
	return steps, err
}

// everyKind returns all kinds: with a namespace, those of its objects.
func everyKind(ctx context.Context, c history.Client, namespace string) ([]history.Object, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	var all []history.Object
	for i := range kinds {
		all = append(all, history.Object{Kind: &kinds[i], Namespace: namespace})
	}
	return slices.DeleteFunc(all, func(o history.Object) bool { return namespace != "" && !o.Namespaced }), nil
}
