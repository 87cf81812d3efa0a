package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/migration"
)

// completeTime limits a request for shell completion.
const completeTime = 3 * time.Second

// complete registers completion of these flags from the kubeconfig, and of --namespace from the server.
func (f *serverFlags) complete(c *cobra.Command) {
	for flag, names := range map[string]func(kubeconfig.Names) []string{
		"context": func(n kubeconfig.Names) []string { return n.Contexts },
		"cluster": func(n kubeconfig.Names) []string { return n.Clusters },
		"user":    func(n kubeconfig.Names) []string { return n.Users },
	} {
		register(c, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			o := kubeconfig.Options{}
			if f.file != "" {
				o.Files = []string{f.file}
			}
			known, err := kubeconfig.Known(o)
			return candidates(names(known), err)
		})
	}
	if c.Flags().Lookup("namespace") != nil {
		register(c, "namespace", f.asking(namespaces))
	}
}

// asking completes with the answer of a server.
func (f *serverFlags) asking(ask func(ctx context.Context, c *http.Client, url string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		config, err := f.find()
		if err != nil {
			return candidates(nil, err)
		}
		client := config.Client()
		defer client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		names, err := ask(ctx, client, config.URL)
		return candidates(names, err)
	}
}

func candidates(names []string, err error) ([]string, cobra.ShellCompDirective) {
	if err != nil {
		cobra.CompDebugln(err.Error(), true)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// namespaces returns the namespaces of a server.
func namespaces(ctx context.Context, client *http.Client, url string) ([]string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/namespaces?limit=500", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Metadata.Name
	}
	return names, nil
}

// migratable returns the kinds with objects that may be stored in another version.
func migratable(ctx context.Context, client *http.Client, url string) ([]string, error) {
	kinds, err := (&migration.Server{Client: client, URL: url}).Kinds(ctx, nil)
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].Name()
	}
	return names, err
}
