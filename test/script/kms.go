package script

import (
	"path/filepath"

	"github.com/anykind/anykind/internal/store/encrypt/kms/kmstest"

	"github.com/rogpeppe/go-internal/testscript"
)

type kmsKey struct{}

// plugin holds the KMS plugin of a script.
type plugin struct{ *kmstest.Plugin }

// kmsCommand is the command kms.
func kmsCommand(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1, "kms start|rotate|stop|resume")
	p := ts.Value(kmsKey{}).(*plugin)
	switch verb := args[0]; {
	case verb == "start" && p.Plugin == nil:
		started, err := kmstest.Start(filepath.Join(ts.Getenv("WORK"), "kms.sock"))
		ts.Check(err)
		p.Plugin = started
		ts.Defer(func() { _ = started.Stop() })
		ts.Setenv("KMS", started.Endpoint())
	case verb == "rotate" && p.Plugin != nil:
		p.Rotate()
	case verb == "stop" && p.Plugin != nil:
		ts.Check(p.Stop())
	case verb == "resume" && p.Plugin != nil:
		ts.Check(p.Resume())
	default:
		ts.Fatalf("kms %s: see the comment of the package", verb)
	}
}
