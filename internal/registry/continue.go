package registry

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/anykind/anykind/internal/object/status"
)

// A continueToken is the position in a paged list. Clients pass it back unchanged. Its form is that of
// Kubernetes, so a token stays valid across a change of server.
type continueToken struct {
	APIVersion string `json:"v"`
	// Revision of the list, or -1 for the newest.
	Revision int64 `json:"rv"`
	// Start is the first possible key of the next page, without the prefix.
	Start string `json:"start"`
}

const continueVersion = "meta.k8s.io/v1"

// encodeContinue returns the token of a list that continues after the key last.
func encodeContinue(revision int64, prefix, last string) string {
	data, err := json.Marshal(continueToken{continueVersion, revision, "/" + strings.TrimPrefix(last, prefix) + "\x00"})
	if err != nil {
		panic(err) // strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// decodeContinue returns the revision of a token and the key after which the list of prefix continues.
func decodeContinue(token, prefix string) (revision int64, after string, err error) {
	invalid := func(why string) error {
		return status.BadRequest("invalid continue token: continue key is not valid: %s", why)
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", invalid(err.Error())
	}
	var t continueToken
	if err := json.Unmarshal(data, &t); err != nil {
		return 0, "", invalid(err.Error())
	}
	switch {
	case t.APIVersion != continueVersion:
		return 0, "", invalid("server does not recognize this encoded version " + t.APIVersion)
	case t.Revision == 0 || t.Revision < -1:
		return 0, "", invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return 0, "", invalid("encoded start key empty (version meta.k8s.io/v1)")
	}
	start := strings.TrimPrefix(t.Start, "/") // Kubernetes' tokens may begin with it
	for _, element := range strings.Split(start, "/") {
		if element == "." || element == ".." || element == "" {
			return 0, "", invalid("the start key leaves its list")
		}
	}
	return t.Revision, prefix + strings.TrimSuffix(start, "\x00"), nil
}

// expiredContinue is the error for a token whose revision is compacted. It carries a token that
// continues at the newest revision.
func expiredContinue(prefix, after string) error {
	e := status.Expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	e.ErrStatus.Continue = encodeContinue(-1, prefix, after)
	return e
}
