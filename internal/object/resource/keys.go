package resource

import "strings"

// The keys under which everything is stored are those of kube-apiserver:
//
//	/registry/PLURAL/[NAMESPACE/]NAME        of a built-in kind
//	/registry/GROUP/PLURAL/[NAMESPACE/]NAME  of a CustomResourceDefinition
//
// They are spelled here and nowhere else. A Definition has the prefix of its kind and
// makes the rest.

// Root begins every key.
const Root = "/registry/"

// OwnPrefix begins the keys of what is nobody's object. No resource can be there, as
// no group and no plural begins with a dot, and a kube-apiserver over the same etcd
// does not look there.
const OwnPrefix = Root + ".anykind/"

// RangesPrefix begins the keys of what is allocated in ranges, and NodePortsKey is that
// of the node ports. Clients do not see them.
const (
	RangesPrefix = Root + "ranges/"
	NodePortsKey = RangesPrefix + "servicenodeports"
)

// MasterLeasesPrefix begins the keys under which every server over a store says at which
// address it is. Clients do not see them.
const MasterLeasesPrefix = Root + "masterleases/"

// BuiltInPrefix begins the keys of the objects of a built-in kind. Its place is its
// plural, but for a few.
func BuiltInPrefix(place string) string { return Root + place + "/" }

// CustomPrefix begins the keys of the objects of a CustomResourceDefinition, and of
// the CustomResourceDefinitions themselves.
func CustomPrefix(group, plural string) string { return Root + group + "/" + plural + "/" }

// SplitCustom returns the group and the plural in the key of an object of a
// CustomResourceDefinition, or in its CustomPrefix, and what comes after that. In a key
// of another object these are merely its first two parts.
func SplitCustom(key string) (group, plural, rest string) {
	group, rest, _ = strings.Cut(strings.TrimPrefix(key, Root), "/")
	plural, rest, _ = strings.Cut(rest, "/")
	return group, plural, rest
}
