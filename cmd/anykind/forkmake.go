package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/fork"
	"github.com/anykind/anykind/internal/offline/history"
	"github.com/anykind/anykind/internal/store/atomicfile"
)

func (f *forkFlags) make(cmd *cobra.Command, name string) error {
	f.spec.Name = name
	var ok bool
	if f.spec.Webhooks, ok = map[string]string{"dry-run": "DryRun", "none": "None"}[f.webhooks]; !ok {
		return usageError{fmt.Errorf("--webhooks is %q: want dry-run or none", f.webhooks)}
	}
	if f.asOf != "" {
		m, err := history.ParseMoment(f.asOf, time.Now())
		if err != nil {
			return usageError{fmt.Errorf("--as-of is %w", err)}
		}
		if f.spec.ResourceVersion = m.Revision; m.Revision == "" {
			f.spec.AsOf = m.Time.UTC().Format(time.RFC3339)
		}
	}
	if err := f.addReplay(); err != nil {
		return err
	}
	file, err := filepath.Abs(cmp.Or(f.file, name+".kubeconfig"))
	if err != nil {
		return err
	}
	return f.use(func(ctx context.Context, c history.Client, _ string) error {
		if err := absent(file); err != nil {
			return err
		}
		forks := fork.Client{Server: c.Server}
		made, err := forks.Make(ctx, f.spec)
		if err != nil {
			return err
		}
		var config []byte
		chosen, err := f.server.chosen()
		if err == nil {
			config, err = kubeconfig.Below(chosen, name, made.Path)
		}
		if err == nil {
			err = atomicfile.Replace(file, config, 0o600)
		}
		if err != nil {
			return fmt.Errorf("the fork has the URL %s; its kubeconfig could not be written: %w", c.URL+made.Path, err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "fork %s of revision %s\nto use it: export KUBECONFIG=%s\n", name, made.ResourceVersion, file)
		return err
	})
}

// absent returns an error for a file that exists.
func absent(file string) error {
	_, err := os.Lstat(file)
	if err == nil {
		return fmt.Errorf("%s exists: remove it, or choose another file with -o", file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
