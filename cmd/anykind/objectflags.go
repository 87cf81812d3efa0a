package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/history"
)

// objectFlags select objects of a server.
type objectFlags struct {
	server    serverFlags
	namespace string
}

func (f *objectFlags) add(section *pflag.FlagSet) {
	section.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the objects (default: that of the context)")
}

// use calls do with a client of the server, and with the namespace of the context if no flag has one.
func (f *objectFlags) use(do func(ctx context.Context, c history.Client, namespace string) error) error {
	config, err := f.server.find()
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	c := history.Client{Server: apiclient.Server{Client: config.Client(), URL: config.URL}}
	defer c.Client.CloseIdleConnections()
	namespace := f.namespace
	if namespace == "" {
		namespace = config.Namespace
	}
	return do(ctx, c, namespace)
}

// useOne is use for the one object that the arguments name.
func (f *objectFlags) useOne(args []string, do func(ctx context.Context, c history.Client, o history.Object) error) error {
	return f.use(func(ctx context.Context, c history.Client, namespace string) error {
		objects, err := named(ctx, c, args, namespace)
		if err != nil {
			return err
		}
		return do(ctx, c, objects[0])
	})
}

// named returns the objects that arguments name: KIND NAME, KIND/NAME, or all of a KIND.
func named(ctx context.Context, c history.Client, args []string, namespace string) ([]history.Object, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	if len(args) == 2 && !strings.Contains(args[0]+args[1], "/") {
		args = []string{args[0] + "/" + args[1]}
	}
	return found(c, kinds, args, namespace)
}

// found returns the objects of KIND/NAME, or all of a KIND.
func found(c history.Client, kinds []apiclient.Kind, args []string, namespace string) (all []history.Object, err error) {
	for _, arg := range args {
		words, name, _ := strings.Cut(arg, "/")
		for word := range strings.SplitSeq(words, ",") {
			k, err := c.Find(kinds, word)
			if err != nil {
				return nil, err
			}
			o := history.Object{Kind: k, Name: name}
			if k.Namespaced {
				o.Namespace = namespace
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// oneObject accepts KIND NAME and KIND/NAME.
func oneObject(cmd *cobra.Command, args []string) error {
	kind, name, _ := strings.Cut(strings.Join(args, "/"), "/")
	if len(args) > 2 || kind == "" || name == "" || strings.ContainsAny(kind, ",") || strings.Contains(name, "/") {
		return usageError{fmt.Errorf("%s needs one object, as KIND NAME or KIND/NAME; see %[1]s --help", cmd.CommandPath())}
	}
	return nil
}
