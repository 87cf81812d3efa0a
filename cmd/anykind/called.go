package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Names by which kubectl calls its plugins.
const (
	kubectlName  = "kubectl-anykind"
	completeName = "kubectl_complete-anykind"
	createName   = "kubectl-create-crd"
)

// created is the command that kubectl create crd is.
func created() []string { return []string{"crd", "infer"} }

// pluginNames are the names that are installed. The first one is the program, see plugin.Folder.
func pluginNames(root *cobra.Command) []string {
	names := []string{kubectlName, completeName}
	if _, rest, err := root.Find(created()); err == nil && len(rest) == 0 {
		names = append(names, createName)
	}
	return names
}

// asPlugin has a command speak of itself as users of kubectl call it.
func asPlugin(root *cobra.Command) *cobra.Command {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl anykind"}
	root.CompletionOptions.DisableDefaultCmd = true // kubectl completion does it
	reword(root, root)
	return root
}

// reword has the texts of a command and of those below it name commands as they are called.
func reword(root, c *cobra.Command) {
	c.Long, c.Example = asCalled(root, c.Long), asCalled(root, c.Example)
	for _, below := range c.Commands() {
		reword(root, below)
	}
}

// asCalled writes the commands that a text names as they are called.
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

// alone makes a command below a root a program of its own, which speaks of itself as it is called.
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
