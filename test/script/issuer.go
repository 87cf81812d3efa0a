package script

import (
	"encoding/json"
	"fmt"

	"github.com/anykind/anykind/internal/access/authn/oidc/oidctest"

	"github.com/rogpeppe/go-internal/testscript"
)

type issuerKey struct{}

// issuer holds the OpenID Connect issuer of a script.
type issuer struct{ *oidctest.Issuer }

// issuerCommand is the command issuer.
func issuerCommand(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 0, "issuer start|token ARG...")
	i := ts.Value(issuerKey{}).(*issuer)
	switch verb, args := args[0], args[1:]; {
	case verb == "start" && len(args) == 0 && i.Issuer == nil:
		started, err := oidctest.Start()
		ts.Check(err)
		i.Issuer = started
		ts.Defer(started.Close)
		ca, err := json.Marshal(string(started.CA()))
		ts.Check(err)
		ts.Setenv("ISSUER", started.URL)
		ts.Setenv("ISSUER_CA", string(ca))
	case verb == "token" && len(args) == 1 && i.Issuer != nil:
		var claims map[string]any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &claims))
		<-i.Found
		token, err := i.Token(claims)
		ts.Check(err)
		fmt.Fprintln(ts.Stdout(), token)
	default:
		ts.Fatalf("issuer %s %q: see the comment of the package", verb, args)
	}
}
