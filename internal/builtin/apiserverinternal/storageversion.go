// Package apiserverinternal has the built-in kind StorageVersion of internal.apiserver.k8s.io.
//
// It validates StorageVersions. Servers that share a store publish their storage versions in these
// objects: internal/controller/storageversion writes them.
package apiserverinternal

import (
	"fmt"
	"strings"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{storageVersions()}
}

func storageVersions() *resource.Definition {
	return kind.Kind[*internalv1alpha1.StorageVersion, *internalv1alpha1.StorageVersionList]{
		Definition: resource.Definition{
			Group: internalv1alpha1.GroupName, Plural: "storageversions",
			Strategy: resource.Strategy{ValidateName: validateName},
		},
		Version:       &resource.Version{Name: "v1alpha1"},
		StatusKeeps:   "spec metadata",
		AnyFinalizers: true, Validate: validate, ValidateStatus: validateStatus,
		Columns: `
			CommonEncodingVersion  string  .status.commonEncodingVersion:<unset>
			StorageVersions        string  versions                               .status.storageVersions
			Age
		`,
		Cells: kind.Cells{"versions": versions},
	}.New()
}

// versions returns the cell with the first few storage versions.
func versions(obj map[string]any) any {
	const most = 3
	var all []string
	for _, v := range kind.ValueOf[internalv1alpha1.StorageVersion](obj).Status.StorageVersions {
		all = append(all, v.APIServerID+"="+v.EncodingVersion)
	}
	switch n := len(all); {
	case n == 0:
		return "<unset>"
	case n > most:
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], ","), n-most)
	}
	return strings.Join(all, ",")
}

// validateName requires a group and a resource.
func validateName(name string, _ bool) (details []string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return []string{"name must be in the form of <group>.<resource>"}
	}
	details = prefixed("the group segment ", validation.IsDNS1123Subdomain(name[:i]))
	return append(details, prefixed("the resource segment ", validation.IsDNS1035Label(name[i+1:]))...)
}

func prefixed(prefix string, details []string) []string {
	for i := range details {
		details[i] = prefix + details[i]
	}
	return details
}

// validate only checks finalizers: the spec is empty, and the status has its own rules.
func validate(c *rule.Check, _, old *internalv1alpha1.StorageVersion) {
	if old == nil {
		c.Add(kind.MetaFinalizers(c.Object)...)
	}
}

func validateStatus(c *rule.Check, v, _ *internalv1alpha1.StorageVersion) {
	c = c.At("status")
	seen := map[string]bool{}
	for i := range v.Status.StorageVersions {
		s, at := &v.Status.StorageVersions[i], c.At("storageVersions", i)
		if seen[s.APIServerID] {
			at.At("apiServerID").Duplicate(s.APIServerID)
		}
		seen[s.APIServerID] = true
		validateServer(at, s)
	}
	validateCommon(c.At("commonEncodingVersion"), &v.Status)
	first := map[internalv1alpha1.StorageVersionConditionType]int{}
	for i, condition := range v.Status.Conditions {
		at := c.At(i) // Kubernetes omits "conditions" from the path
		if before, ok := first[condition.Type]; ok {
			at.At("type").Invalid(string(condition.Type), fmt.Sprintf("the type of the condition is not unique, it also appears in conditions[%d]", before))
		}
		first[condition.Type] = i
		at.At("type").Invalids(string(condition.Type), validation.IsQualifiedName(string(condition.Type)))
		at.At("status").Invalids(string(condition.Status), validation.IsQualifiedName(string(condition.Status)))
		if condition.Reason == "" {
			at.At("reason").Required("")
		}
		if condition.Message == "" {
			at.At("message").Required("")
		}
	}
}

func validateServer(c *rule.Check, s *internalv1alpha1.ServerStorageVersion) {
	c.At("apiServerID").Invalids(s.APIServerID, apivalidation.NameIsDNSSubdomain(s.APIServerID, false))
	valid := func(at *rule.Check, version string) {
		if bad := wrongWithVersion(version); len(bad) > 0 {
			at.Invalid(version, strings.Join(bad, ","))
		}
	}
	valid(c.At("encodingVersion"), s.EncodingVersion)
	can := map[string]bool{}
	for i, version := range s.DecodableVersions {
		valid(c.At("decodableVersions", i), version)
		can[version] = true
	}
	if !can[s.EncodingVersion] {
		c.At("decodableVersions").Invalid(s.DecodableVersions, "decodableVersions must include encodingVersion "+s.EncodingVersion)
	}
	for i, version := range s.ServedVersions {
		at := c.At("servedVersions", i)
		valid(at, version)
		if !can[version] {
			at.Invalid(version, fmt.Sprintf("individual served version : %s must be included in decodableVersions : %s", version, s.DecodableVersions))
		}
	}
}

// validateCommon checks commonEncodingVersion.
func validateCommon(c *rule.Check, s *internalv1alpha1.StorageVersionStatus) {
	common, agree := "", len(s.StorageVersions) > 0
	for i, v := range s.StorageVersions {
		if i == 0 {
			common = v.EncodingVersion
		}
		agree = agree && v.EncodingVersion == common
	}
	switch said := s.CommonEncodingVersion; {
	case said == nil && agree:
		c.Invalid(said, "the common encoding version is "+common)
	case said == nil:
	case !agree:
		c.Invalid(*said, "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet")
	case *said != common:
		c.Invalid(*said, "the actual common encoding version is "+common)
	}
}

// wrongWithVersion returns the errors of an apiVersion.
func wrongWithVersion(apiVersion string) (details []string) {
	group, version, ok := strings.Cut(apiVersion, "/")
	switch {
	case !ok:
		version = group
	case strings.Contains(version, "/"):
		const label = "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"
		return []string{"an apiVersion is " + validation.RegexError(label, "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123") +
			" with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"}
	case group == "":
		details = append(details, "group part: "+validation.EmptyError())
	default:
		details = prefixed("group part: ", validation.IsDNS1123Subdomain(group))
	}
	if version == "" {
		return append(details, "version part: "+validation.EmptyError())
	}
	return append(details, prefixed("version part: ", validation.IsDNS1035Label(version))...)
}
