package check

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var inUnit = flag.String("in-unit", "", "`kubeconfig` of a server in a systemd unit, for tests that run there")

// probe checks the server under systemd. Each command has to succeed.
const probe = `set -euxo pipefail
systemctl is-active anykind
of=/proc/$(systemctl show --property MainPID --value anykind)/status
grep -E 'Seccomp:.2' $of
grep -E 'NoNewPrivs:.1' $of
grep -E 'CapBnd:.0000000000000000' $of
! grep -E 'Uid:.0' $of
$TEST -test.run '^TestCreateInUnit$' -in-unit /var/lib/anykind/admin.kubeconfig
systemctl restart anykind
$TEST -test.run '^TestKeptInUnit$' -in-unit /var/lib/anykind/admin.kubeconfig
systemctl stop anykind
test $(systemctl show --property Result --value anykind) = success
test $(systemctl show --property ExecMainStatus --value anykind) = 0
echo all is well
`

// unit boots systemd with only the unit, in namespaces of its own, which takes root. It shows at run
// time that the server works within the unit's restrictions.
func (r *release) unit(t *testing.T) {
	for _, needed := range []string{"/usr/lib/systemd/systemd", "/usr/bin/unshare", "/usr/bin/systemctl"} {
		if _, err := os.Stat(needed); err != nil || os.Getuid() != 0 {
			t.Skipf("the unit is not run: that takes root (this is %d) and %s (%v)", os.Getuid(), needed, err)
		}
	}
	boot, err := filepath.Abs("testdata/boot.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir, output := t.TempDir(), filepath.Join(t.TempDir(), "output")
	for name, data := range map[string]string{
		"anykind":         string(program(r.archives["linux-"+goEnv(t, "GOARCH")])),
		"anykind.service": string(r.archives["linux-amd64"]["systemd/anykind.service"]),
		"probe.sh":        probe,
		"probe.service": "[Unit]\nWants=anykind.service\nAfter=anykind.service\nDefaultDependencies=no\n" +
			"[Service]\nType=oneshot\nExecStopPost=/usr/bin/systemctl --force exit\nEnvironment=TEST=" + os.Args[0] +
			"\nExecStart=/bin/bash " + filepath.Join(dir, "probe.sh") + "\nStandardOutput=file:" + output + "\nStandardError=file:" + output + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", boot, dir)
	said, ended := cmd.CombinedOutput() // the exit code of systemd means nothing here
	seen, err := os.ReadFile(output)
	if err != nil || !strings.HasSuffix(string(seen), "all is well\n") {
		t.Fatalf("%v, %v: %s\n%s", ended, err, seen, said)
	}
	t.Log("systemd runs the server by its unit, and it does its work")
}

func inThere(t *testing.T) *container {
	if *inUnit == "" {
		t.Skip("this is run by the unit's test, beside the server")
	}
	c := &container{}
	c.connect(t, *inUnit)
	return c
}

func TestCreateInUnit(t *testing.T) {
	inThere(t).request(t, http.MethodPost, "/api/v1/namespaces/default/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}}`, http.StatusCreated)
}

func TestKeptInUnit(t *testing.T) {
	inThere(t).request(t, http.MethodGet, "/api/v1/namespaces/default/configmaps/kept", "", http.StatusOK)
}
