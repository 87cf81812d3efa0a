package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
)

// addAuthorization adds the flags that say how it is decided who may do what.
func (f *serveFlags) addAuthorization(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.authorization.Modes, "authorization-mode", []string{app.AuthorizeByRoles},
		"how it is decided who may do what, in this order, until one decides: "+strings.Join(app.AuthorizationModes(), ", "))
}
