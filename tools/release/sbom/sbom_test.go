package sbom

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

func release() Release {
	std := Module{Path: "std", Version: "1.26.8", License: "BSD-3-Clause"}
	api := Module{Path: "github.com/Some/api", Version: "v1.0.0+incompatible", Sum: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", License: "MIT"}
	odd := Module{Path: "example.com/odd", Version: "v0.1.0"}
	return Release{
		Name: "thing", Version: "v1.0.0", Commit: "abc", License: "Apache-2.0", Tool: "make-release",
		Created: time.Date(2026, 11, 22, 1, 0, 0, 0, time.FixedZone("east", 3600)),
		Artifacts: []Artifact{
			{Name: "thing-v1.0.0-linux-amd64.tar.gz", SHA256: strings.Repeat("0a", 32), Modules: []Module{std, api}},
			{Name: "thing-v1.0.0-oci.tar", SHA256: strings.Repeat("0b", 32), Image: true, Modules: []Module{std, api, odd}},
		},
	}
}

// The published library reads the document, finds it valid, and returns the input.
func TestSPDX(t *testing.T) {
	data, err := release().SPDX()
	if err != nil {
		t.Fatal(err)
	}
	var d spdx.Document
	if err := json.ReadInto(bytes.NewReader(data), &d); err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(&d); err != nil {
		t.Error(err)
	}
	if d.SPDXVersion != spdx.Version || d.DataLicense != spdx.DataLicense || d.CreationInfo.Created != "2026-11-22T00:00:00Z" || len(d.Packages) != 5 {
		t.Errorf("%+v", d)
	}
	described, err := spdxlib.GetDescribedPackageIDs(&d)
	if err != nil || len(described) != 2 {
		t.Errorf("it describes %v, %v", described, err)
	}
	packages := map[common.ElementID]*spdx.Package{}
	for _, p := range d.Packages {
		packages[p.PackageSPDXIdentifier] = p
	}
	image := packages["File-thing-v1.0.0-oci.tar"]
	if image == nil || image.PrimaryPackagePurpose != "CONTAINER" || image.PackageChecksums[0].Value != strings.Repeat("0b", 32) {
		t.Errorf("the image is %+v", image)
	}
	api := packages["Module-github.com-Some-api-v1.0.0-incompatible"]
	if api == nil {
		t.Fatalf("no module among %v", packages)
	}
	if api.PackageLicenseDeclared != "MIT" ||
		api.PackageExternalReferences[0].Locator != "pkg:golang/github.com/Some/api@v1.0.0%2Bincompatible" ||
		api.PackageDownloadLocation != "https://proxy.golang.org/github.com/!some/api/@v/v1.0.0+incompatible.zip" ||
		api.PackageChecksums[0].Value != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("the module is %+v", api)
	}
	if odd := packages["Module-example.com-odd-v0.1.0"]; odd == nil || odd.PackageLicenseDeclared != "NOASSERTION" || len(odd.PackageChecksums) != 0 {
		t.Errorf("the module of which nothing is known is %+v", odd)
	}
}

func TestWrongSum(t *testing.T) {
	r := release()
	r.Artifacts[0].Modules[1].Sum = "h1:short"
	r.Artifacts[1].Modules[1].Sum = "h1:short"
	if _, err := r.SPDX(); err == nil || !strings.Contains(err.Error(), `github.com/Some/api v1.0.0+incompatible: go.sum has "h1:short"`) {
		t.Error(err)
	}
}

func TestLicense(t *testing.T) {
	const (
		mit    = "Copyright Jane Doe\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy of this software and so on"
		apache = "                Apache License\n          Version 2.0, January 2004\n"
		bsd2   = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
		bsd3   = bsd2 + " ... may not be used to endorse or promote products\nderived from"
	)
	for want, texts := range map[string][]string{
		"MIT": {mit}, "Apache-2.0": {apache, "a notice"}, "BSD-2-Clause": {bsd2}, "BSD-3-Clause": {bsd3},
		"Apache-2.0 AND MIT": {mit + apache, mit}, "": {"You may look at it."},
	} {
		var all []Text
		for _, text := range texts {
			all = append(all, Text{"LICENSE", []byte(text)})
		}
		if got := License(all); got != want {
			t.Errorf("%q: %s, want %s", texts, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"LICENSE", "LICENSE.libyaml", "NOTICE.txt", "COPYING", "README.md", "license.go", "licenses_test.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	texts, err := Texts(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, text := range texts {
		names = append(names, text.Name)
	}
	if got := strings.Join(names, " "); got != "COPYING LICENSE LICENSE.libyaml NOTICE.txt" {
		t.Error(got)
	}
}
