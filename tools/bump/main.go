// Command bump follows a release of Kubernetes. It sets the versions of the modules in every go.mod, the version of
// the server and the table of feature gates, and reports the differences between the two releases with the
// places in our tree that they concern.
//
// The facts come from the source of the published modules. The program parses the source and does not compile it, so a
// report needs neither the toolchain of the release nor a tree that builds.
//
//	make bump VERSION=v1.38.0            # changes the tree, and prints the report
//	make bump-report VERSION=v1.38.0     # prints the report
//	make bump-report VERSION=v1.38.0 FROM=v1.37.1   # the remaining work, once the tree has the new version
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// A bump holds the options of one run.
type bump struct {
	source    string // the top folder of the repository
	from, to  string
	instead   string // releases for modules that the proxy does not have
	with      string // versions of other modules, path@version
	report    bool   // only the report
	out       io.Writer
	told      io.Writer
	goCommand goCommand
}

func main() {
	b := bump{out: os.Stdout, told: os.Stderr}
	flag.StringVar(&b.source, "source", "../..", "the top folder of the repository")
	flag.StringVar(&b.to, "version", "", "the release, such as v1.38.0 or v1.38.0-alpha.2")
	flag.StringVar(&b.from, "from", "", "the release to compare with (default: the one in go.mod)")
	flag.StringVar(&b.instead, "instead", "", "other releases, in order, for modules that are not published with this one")
	flag.StringVar(&b.with, "with", "", "versions of other modules, such as k8s.io/kube-openapi@v0.0.0-..., separated by commas")
	flag.BoolVar(&b.report, "report", false, "print the report, and change nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bump:", err)
		os.Exit(1)
	}
}

// A goMod is a go.mod of the tree.
type goMod struct {
	name string
	mod  *modfile.File
}

func (b *bump) run(ctx context.Context) error {
	if err := checkRelease(b.to); err != nil {
		return err
	}
	t, err := readTree(ctx, b.source)
	if err != nil {
		return err
	}
	mods, err := readMods(t)
	if err != nil {
		return err
	}
	var current string
	for _, m := range mods {
		if m.name == "go.mod" {
			current = releaseOf(m.mod)
		}
	}
	if b.from == "" {
		b.from = current
	}
	if b.from == b.to {
		return fmt.Errorf("the tree has %s already: name the release to compare with (FROM=)", b.to)
	}
	dir, err := os.MkdirTemp("", "bump")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b.goCommand.dir = dir
	versions, notes, err := b.resolve(ctx, mods, current)
	if err != nil {
		return err
	}
	old, err := b.read(ctx, constant(versions, b.from))
	if err != nil {
		return err
	}
	new, err := b.read(ctx, versions)
	if err != nil {
		return err
	}
	r, err := compareReleases(old, new)
	if err != nil {
		return err
	}
	if !b.report {
		changed, err := b.change(ctx, mods, current, versions, t, r)
		if err != nil {
			return err
		}
		notes = append(notes, changed...)
		if t, err = readTree(ctx, b.source); err != nil {
			return err
		}
	}
	b.step("comparing")
	sections, err := sectionsOf(t, r, b.from)
	if err != nil {
		return err
	}
	writeReport(b.out, b.from, b.to, notes, sections)
	return nil
}

func constant(versions map[string]string, release string) map[string]string {
	out := map[string]string{}
	for m := range versions {
		out[m] = release
	}
	return out
}

// step prints the next step with the time.
func (b *bump) step(format string, args ...any) {
	fmt.Fprintf(b.told, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// readMods parses every go.mod of the tree. Those come first that others require.
func readMods(t *tree) (out []goMod, err error) {
	for _, f := range t.files {
		if filepath.Base(f.name) != "go.mod" || strings.Contains(f.name, "testdata/") {
			continue
		}
		mod, err := modfile.Parse(f.name, []byte(f.data), nil)
		if err != nil {
			return nil, err
		}
		out = append(out, goMod{f.name, mod})
	}
	rank := map[string]int{"go.mod": -2, "test/go.mod": -1}
	slices.SortStableFunc(out, func(a, b goMod) int { return rank[a.name] - rank[b.name] })
	return out, nil
}

// resolve returns the release that each module gets, selects the toolchain, and notes on both.
func (b *bump) resolve(ctx context.Context, mods []goMod, current string) (versions map[string]string, notes []string, err error) {
	follow := map[string]bool{kubernetesModule: true}
	for _, m := range mods {
		if isOurs(m.mod) {
			followers(follow, m.mod, current)
		}
	}
	line, err := b.goCommand.goLine(ctx, "k8s.io/api@"+versionFor("k8s.io/api", b.to))
	if err != nil {
		return nil, nil, err
	}
	at, err := b.goCommand.use(ctx, line)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, fmt.Sprintf("the release needs Go %s; here is Go %s", line, at))
	if b.goCommand.toolchain != "" {
		notes = append(notes, fmt.Sprintf("until Go %s is installed, begin each command with GOTOOLCHAIN=%s", line, b.goCommand.toolchain),
			"errors and escapes of encoding/json reach clients, and another Go may have others: go test ./internal/object/codec ./internal/access/...; its gofmt may differ, too: make fmt")
	}
	b.step("looking up %d modules", len(follow))
	wanted := []string{b.to}
	if b.instead != "" {
		wanted = append(wanted, strings.Split(b.instead, ",")...)
	}
	var modules []string
	for m := range follow {
		modules = append(modules, m)
	}
	slices.Sort(modules)
	versions, err = b.goCommand.available(ctx, modules, wanted)
	if err != nil {
		return nil, nil, err
	}
	var missing []string
	for _, m := range modules {
		switch versions[m] {
		case b.to:
		case "":
			if requires(mods, m) {
				missing = append(missing, m)
				continue
			}
			versions[m] = current // Kubernetes requires it for its samples
			notes = append(notes, fmt.Sprintf("%s has no %s: it keeps %s", m, versionFor(m, b.to), versionFor(m, current)))
		default:
			notes = append(notes, fmt.Sprintf("%s has no %s: it gets %s", m, versionFor(m, b.to), versionFor(m, versions[m])))
		}
	}
	if len(missing) > 0 {
		return nil, nil, fmt.Errorf("the proxy has no %s of %s: wait, or name other releases for them (ARGS=\"-instead v1.38.0-alpha.1\")", b.to, strings.Join(missing, ", "))
	}
	return versions, notes, nil
}

// read downloads and parses the modules of a release.
func (b *bump) read(ctx context.Context, versions map[string]string) (*source, error) {
	b.step("downloading k8s.io/api %s and others", versions["k8s.io/api"])
	dirs, err := b.goCommand.sources(ctx, versions)
	if err != nil {
		return nil, err
	}
	return newSource(dirs), nil
}
