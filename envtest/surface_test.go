package envtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// exported returns the names that the package in a directory exports, each with its kind: const, var,
// type, or func with its signature.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	names := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = types.ExprString(d.Type)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = "type"
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names[name.Name] = d.Tok.String()
						}
					}
				}
			}
		}
	}
	for name := range names {
		if !ast.IsExported(name) {
			delete(names, name)
		}
	}
	return names
}

// This package exports every name that the package of controller-runtime exports, with the same
// declaration.
func TestSurface(t *testing.T) {
	list := exec.Command("go", "list", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime/pkg/envtest")
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := exported(t, strings.TrimSpace(string(dir))), exported(t, ".")
	if len(theirs) < 20 {
		t.Fatalf("found only %v", theirs)
	}
	for name, what := range theirs {
		if ours[name] != what {
			t.Errorf("%s is %q to controller-runtime, and %q here", name, what, ours[name])
		}
	}
}

// An Environment has the fields and methods of controller-runtime's. All other types are aliases.
func TestSurfaceOfEnvironment(t *testing.T) {
	theirs, ours := reflect.TypeFor[envtest.Environment](), reflect.TypeFor[Environment]()
	for i := range theirs.NumField() {
		field := theirs.Field(i)
		if mine, ok := ours.FieldByName(field.Name); !ok || mine.Type != field.Type {
			t.Errorf("field %s: %v to controller-runtime, and %v here", field.Name, field.Type, mine.Type)
		}
	}
	their, our := reflect.PointerTo(theirs), reflect.PointerTo(ours)
	for i := range their.NumMethod() {
		method := their.Method(i)
		mine, ok := our.MethodByName(method.Name)
		if !ok || signature(mine) != signature(method) {
			t.Errorf("method %s: %s to controller-runtime, and %s here", method.Name, signature(method), signature(mine))
		}
	}
}

// signature returns the signature of a method without its receiver.
func signature(m reflect.Method) string {
	if m.Type == nil {
		return "none"
	}
	text := m.Type.String()
	return text[strings.IndexAny(text, ",)"):]
}
