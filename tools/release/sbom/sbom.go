// Package sbom writes the software bill of materials of a release: an SPDX 2.3 document in JSON, the
// format of Kubernetes' own releases. The modules of a program come from its build information, not
// from go.mod.
package sbom

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Module is a Go module, or Go's standard library.
type Module struct {
	Path, Version string
	Sum           string // as in go.sum, if it has one
	License       string // an SPDX expression, "" if unclear
}

// An Artifact is a file of the release.
type Artifact struct {
	Name    string
	SHA256  string
	Image   bool // a container image, and not an archive
	Modules []Module
}

// A Release is the subject of the document.
type Release struct {
	Name, Version, Commit string
	License               string
	Created               time.Time
	Tool                  string
	Artifacts             []Artifact
}

type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Describes     []string       `json:"documentDescribes"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string      `json:"SPDXID"`
	Name      string      `json:"name"`
	Version   string      `json:"versionInfo"`
	File      string      `json:"packageFileName,omitempty"`
	Purpose   string      `json:"primaryPackagePurpose"`
	Location  string      `json:"downloadLocation"`
	Analyzed  bool        `json:"filesAnalyzed"`
	Checksums []checksum  `json:"checksums,omitempty"`
	Source    string      `json:"sourceInfo,omitempty"`
	Concluded string      `json:"licenseConcluded"`
	Declared  string      `json:"licenseDeclared"`
	Copyright string      `json:"copyrightText"`
	External  []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	documentID  = "SPDXRef-DOCUMENT"
	noAssertion = "NOASSERTION"
)

// SPDX writes the document.
func (r Release) SPDX() ([]byte, error) {
	d := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: documentID, Name: r.Name + "-" + r.Version,
		Namespace: "https://spdx.org/spdxdocs/" + r.Name + "-" + r.Version + "-" + r.Commit, // an identifier, not an address
		Creation:  creation{r.Created.UTC().Format(time.RFC3339), []string{"Tool: " + r.Tool}},
	}
	modules := map[string]Module{}
	for _, a := range r.Artifacts {
		id := "SPDXRef-File-" + plain(a.Name)
		d.Describes = append(d.Describes, id)
		d.Packages = append(d.Packages, r.artifact(id, a))
		d.relate(documentID, "DESCRIBES", id)
		for _, m := range a.Modules {
			d.relate(id, "CONTAINS", m.id())
			if was, ok := modules[m.id()]; ok && was != m {
				return nil, fmt.Errorf("%+v and %+v are one thing to SPDX", was, m)
			}
			modules[m.id()] = m
		}
	}
	var errs []error
	for _, m := range sorted(modules) {
		p, err := m.spdx()
		errs = append(errs, err)
		d.Packages = append(d.Packages, p)
	}
	data, err := json.MarshalIndent(d, "", " ")
	return append(data, '\n'), errors.Join(append(errs, err)...)
}

func (d *document) relate(from, how, to string) {
	d.Relationships = append(d.Relationships, relationship{from, how, to})
}

func (r Release) artifact(id string, a Artifact) spdxPackage {
	purpose := "ARCHIVE"
	if a.Image {
		purpose = "CONTAINER"
	}
	return spdxPackage{
		ID: id, Name: r.Name, Version: r.Version, File: a.Name, Purpose: purpose, Location: noAssertion,
		Checksums: []checksum{{"SHA256", a.SHA256}}, Source: "built from commit " + r.Commit,
		Concluded: r.License, Declared: r.License, Copyright: noAssertion,
	}
}

func (m Module) id() string { return "SPDXRef-Module-" + plain(m.Path+"@"+m.Version) }

func (m Module) spdx() (spdxPackage, error) {
	license := m.License
	if license == "" {
		license = noAssertion
	}
	p := spdxPackage{
		ID: m.id(), Name: m.Path, Version: m.Version, Purpose: "LIBRARY", Location: noAssertion,
		Concluded: noAssertion, Declared: license, Copyright: noAssertion,
		External: []reference{{"PACKAGE-MANAGER", "purl", m.purl()}},
	}
	if m.Sum == "" {
		return p, nil
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != 32 {
		return p, fmt.Errorf("%s %s: go.sum has %q, want h1: and a SHA-256", m.Path, m.Version, m.Sum)
	}
	p.Location = "https://proxy.golang.org/" + m.escaped() + "/@v/" + escapeUpper(m.Version) + ".zip"
	p.Checksums = []checksum{{"SHA256", hex.EncodeToString(sum)}}
	p.Source = "the checksum is that of go.sum, of the list of files and their hashes: " + m.Sum
	return p, nil
}

// purl is the package URL of a module.
func (m Module) purl() string {
	return "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
}

// escaped returns the path as module proxies escape it.
func (m Module) escaped() string { return escapeUpper(path.Clean(m.Path)) }

func escapeUpper(s string) string {
	return regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(s, func(c string) string { return "!" + strings.ToLower(c) })
}

// plain reduces a name to the characters of an SPDX identifier.
func plain(s string) string {
	return regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(s, "-")
}

func sorted(modules map[string]Module) []Module {
	var all []Module
	for _, m := range modules {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path+" "+a.Version, b.Path+" "+b.Version) })
	return all
}
