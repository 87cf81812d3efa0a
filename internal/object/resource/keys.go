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

// OwnPrefix is the prefix of anykind's internal keys. It clashes with no resource, because no
// group and no plural begins with a dot, and a kube-apiserver over the same etcd ignores it.
const OwnPrefix = Root + ".anykind/"

// RangesPrefix is the prefix of allocation ranges, and NodePortsKey the key of node ports.
// Clients cannot see them.
const (
	RangesPrefix = Root + "ranges/"
	NodePortsKey = RangesPrefix + "servicenodeports"
)

// MasterLeasesPrefix is the prefix of the keys at which servers over the same store publish their
// addresses. Clients cannot see them.
const MasterLeasesPrefix = Root + "masterleases/"

// PeerLeasesPrefix is the prefix of the keys at which these servers publish the addresses for the
// requests of each other. Clients cannot see them.
const PeerLeasesPrefix = Root + "peerserverleases/"

// BuiltInPrefix returns the prefix of the keys of a built-in kind. place is its plural, with few
// exceptions.
func BuiltInPrefix(place string) string { return Root + place + "/" }

// CustomPrefix returns the prefix of the keys of a custom kind, and of CustomResourceDefinitions
// themselves.
func CustomPrefix(group, plural string) string { return Root + group + "/" + plural + "/" }

// SplitCustom returns the group and the plural in the key of a custom object, or in its
// CustomPrefix, and the rest. For the key of another object these are merely its first two parts.
func SplitCustom(key string) (group, plural, rest string) {
	group, rest, _ = strings.Cut(strings.TrimPrefix(key, Root), "/")
	plural, rest, _ = strings.Cut(rest, "/")
	return group, plural, rest
}
