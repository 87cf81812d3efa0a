package corpus

import (
	"path/filepath"
	"testing"
)

func TestDefinitions(t *testing.T) {
	all, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	groups, names := map[string]int{}, map[string]bool{}
	for _, d := range all {
		groups[d["spec"].(map[string]any)["group"].(string)]++
		names[d["metadata"].(map[string]any)["name"].(string)] = true
	}
	if len(names) != len(all) {
		t.Errorf("%d definitions with %d names", len(all), len(names))
	}
	for group, least := range map[string]int{"gateway.networking.k8s.io": 10, "cert-manager.io": 4, "acme.cert-manager.io": 2, "bucket.cloud.example.com": 2} {
		if groups[group] < least {
			t.Errorf("%d definitions of %s, want %d or more", groups[group], group, least)
		}
	}
}

func TestFolders(t *testing.T) {
	for _, c := range []struct {
		folder Folder
		least  int
	}{
		{GatewayAPIExperimental, 13}, {GatewayAPIStandard, 10}, {GatewayAPIValid, 50}, {GatewayAPIInvalid, 30}, {CertManager, 6},
	} {
		files := map[string]bool{}
		err := c.folder.Documents(func(file, _ string) error {
			files[filepath.Base(file)] = true
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if len(files) < c.least {
			t.Errorf("%v has %d files, want %d or more", c.folder, len(files), c.least)
		}
	}
}

// A missing folder is an error, not an empty list.
func TestNoSuchFolder(t *testing.T) {
	if _, err := (Folder{gatewayAPI, "config/crd/none"}).Definitions(); err == nil {
		t.Error("a folder that is not there has definitions")
	}
	if _, err := (Folder{gatewayAPI, "pkg"}).Definitions(); err == nil {
		t.Error("a folder without definitions has definitions")
	}
}
