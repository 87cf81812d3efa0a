package verdict

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/offline/check/checktest"
	"github.com/anykind/anykind/test/program"
)

var (
	manifests = flag.Int("manifests", 300, "number of manifests of TestTimes")
	beside    = flag.String("beside", "", "commands that TestTimes runs beside anykind check, separated by semicolons: {crds} and {objects} are folders")
	rounds    = flag.Int("rounds", 3, "number of runs of each command of TestTimes")
)

// Manifests are checked by anykind and by other programs in turn. The test prints the median times and
// the most memory of each; only the result of anykind check is its own.
func TestTimes(t *testing.T) {
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folders := strings.NewReplacer("{crds}", filepath.Join(dir, "crds"), "{objects}", filepath.Join(dir, "objects"))
	for _, name := range []string{"crds", "objects"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "crds", "crontabs.yaml"), []byte(checktest.Definition), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checktest.Manifests(filepath.Join(dir, "objects"), *manifests); err != nil {
		t.Fatal(err)
	}
	commands := []*timed{{words: []string{anykind, "check", "--crds", filepath.Join(dir, "crds"), filepath.Join(dir, "objects")}}}
	for command := range strings.SplitSeq(*beside, ";") {
		if words := strings.Fields(folders.Replace(command)); len(words) > 0 {
			commands = append(commands, &timed{words: words})
		}
	}
	for range *rounds {
		for _, c := range commands {
			c.run(t)
		}
	}
	t.Logf("%d manifests, %d rounds", *manifests, *rounds)
	for i, c := range commands {
		if i == 0 && c.code != 0 {
			t.Errorf("exit code %d: %s", c.code, c.output)
		}
		t.Logf("%s: %.2f s, %.2f s of processor, %d MB, exit code %d", filepath.Base(c.words[0]),
			median(c.walls).Seconds(), median(c.processor).Seconds(), c.memory>>20, c.code)
	}
}

// A timed command keeps the times of its runs.
type timed struct {
	words            []string
	walls, processor []time.Duration
	memory           int64
	code             int
	output           []byte // of the last run
}

func (c *timed) run(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.words[0], c.words[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	took, memory, err := measured(t, cmd)
	c.memory = max(c.memory, memory)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	c.walls = append(c.walls, took)
	c.processor = append(c.processor, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	c.code, c.output = cmd.ProcessState.ExitCode(), out.Bytes()
}

func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
