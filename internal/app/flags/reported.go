package flags

import (
	"fmt"
	"strconv"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/anykind/anykind/internal/server"
)

// ReportedVersion is the flag --version of kube-apiserver: print the version, or report another
// build of it.
type ReportedVersion struct {
	Print bool
	Serve string // for /version; empty for the version of the program
}

// Set parses a bool, raw, or a version with another suffix.
func (v *ReportedVersion) Set(value string) error {
	if strings.HasPrefix(value, "v") {
		v.Serve = value
		return sameRelease(value, server.BuildVersion().GitVersion)
	}
	if value == "raw" {
		v.Print = true
		return nil
	}
	on, err := strconv.ParseBool(value)
	v.Print = on
	return err
}

func (v *ReportedVersion) String() string { return strconv.FormatBool(v.Print) }

// Type is the name of the value in help.
func (v *ReportedVersion) Type() string { return "version" }

// sameRelease returns an error if two versions are of different releases.
func sameRelease(value, own string) error {
	v, err := utilversion.ParseSemantic(value)
	if err != nil {
		return err
	}
	o, err := utilversion.ParseSemantic(own)
	if err != nil {
		return err
	}
	if v.Major() != o.Major() || v.Minor() != o.Minor() || v.Patch() != o.Patch() {
		return fmt.Errorf("version %q must match major/minor/patch of default version %q", value, own)
	}
	return nil
}
