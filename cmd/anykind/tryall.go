package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/store/encrypt"
)

// try tries the objects of all definitions in a file.
func try(cmd *cobra.Command, f *tryFlags, args []string) error {
	definitions, err := check.Definitions(args, cmd.InOrStdin())
	if err == nil && len(definitions) == 0 {
		err = fmt.Errorf("no CustomResourceDefinitions in %v", args)
	}
	if err != nil {
		return unsureError{err}
	}
	ctx, restore := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	keys, end, err := f.keys(ctx)
	if err != nil {
		return unsureError{err}
	}
	defer end()
	stored, err := f.stored(keys)
	if err != nil {
		return unsureError{err}
	}
	var outcomes []check.Outcome
	for _, d := range definitions {
		outcome, err := tryOne(ctx, cmd, f, stored, d)
		if err != nil {
			return unsureError{err}
		}
		outcomes = append(outcomes, outcome)
	}
	if err := writeFound(cmd, &f.output, check.WriteOutcomes, check.WriteOutcomesJSON, outcomes); err != nil {
		return err
	}
	if n := check.Troubled(outcomes); n > 0 {
		return fmt.Errorf("findings that break objects: %d", n)
	}
	return nil
}

// keys opens the keys of encrypted objects, if any.
func (f *tryFlags) keys(ctx context.Context) (keys *encrypt.Keyring, end func(), err error) {
	if f.encryption == "" {
		return nil, func() {}, nil
	}
	if keys, err = app.OpenKeys(ctx, f.encryption); err != nil {
		return nil, nil, err
	}
	return keys, func() { _ = keys.Close() }, nil // nothing was written
}

// tryOne tries the objects of one definition.
func tryOne(ctx context.Context, cmd *cobra.Command, f *tryFlags, stored check.Stored, d *v1.CustomResourceDefinition) (check.Outcome, error) {
	bar := newBar(cmd.ErrOrStderr(), "tried")
	defer bar.clear()
	return check.TryAll(ctx, stored, d, check.TrialOptions{Names: f.names, Namespace: f.namespace, Progress: bar.show})
}
