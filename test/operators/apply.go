package operators

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Cluster is a server with a kubectl for it.
type Cluster struct {
	Kubectl    string
	Kubeconfig string
	// Dir is for kubectl's cache and its input files.
	Dir string
}

// Run runs kubectl and returns its output and its standard error.
func (c *Cluster) Run(ctx context.Context, args ...string) (printed, said string, err error) {
	command := exec.CommandContext(ctx, c.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig, "--cache-dir", filepath.Join(c.Dir, "cache")}, args...)...)
	command.Env = []string{"HOME=" + c.Dir, "PATH="}
	var out, warned bytes.Buffer
	command.Stdout, command.Stderr = &out, &warned
	err = command.Run()
	return out.String(), warned.String(), err
}

// Applied is the result of kubectl apply for a project.
type Applied struct {
	Accepted []string // objects, with the operation
	Said     []string // warnings and errors
}

func (a *Applied) add(printed, said string) {
	a.Accepted = append(a.Accepted, lines(printed)...)
	a.Said = append(a.Said, lines(said)...)
}

// lines returns the lines that are not empty, sorted.
func lines(text string) (all []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// where matches parts of errors that differ between servers: the address, and the applied file.
var where = regexp.MustCompile(`https://127\.0\.0\.1:\d+|"/\S+\.yaml"`)

// Apply applies documents, definitions first, as the projects recommend. The result has the rejected
// objects; an error means that kubectl did not run.
func (c *Cluster) Apply(ctx context.Context, name, namespace string, documents []*Document, flags ...string) (*Applied, error) {
	var definitions, rest []*Document
	for _, d := range documents {
		if d.Definition() {
			definitions = append(definitions, d)
		} else {
			rest = append(rest, d)
		}
	}
	a := &Applied{}
	if namespace != "" {
		if _, said, err := c.Run(ctx, "create", "namespace", namespace); err != nil && !strings.Contains(said, "AlreadyExists") {
			return nil, fmt.Errorf("namespace %s: %w: %s", namespace, err, said)
		}
		if _, said, err := c.Run(ctx, "config", "set-context", "--current", "--namespace", namespace); err != nil {
			return nil, fmt.Errorf("namespace %s: %w: %s", namespace, err, said)
		}
	}
	for part, some := range map[string][]*Document{"definitions": definitions, "rest": rest} {
		if err := os.WriteFile(filepath.Join(c.Dir, name+"."+part+".yaml"), join(some), 0o600); err != nil {
			return nil, err
		}
	}
	apply := func(part string) {
		printed, said, err := c.Run(ctx, append([]string{"apply", "-f", filepath.Join(c.Dir, name+"."+part+".yaml")}, flags...)...)
		if err != nil && said == "" {
			said = err.Error()
		}
		a.add(printed, where.ReplaceAllString(said, "…"))
	}
	if len(definitions) > 0 {
		apply("definitions")
		if err := c.established(ctx); err != nil {
			return nil, fmt.Errorf("definitions of %s: %w", name, err)
		}
	}
	if len(rest) > 0 {
		apply("rest")
	}
	return a, ctx.Err()
}

// established waits until all definitions are served. Rejected ones do not exist.
func (c *Cluster) established(ctx context.Context) error {
	for {
		_, said, err := c.Run(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
		if err == nil {
			return nil
		}
		// kubectl gives up on a new definition without a condition.
		if !strings.Contains(said, "accessor error") || ctx.Err() != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
	}
}
