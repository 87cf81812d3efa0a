package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/flags"
)

// year is the default lifetime of a client certificate.
const year = 365 * 24 * time.Hour

type userFlags struct {
	user       app.User
	kubeconfig string
}

func userCommand() *cobra.Command {
	var f userFlags
	cmd := &cobra.Command{
		Use:   "user NAME",
		Short: "Create a client certificate and a kubeconfig for a user",
		Long: `Create a client certificate and a kubeconfig for a user, signed by the CA in the data
directory of a server. The server need not run or restart.

The rights of the user come from the roles that are bound to NAME and to the groups. A
new user has none. If --kubeconfig names a kubeconfig that anykind wrote, such as the
administrator's, it gets a second context, NAME@anykind.

A certificate cannot be revoked: it is valid until it expires. To revoke the rights of a
user, delete the role bindings. Avoid the group system:masters: no role binding limits it.`,
		Example: `  anykind user jane --group developers
  anykind user ci --duration 24h --kubeconfig - > ci.kubeconfig`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("exactly one NAME is required, got %d; see %s --help", len(args), cmd.CommandPath())}
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.user.Name = args[0]
			return f.make(cmd.OutOrStdout())
		},
	}
	given := cmd.Flags()
	given.SortFlags = false
	given.StringArrayVar(&f.user.Groups, "group", nil, "group of the user; repeatable")
	given.StringVar(&f.kubeconfig, "kubeconfig", "", "file for the kubeconfig, - for standard output (default users/NAME.kubeconfig in --data-dir)")
	given.DurationVar(&f.user.Life, "duration", year, "lifetime of the certificate")
	given.StringVar(&f.user.Dir, "data-dir", flags.DefaultDataDir, "data directory of the server")
	given.StringVar(&f.user.Administrator, "admin-kubeconfig", "", "the administrator's kubeconfig, with the URL of the server (default admin.kubeconfig in --data-dir)")
	return cmd
}

// make creates the files and prints how to use them.
func (f *userFlags) make(out io.Writer) error {
	if f.user.Administrator == "" {
		f.user.Administrator = flags.AdministratorFile(f.user.Dir)
	}
	credentials, until, err := f.user.Credentials()
	if err != nil {
		return err
	}
	if f.kubeconfig == "-" {
		_, err := out.Write(credentials.Encode())
		return err
	}
	if f.kubeconfig == "" {
		f.kubeconfig = filepath.Join(f.user.Dir, "users", url.PathEscape(f.user.Name)+".kubeconfig")
	}
	if err := credentials.Write(f.kubeconfig); err != nil {
		return err
	}
	in := ""
	if len(f.user.Groups) > 0 {
		in = " in " + strings.Join(f.user.Groups, ", ")
	}
	fmt.Fprintf(out, "user %s%s, certificate valid until %s\n", f.user.Name, in, until.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "to use kubectl as %s: kubectl --kubeconfig %s --context %s\n", f.user.Name,
		quoteShell(absolute(f.kubeconfig)), quoteShell(credentials.Context()))
	return nil
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}
