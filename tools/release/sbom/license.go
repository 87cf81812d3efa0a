package sbom

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Text is a licence file of a module.
type Text struct {
	Name string
	Data []byte
}

var aboutLicense = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)

// Texts reads the licence files of the module in a folder. Redistribution of the program has to
// include them.
func Texts(dir string) ([]Text, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []Text
	for _, e := range entries {
		if !e.Type().IsRegular() || !aboutLicense.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, Text{e.Name(), data})
	}
	return texts, nil
}

// License is the SPDX expression of all known licences of the texts, or "" if there is none.
func License(texts []Text) string {
	var found []string
	for _, t := range texts {
		for _, id := range inText(string(t.Data)) {
			if !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, " AND ")
}

// sentences are unique to one licence each, without line breaks.
var sentences = []struct{ id, sentence string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"MPL-2.0", "mozilla public license, version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

func inText(text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var found []string
	for _, s := range sentences {
		if strings.Contains(text, s.sentence) {
			found = append(found, s.id)
		}
	}
	if strings.Contains(text, "redistribution and use in source and binary forms, with or without modification") {
		// The two differ in the names that the no-endorsement clause protects.
		if strings.Contains(text, "endorse or promote products") {
			return append(found, "BSD-3-Clause")
		}
		return append(found, "BSD-2-Clause")
	}
	return found
}
