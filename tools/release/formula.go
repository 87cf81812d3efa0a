package main

import (
	"bytes"
	_ "embed"
	"strings"
	"text/template"
)

//go:embed anykind.rb.tmpl
var formulaText string

// formula returns the formula for Homebrew.
func (r *release) formula(archives []written) ([]byte, error) {
	find := func(os, arch string) written {
		for _, a := range archives {
			if a.os == os && a.arch == arch {
				return a
			}
		}
		return written{}
	}
	text, err := template.New("formula").Funcs(template.FuncMap{
		"url":    func(os, arch string) string { return r.base + "/" + find(os, arch).name },
		"sha256": func(os, arch string) string { return find(os, arch).sha256 },
	}).Parse(formulaText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = text.Execute(&b, map[string]string{
		"Description": description, "Homepage": repository, "License": license, "Version": strings.TrimPrefix(r.version, "v"),
	})
	return b.Bytes(), err
}
