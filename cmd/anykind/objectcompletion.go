package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// completeObject completes KIND and NAME from the server. Without names, it completes kinds only.
func (f *objectFlags) completeObject(withNames bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return f.server.asking(func(ctx context.Context, client *http.Client, url string) ([]string, error) {
			s := apiclient.Server{Client: client, URL: url}
			kinds, err := s.Kinds(ctx)
			switch {
			case err != nil, withNames && len(args) > 1:
				return nil, err
			case withNames && len(args) == 1:
				return f.names(ctx, s, kinds, args[0])
			}
			names := make([]string, len(kinds))
			for i := range kinds {
				names[i] = kinds[i].GroupResource().String()
			}
			return names, nil
		})(cmd, args, typed)
	}
}

// names returns the names of the objects of a kind, up to a limit.
func (f *objectFlags) names(ctx context.Context, s apiclient.Server, kinds []apiclient.Kind, word string) ([]string, error) {
	k, err := s.Find(kinds, word)
	if err != nil || strings.Contains(word, "/") {
		return nil, err
	}
	namespace := f.namespace
	if config, err := f.server.find(); err == nil && namespace == "" {
		namespace = config.Namespace
	}
	objects, err := s.Objects(ctx, k.Path(namespace, "")+"?limit=500")
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = object.Name(o)
	}
	return names, err
}
