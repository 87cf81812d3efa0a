// Reach says which of the places where upstream's validation finds an error were reached,
// by a cover profile of its packages: what part of them in each group, and which were not.
//
//	go run ./reach cover.out
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A block is a line of a cover profile.
type block struct {
	fromLine, fromColumn, toLine, toColumn, count int
}

// A site is a call of a function of package field that makes an error.
type site struct {
	file string
	line int
	text string
	hit  bool
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: reach PROFILE")
	}
	profile, err := read(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	sites := map[string][]site{}
	for _, file := range sorted(profile) {
		found, err := sitesOf(file, profile[file])
		if err != nil {
			log.Fatal(err)
		}
		group := groupOf(file)
		sites[group] = append(sites[group], found...)
	}
	total, hit := 0, 0
	for _, group := range sorted(sites) {
		reached := 0
		for _, s := range sites[group] {
			if s.hit {
				reached++
				continue
			}
			fmt.Printf("    not reached: %s:%d %s\n", path.Base(s.file), s.line, s.text)
		}
		fmt.Printf("%-40s %4d of %4d %5.1f%%\n", group, reached, len(sites[group]), 100*float64(reached)/float64(max(len(sites[group]), 1)))
		total, hit = total+len(sites[group]), hit+reached
	}
	fmt.Printf("%-40s %4d of %4d %5.1f%%\n", "all", hit, total, 100*float64(hit)/float64(max(total, 1)))
}

func sorted[T any](m map[string]T) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// groupOf is the part of a path that says which group a file is of.
func groupOf(file string) string {
	for _, mark := range []string{"/pkg/apis/", "/pkg/registry/", "/pkg/api/"} {
		if _, after, ok := strings.Cut(file, mark); ok {
			group, _, _ := strings.Cut(after, "/")
			return group
		}
	}
	return path.Dir(file)
}

func read(name string) (map[string][]block, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string][]block{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		file, rest, ok := strings.Cut(s.Text(), ":")
		if !ok || file == "mode" {
			continue
		}
		var b block
		var statements int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.fromLine, &b.fromColumn, &b.toLine, &b.toColumn, &statements, &b.count); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Text(), err)
		}
		out[file] = append(out[file], b)
	}
	return out, s.Err()
}

var directories = map[string]string{}

// locate is where the source of a file of a package is.
func locate(file string) (string, error) {
	pkg := path.Dir(file)
	if directories[pkg] == "" {
		out, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
		if err != nil {
			return "", fmt.Errorf("go list %s: %w", pkg, err)
		}
		directories[pkg] = strings.TrimSpace(string(out))
	}
	return filepath.Join(directories[pkg], path.Base(file)), nil
}

var makers = []string{"Invalid", "Required", "Forbidden", "NotSupported", "TooLong", "TooMany", "Duplicate", "TypeInvalid", "TooLongMaxLength", "NotFound", "InternalError", "TooFew"}

func sitesOf(file string, blocks []block) ([]site, error) {
	name, err := locate(file)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, nil, 0)
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(source), "\n")
	var out []site
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(makers, selector.Sel.Name) {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == "field" {
			at := fset.Position(call.Pos())
			out = append(out, site{file, at.Line, strings.TrimSpace(lines[at.Line-1]), hit(blocks, at.Line, at.Column)})
		}
		return true
	})
	return out, nil
}

// hit reports whether the innermost block around a place was run.
func hit(blocks []block, line, column int) bool {
	best, size, found := false, 0, false
	for _, b := range blocks {
		after := line > b.fromLine || line == b.fromLine && column >= b.fromColumn
		before := line < b.toLine || line == b.toLine && column <= b.toColumn
		if after && before && (!found || b.toLine-b.fromLine < size) {
			best, size, found = b.count > 0, b.toLine-b.fromLine, true
		}
	}
	return best
}
