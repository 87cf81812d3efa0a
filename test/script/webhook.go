package script

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"

	"github.com/anykind/anykind/test/hostport"

	"github.com/rogpeppe/go-internal/testscript"
)

type webhookKey struct{}

// webhook holds the webhook of a script.
type webhook struct{ server *hostport.Server }

func (h *webhook) running(ts *testscript.TestScript) *hostport.Server {
	if h.server == nil {
		ts.Fatalf("no webhook runs: webhook start comes first")
	}
	return h.server
}

// webhookCommand is the command webhook.
func webhookCommand(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 0, "webhook start|convert|fail|change|admit|review|stop ARG...")
	h := ts.Value(webhookKey{}).(*webhook)
	verb, args := args[0], args[1:]
	switch {
	case verb == "start" && h.server == nil:
		h.start(ts, args)
	case verb == "convert" && len(args) == 0:
		h.running(ts).Convert()
	case verb == "fail" && len(args) == 1:
		h.running(ts).Fail(args[0])
	case verb == "change" && len(args) == 1:
		var patch map[string]any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &patch))
		h.running(ts).Change(patch)
	case verb == "admit" && len(args) == 1:
		h.running(ts).Admit(response(ts, args[0]))
	case verb == "review" && len(args) == 0:
		n, request, response := h.running(ts).Reviews()
		fmt.Fprintf(ts.Stdout(), "reviews: %d\n%s%s", n, indent(request), indent(response))
	case verb == "stop" && len(args) == 0:
		h.running(ts).Close()
		h.server = nil
	default:
		ts.Fatalf("webhook %s %q: see the comment of the package", verb, args)
	}
}

// response reads the response of an AdmissionReview, and encodes its patch.
func response(ts *testscript.TestScript, file string) map[string]any {
	var out map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &out))
	if patch, ok := out["patch"].([]any); ok {
		data, err := json.Marshal(patch)
		ts.Check(err)
		out["patch"], out["patchType"] = base64.StdEncoding.EncodeToString(data), "JSONPatch"
	}
	return out
}

func (h *webhook) start(ts *testscript.TestScript, names []string) {
	server, err := hostport.Start(names...)
	ts.Check(err)
	h.server = server
	ts.Defer(server.Close)
	_, port, err := net.SplitHostPort(server.Address())
	ts.Check(err)
	ts.Setenv("WEBHOOK", "https://"+server.Address())
	ts.Setenv("WEBHOOK_PORT", port)
	ts.Setenv("CA_BUNDLE", base64.StdEncoding.EncodeToString(server.CABundle))
}

var variable = regexp.MustCompile(`\$\{[A-Z_]+\}`)

// fill is the command fill.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 0, "fill FILE...")
	for _, name := range args {
		text := variable.ReplaceAllStringFunc(ts.ReadFile(name), func(v string) string {
			value := ts.Getenv(v[2 : len(v)-1])
			if value == "" {
				ts.Fatalf("%s: %s is not set", name, strconv.Quote(v))
			}
			return value
		})
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}
