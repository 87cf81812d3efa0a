package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Names of the plugins for kubectl.
const (
	kubectlName  = "kubectl-anykind"
	completeName = "kubectl_complete-anykind"
	createName   = "kubectl-create-crd"
)

// created is the command behind kubectl create crd.
func created() []string { return []string{"crd", "infer"} }

// pluginNames returns the names to install. The first one is the program, see plugin.Folder.
func pluginNames(root *cobra.Command) []string {
	names := []string{kubectlName, completeName}
	if _, rest, err := root.Find(created()); err == nil && len(rest) == 0 {
		names = append(names, createName)
	}
	return names
}

// asPlugin rewrites help and messages for kubectl anykind.
func asPlugin(root *cobra.Command) *cobra.Command {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl anykind"}
	root.CompletionOptions.DisableDefaultCmd = true // kubectl completion does it
	reword(root, root)
	return root
}

// reword rewrites command names in the texts of a command and its subcommands.
func reword(root, c *cobra.Command) {
	c.Long, c.Example = asCalled(root, c.Long), asCalled(root, c.Example)
	for _, below := range c.Commands() {
		reword(root, below)
	}
}

// asCalled rewrites command names in a text for the name of the program.
func asCalled(root *cobra.Command, text string) string {
	if root.DisplayName() == root.Name() {
		return text
	}
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	commands := regexp.MustCompile(`\b` + root.Name() + ` (` + strings.Join(names, "|") + `)\b`)
	return commands.ReplaceAllString(text, root.DisplayName()+" $1")
}

// alone turns a subcommand into a program with its own name.
func alone(root *cobra.Command, called string, path ...string) *cobra.Command {
	c, rest, err := root.Find(path)
	if err != nil || len(rest) > 0 {
		return root
	}
	was := c.CommandPath()
	c.Parent().RemoveCommand(c)
	c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: called}
	c.Long, c.Example = strings.ReplaceAll(c.Long, was, called), strings.ReplaceAll(c.Example, was, called)
	return c
}
