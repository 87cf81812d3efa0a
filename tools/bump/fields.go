package main

import (
	"go/ast"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// types has the sections about Go types of the API: kinds, fields, enums.
type types struct{ kinds, fields, enums, packages facts }

// typePackages are the roots of packages with types of the API.
func typePackages() []string {
	return []string{
		"k8s.io/api", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
		"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
	}
}

// shortName returns the group and version of a package: core/v1.
func shortName(importPath string) string {
	return path.Join(path.Base(path.Dir(importPath)), path.Base(importPath))
}

func readTypes(s *source) (*types, error) {
	t := &types{kinds: facts{}, fields: facts{}, enums: facts{}, packages: facts{}}
	for _, root := range typePackages() {
		packages, err := s.below(root)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			t.read(p)
		}
	}
	return t, nil
}

func (t *types) read(p *pkg) {
	name := shortName(p.path)
	if tags := packageTags(p); len(tags) > 0 {
		t.packages[name] = fact{parts: tags, at: p.at(p.files[0].Pos())}
	}
	values := map[string][]string{} // of text types
	p.decls(func(d ast.Decl, _ []string) { addConstants(values, d) })
	p.decls(func(d ast.Decl, tags []string) {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			return
		}
		for _, spec := range gen.Specs {
			if spec := spec.(*ast.TypeSpec); spec.Name.IsExported() {
				t.readType(p, name+" "+spec.Name.Name, spec, tags, values[spec.Name.Name])
			}
		}
	})
}

// packageTags returns the tags of a package that change how its types are validated.
func packageTags(p *pkg) (tags []string) {
	for _, file := range p.files {
		for _, tag := range tagsBetween(file, 0, file.Package) {
			if strings.HasPrefix(tag, "k8s:validation-gen") || strings.HasPrefix(tag, "groupName") {
				tags = append(tags, tag)
			}
		}
	}
	slices.Sort(tags)
	return tags
}

// addConstants adds the values of typed text constants by type.
func addConstants(values map[string][]string, d ast.Decl) {
	gen, ok := d.(*ast.GenDecl)
	if !ok || gen.Tok != token.CONST {
		return
	}
	for _, spec := range gen.Specs {
		v := spec.(*ast.ValueSpec)
		for _, value := range v.Values {
			of := last(v.Type)
			if call, ok := value.(*ast.CallExpr); ok && of == "" {
				of = last(call.Fun)
			}
			if text, ok := literal(value); ok && of != "" && !excluded(v.Doc) {
				values[of] = append(values[of], text)
			}
		}
	}
}

func excluded(doc *ast.CommentGroup) bool {
	return doc != nil && strings.Contains(doc.Text(), "+k8s:enumExclude\n")
}

func (t *types) readType(p *pkg, name string, spec *ast.TypeSpec, tags, values []string) {
	if len(values) > 0 {
		if slices.Contains(tags, "enum") || slices.Contains(tags, "k8s:enum") {
			for i := range values {
				values[i] = strconv.Quote(values[i])
			}
			slices.Sort(values)
			t.enums[name] = fact{parts: slices.Compact(values), at: p.at(spec.Pos())}
		}
	}
	kept := keepTags(tags)
	structure, isStruct := spec.Type.(*ast.StructType)
	if !isStruct {
		t.fields[name] = fact{parts: append([]string{p.text(spec.Type)}, kept...), at: p.at(spec.Pos())}
		return
	}
	t.fields[name] = fact{parts: append([]string{"struct"}, kept...), at: p.at(spec.Pos())}
	if embeds(structure, "TypeMeta") && embeds(structure, "ObjectMeta") || slices.Contains(tags, "genclient") {
		kind := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
			return !strings.HasPrefix(tag, "genclient") && !strings.HasPrefix(tag, "k8s:prerelease-lifecycle-gen:") && !strings.Contains(tag, "Subresource")
		})
		slices.Sort(kind)
		t.kinds[name] = fact{parts: kind, at: p.at(spec.Pos())}
	}
	file := p.fileOf(spec.Pos())
	from := structure.Fields.Opening
	for _, f := range structure.Fields.List {
		t.readField(p, name, f, tagsBetween(file, from, f.Pos()))
		from = f.End()
	}
}

func (p *pkg) fileOf(pos token.Pos) *ast.File {
	i := slices.IndexFunc(p.files, func(f *ast.File) bool { return f.FileStart <= pos && pos < f.FileEnd })
	return p.files[i]
}

func embeds(s *ast.StructType, name string) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return len(f.Names) == 0 && last(f.Type) == name })
}

func (t *types) readField(p *pkg, of string, f *ast.Field, tags []string) {
	name, options := "", ""
	if f.Tag != nil {
		text, _ := strconv.Unquote(f.Tag.Value)
		name, options, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
	}
	if name == "" {
		name = last(f.Type) + "(inline)"
	}
	parts := []string{"type " + p.text(f.Type)}
	if options != "" {
		parts = append(parts, "json "+options)
	}
	parts = append(parts, requirement(options, tags))
	t.fields[of+"."+name] = fact{parts: append(parts, keepTags(tags)...), at: p.at(f.Pos())}
}

// requirement returns required or optional, as OpenAPI has a field.
func requirement(options string, tags []string) string {
	omits := strings.Contains(options, "omit")
	switch {
	case slices.Contains(tags, "optional"), slices.Contains(tags, "k8s:optional"):
		return "optional"
	case slices.Contains(tags, "required"), slices.Contains(tags, "k8s:required"), !omits:
		return "required"
	}
	return "optional"
}

// keepTags returns the tags that clients can notice, sorted. Others are about generated code, or stand for
// requirement and enums.
func keepTags(tags []string) (out []string) {
	for _, tag := range tags {
		name, _, _ := strings.Cut(tag, "=")
		name, _, _ = strings.Cut(name, "(")
		switch name {
		case "optional", "required", "enum", "k8s:optional", "k8s:required", "k8s:enum", "k8s:validation-gen-nolint", "patchStrategy", "patchMergeKey",
			"k8s:openapi-gen", "k8s:conversion-gen", "protobuf", "k8s:supportsSubresource", "k8s:isSubresource", "k8s:opaqueType":
			continue
		}
		if strings.HasPrefix(name, "genclient") || strings.HasPrefix(name, "k8s:deepcopy-gen") || strings.HasPrefix(name, "k8s:prerelease-lifecycle-gen") ||
			strings.HasPrefix(name, "k8s:conversion-gen") || strings.HasPrefix(name, "protobuf") {
			continue
		}
		out = append(out, tag)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
