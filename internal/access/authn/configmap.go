package authn

// ConfigMap is the name of the ConfigMap in kube-system with the authentication settings for
// extension API servers: client CAs, and the headers of front proxies.
const ConfigMap = "extension-apiserver-authentication"

// Keys of the ConfigMap. Lists are JSON.
const (
	ClientCAKey           = "client-ca-file"
	ProxyCAKey            = "requestheader-client-ca-file"
	AllowedNamesKey       = "requestheader-allowed-names"
	UsernameHeadersKey    = "requestheader-username-headers"
	UIDHeadersKey         = "requestheader-uid-headers"
	GroupHeadersKey       = "requestheader-group-headers"
	ExtraHeadersPrefixKey = "requestheader-extra-headers-prefix"
)
