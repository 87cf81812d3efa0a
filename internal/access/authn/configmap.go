package authn

// Other API servers learn from the ConfigMap of this name in kube-system how to know users: by which
// authorities, and in which headers front proxies name them.
const ConfigMap = "extension-apiserver-authentication"

// What the ConfigMap has. Lists are in JSON.
const (
	ClientCAKey           = "client-ca-file"
	ProxyCAKey            = "requestheader-client-ca-file"
	AllowedNamesKey       = "requestheader-allowed-names"
	UsernameHeadersKey    = "requestheader-username-headers"
	UIDHeadersKey         = "requestheader-uid-headers"
	GroupHeadersKey       = "requestheader-group-headers"
	ExtraHeadersPrefixKey = "requestheader-extra-headers-prefix"
)
