// Reach lists the places in upstream's validation that report an error and that a run reached, from a
// cover profile of upstream's packages: the share in each group, and the places not reached. It omits
// the places in unreachable.txt, which no request can reach.
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

// A site is a call of a function of package field that creates an error.
type site struct {
	file     string
	line     int
	function string
	text     string
	hit      bool
}

// key is the name of a site in unreachable.txt. It does not depend on line numbers. The second of two
// equal sites in one function has the suffix #2.
func (s site) key() string { return groupOf(s.file) + " " + s.function + ": " + s.text }

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
	dead, err := readUnreachable()
	if err != nil {
		log.Fatal(err)
	}
	total, hit, left := 0, 0, 0
	for _, group := range sorted(sites) {
		all := slices.DeleteFunc(sites[group], func(s site) bool { return !s.hit && dead.explains(s) })
		left += len(sites[group]) - len(all)
		reached := 0
		for _, s := range all {
			if s.hit {
				reached++
				dead.refute(s)
				continue
			}
			fmt.Printf("    not reached: %s:%d %s\n", path.Base(s.file), s.line, s.key())
		}
		fmt.Printf("%-40s %4d of %4d %5.1f%%\n", group, reached, len(all), 100*float64(reached)/float64(max(len(all), 1)))
		total, hit = total+len(all), hit+reached
	}
	fmt.Printf("%-40s %4d of %4d %5.1f%%, and %d that nothing can reach\n", "all", hit, total, 100*float64(hit)/float64(max(total, 1)), left)
	if stale := dead.stale(); len(stale) > 0 {
		log.Fatalf("unreachable.txt: these are reached, or are no more:\n%s", strings.Join(stale, "\n"))
	}
}

func sorted[T any](m map[string]T) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// groupOf returns the part of a path that names the group of a file.
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

// locate returns the source file of a file name in a profile.
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
	var out []site
	seen := map[string]int{}
	for _, d := range parsed.Decls {
		function := ""
		if f, ok := d.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && makesError(call) {
				at := fset.Position(call.Pos())
				text := strings.Join(strings.Fields(string(source[at.Offset:fset.Position(call.End()).Offset])), " ")
				if seen[function+text]++; seen[function+text] > 1 {
					text += fmt.Sprintf(" #%d", seen[function+text])
				}
				out = append(out, site{file, at.Line, function, text, hit(blocks, at.Line, at.Column)})
			}
			return true
		})
	}
	return out, nil
}

func makesError(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(makers, selector.Sel.Name) {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == "field"
}

// hit reports whether the innermost block around a place ran.
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
