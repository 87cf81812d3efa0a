package envtest

//lint:file-ignore SA1019 who still sets what is deprecated is served as by controller-runtime, or told why not

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/template"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/server/fault"
	"github.com/anykind/anykind/internal/store/kv"
)

// compiled has the schemas that servers of this process share. It is created before any test: a value
// from the bubble of one test cannot be used in another.
var compiled = compile.NewShared()

// A server is the running server of an Environment.
type server struct {
	app       *app.App
	keys      *credentials
	issuers   []string     // of accepted tokens; the first one is the server's own
	underWay  atomic.Int64 // open requests, except long-running ones
	writes    atomic.Int64 // completed requests that may have changed an object
	faults    fault.Set
	watches   watches
	recorders recorders
	observers observers
	stored    kv.Backend

	stop func() error
}

// startServer starts the server that ControlPlane describes.
func (te *Environment) startServer() (_ *server, err error) {
	s := te.ControlPlane.GetAPIServer()
	if s.URL != nil || s.InsecureServing != nil {
		return nil, errors.New("kube-apiserver has had no insecure port since Kubernetes 1.20: leave out URL and InsecureServing")
	}
	startTime, err := timeout(te.ControlPlaneStartTimeout, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT")
	if err != nil {
		return nil, err
	}
	stopTime, err := timeout(te.ControlPlaneStopTimeout, "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT")
	if err != nil {
		return nil, err
	}
	var undo undoing
	defer func() {
		if err != nil {
			err = errors.Join(err, undo.all())
		}
	}()
	started := &server{}
	if started.keys = te.From.credentials(); started.keys == nil {
		if started.keys, err = newCredentials(); err != nil {
			return nil, err
		}
	}
	listener, err := te.listen(s, &undo)
	if err != nil {
		return nil, err
	}
	if err := te.prepare(s, started.keys, listener, &undo); err != nil {
		return nil, err
	}
	own := s.SecureServing.URL("https", "/").String()
	others := slices.DeleteFunc(slices.Clone(te.From.issued()), func(issuer string) bool { return issuer == own })
	started.issuers = append([]string{own}, others...)
	o, err := te.options(s, started.issuers)
	if err != nil {
		return nil, err
	}
	o.Listener, o.Compiled, o.From, o.Hooks = listener, compiled, te.From.stored(), started.hooks()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	if started.app, err = app.Start(ctx, o); err != nil {
		return nil, err
	}
	undo.add(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		return started.app.Stop(ctx)
	})
	started.stop = sync.OnceValue(undo.all)
	stopping(s, started.stop)
	te.findKubectl()
	return started, nil
}

// stopServer stops the server, if there is one.
func (te *Environment) stopServer() error {
	if te.server == nil {
		return nil
	}
	stop := te.server.stop
	te.server = nil
	return stop()
}

// undoing is a list of cleanup functions, run last to first.
type undoing []func() error

func (u *undoing) add(step func() error) { *u = append(*u, step) }

func (u *undoing) all() (err error) {
	for i := len(*u) - 1; i >= 0; i-- {
		err = errors.Join(err, (*u)[i]())
	}
	return err
}

// listen listens at the address of SecureServing, or at a free port, and sets the address there.
func (te *Environment) listen(s *APIServer, undo *undoing) (net.Listener, error) {
	if s.SecurePort != 0 {
		s.SecureServing.Port = fmt.Sprint(s.SecurePort)
	}
	at := &s.SecureServing.ListenAddr
	if at.Address == "" {
		at.Address = "127.0.0.1"
	}
	if te.InMemory {
		if at.Port == "" {
			at.Port = "6443"
		}
		return newMemory(*at)
	}
	if at.Port == "" {
		undo.add(func() error { at.Port, s.SecurePort = "", 0; return nil })
	}
	l, err := net.Listen("tcp", net.JoinHostPort(at.Address, orZero(at.Port)))
	if err != nil {
		return nil, err
	}
	undo.add(func() error { _ = l.Close(); return nil }) // in case the server does not own it yet
	_, at.Port, err = net.SplitHostPort(l.Addr().String())
	if err == nil {
		s.SecurePort = l.Addr().(*net.TCPAddr).Port
	}
	return l, err
}

func orZero(port string) string {
	if port == "" {
		return "0"
	}
	return port
}

// prepare makes the directory of certificates and the users.
func (te *Environment) prepare(s *APIServer, keys *credentials, listener net.Listener, undo *undoing) error {
	if s.CertDir == "" {
		dir, err := os.MkdirTemp("", "envtest-")
		if err != nil {
			return err
		}
		s.CertDir = dir
		undo.add(func() error { s.CertDir = ""; return os.RemoveAll(dir) })
	}
	ca, err := keys.write(s.CertDir)
	if err != nil {
		return err
	}
	s.SecureServing.CA = ca
	users := &authn{Authn: s.SecureServing.Authn}
	if before, ok := users.Authn.(*authn); ok {
		users.Authn = before.Authn
	}
	if _, ours := users.Authn.(*certificates); ours || users.Authn == nil {
		users.Authn = &certificates{ca: keys.clients}
	}
	if m, ok := listener.(*memory); ok {
		users.dial = m.dial
	}
	s.SecureServing.Authn = users
	if err := users.Configure(s.CertDir, s.Configure()); err != nil {
		return err
	}
	return users.Start()
}

// stopping stops the server together with its ControlPlane.
func stopping(s *APIServer, stop func() error) { s.SecureServing.Authn.(*authn).stop = stop }

// authn is an Authn whose users get configs that reach the server.
type authn struct {
	Authn
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	stop func() error
}

// AddUser implements Authn.
func (a *authn) AddUser(user User, base *rest.Config) (*rest.Config, error) {
	config, err := a.Authn.AddUser(user, base)
	if err == nil && a.dial != nil {
		config.Dial = a.dial
	}
	return config, err
}

// Stop implements Authn.
func (a *authn) Stop() error {
	err := a.Authn.Stop()
	if a.stop != nil {
		err = errors.Join(err, a.stop())
	}
	return err
}

// options returns the options from the flags.
func (te *Environment) options(s *APIServer, issuers []string) (app.Options, error) {
	arguments, err := arguments(s, issuers)
	if err != nil {
		return app.Options{}, err
	}
	if te.Version != "" {
		arguments = append(arguments, "--emulated-version="+te.Version)
	}
	var given flags.APIServer
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	given.Add(set)
	if err := set.Parse(arguments); err != nil {
		return app.Options{}, fmt.Errorf("flags of kube-apiserver: %w", err)
	}
	if set.NArg() > 0 {
		return app.Options{}, fmt.Errorf("flags of kube-apiserver: %q is none", set.Arg(0))
	}
	out := s.Err
	if out == nil && (te.AttachControlPlaneOutput || os.Getenv("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT") == "true") {
		out = os.Stderr
	}
	if out == nil {
		out = io.Discard
	}
	controllers := os.Getenv(flags.ControllersVariable)
	if te.Controllers != nil {
		controllers = strings.Join(te.Controllers, ",")
	}
	return given.Options(given.Log(out), controllers)
}

// arguments returns the flags: the given ones, and the defaults of controller-runtime for the others.
func arguments(s *APIServer, issuers []string) ([]string, error) {
	always := map[string][]string{
		"cert-dir":                         {s.CertDir},
		"bind-address":                     {s.SecureServing.Address},
		"secure-port":                      {s.SecureServing.Port},
		"service-cluster-ip-range":         {"10.0.0.0/24"},
		"authorization-mode":               {"RBAC"},
		"service-account-issuer":           issuers,
		"service-account-key-file":         {filepath.Join(s.CertDir, accountsCertFile)},
		"service-account-signing-key-file": {filepath.Join(s.CertDir, accountsKeyFile)},
	}
	given := s.Configure()
	rest, err := templates(s, given)
	if err != nil {
		return nil, err
	}
	if len(s.Args) == 0 {
		always["allow-privileged"] = []string{"true"}
		// Without its controller, there are no ServiceAccounts.
		always["disable-admission-plugins"] = []string{"ServiceAccount"}
	}
	return append(given.AsStrings(always), rest...), nil
}

// templates adds the flags of Args, which are templates of s, and returns those that cannot be added.
func templates(s *APIServer, to *Arguments) (rest []string, err error) {
	for _, arg := range s.Args {
		parsed, err := template.New("").Parse(arg)
		if err != nil {
			return nil, err
		}
		var out strings.Builder
		if err := parsed.Execute(&out, s); err != nil {
			return nil, err
		}
		name, value, ok := strings.Cut(out.String(), "=")
		if name, isFlag := strings.CutPrefix(name, "--"); isFlag && ok {
			to.AppendNoDefaults(name, value)
		} else {
			rest = append(rest, out.String())
		}
	}
	return rest, nil
}

// findKubectl sets the path of kubectl for AuthenticatedUser.Kubectl. Without a kubectl, only that
// method fails.
func (te *Environment) findKubectl() {
	plane := &te.ControlPlane
	if plane.KubectlPath == "" && te.BinaryAssetsDirectory != "" {
		if path := filepath.Join(te.BinaryAssetsDirectory, "kubectl"); isFile(path) {
			plane.KubectlPath = path
		}
	}
	if plane.KubectlPath != "" || os.Getenv("TEST_ASSET_KUBECTL") != "" || os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return
	}
	if path, err := exec.LookPath("kubectl"); err == nil {
		plane.KubectlPath = path
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// WaitIdle waits until nothing is pending in the server: no request is open, the controllers of the
// server have processed all writes, and every watch has been sent all of them. WaitIdle does not wait
// for tasks of controllers that are scheduled for later. It waits for a failing task until the task
// succeeds or ctx ends.
//
// A client may not have received or processed all that the server has sent. So WaitIdle cannot know
// whether a controller of the test has work left, only that the server has nothing left to send. In a
// bubble of testing/synctest, synctest.Wait covers both.
func (te *Environment) WaitIdle(ctx context.Context) error {
	if te.server == nil {
		return errNotStarted
	}
	s := te.server
	for {
		before := s.writes.Load()
		if err := s.app.WaitIdle(ctx); err != nil {
			return fmt.Errorf("the server is not idle; %d requests are in progress: %w", s.underWay.Load(), err)
		}
		// A request that completed meanwhile may have given the controllers work.
		if s.underWay.Load() == 0 && s.writes.Load() == before {
			return nil
		}
		_ = fault.Wait(ctx, time.Millisecond)
	}
}

var errNotStarted = errors.New("the environment has no server: it was not started, or uses an existing cluster")
