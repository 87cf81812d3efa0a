package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// memberVariable makes the test binary a member of etcd. Its value is the description of the member.
const memberVariable = "ANYKIND_TEST_MEMBER"

// A Member is a process of etcd. The other members reach it through a Proxy, which can cut them off
// from each other.
type Member struct {
	Name, Dir            string
	Client, Peer, Public string // URLs; Public is the Peer URL for other members, through the Proxy
	Cluster              string
	Quota                int64  // storage quota; 0 for etcd's default
	Secure               string // additional https URL for clients; empty for none
	CA, Cert, Key        string // files, for Secure

	t    testing.TB
	cmd  *exec.Cmd
	peer *Proxy
	id   string
}

// A Cluster is three members.
type Cluster struct {
	Members []*Member
}

// StartCluster starts three members, and stops them at the end of the test.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	var urls []string
	dir := t.TempDir()
	for i := range 3 {
		client, peer := freeURL(t), freeURL(t)
		m := &Member{Name: fmt.Sprintf("m%d", i), t: t, Client: client.String(), Peer: peer.String(), peer: NewProxy(t, peer.Host)}
		m.Dir = filepath.Join(dir, m.Name)
		m.Public = "http://" + m.peer.Address()
		c.Members = append(c.Members, m)
		urls = append(urls, m.Name+"="+m.Public)
	}
	for _, m := range c.Members {
		m.Cluster = strings.Join(urls, ",")
		m.Begin()
	}
	for _, m := range c.Members {
		m.Wait()
	}
	client := c.Members[0].client()
	defer client.Close()
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Members {
		i, _ := strconv.Atoi(strings.TrimPrefix(m.Name, "m"))
		c.Members[i].id = strconv.FormatUint(m.ID, 16)
	}
	return c
}

// StartMember starts a cluster of one member, and stops it at the end of the test.
func StartMember(t testing.TB) *Member {
	t.Helper()
	m := NewMember(t)
	m.Begin()
	m.Wait()
	return m
}

// NewMember returns the member of a cluster of one, without starting it.
func NewMember(t testing.TB) *Member {
	t.Helper()
	client, peer := freeURL(t), freeURL(t)
	m := &Member{Name: "m0", t: t, Dir: filepath.Join(t.TempDir(), "m0"), Client: client.String(), Peer: peer.String(), Public: peer.String()}
	m.Cluster = m.Name + "=" + m.Public
	return m
}

// Begin starts the process.
func (m *Member) Begin() {
	m.t.Helper()
	description, err := json.Marshal(m)
	if err != nil {
		m.t.Fatal(err)
	}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), memberVariable+"="+string(description))
	m.cmd.Stderr = os.Stderr
	if err := m.cmd.Start(); err != nil {
		m.t.Error(err)
		return
	}
	cmd := m.cmd
	m.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// Wait waits until the member answers a consistent read, which needs a quorum.
func (m *Member) Wait() {
	m.t.Helper()
	client := m.client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	for {
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		_, err := client.Get(bounded, "/")
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			m.t.Fatalf("%s does not answer: %v", m.Name, err)
		}
	}
}

// client returns a client of this member alone.
func (m *Member) client() *clientv3.Client {
	m.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Client}, Logger: zap.NewNop(), Context: m.t.Context()})
	if err != nil {
		m.t.Fatal(err)
	}
	return client
}

// Kill kills the process, as close to a power failure as possible.
func (m *Member) Kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// Freeze suspends the process, and Thaw resumes it.
func (m *Member) Freeze() { _ = m.cmd.Process.Signal(syscall.SIGSTOP) }
func (m *Member) Thaw()   { _ = m.cmd.Process.Signal(syscall.SIGCONT) }

// Leads reports whether the member is the leader.
func (m *Member) Leads() bool {
	client := m.client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
	defer cancel()
	status, err := client.Status(ctx, m.Client)
	return err == nil && status.Leader == status.Header.MemberId
}

// Leader returns the leader, or any member if there is none.
func (c *Cluster) Leader() *Member {
	for _, m := range c.Members {
		if m.Leads() {
			return m
		}
	}
	return c.Members[0]
}

// Isolate cuts a member off from the others, but not from its clients.
func (c *Cluster) Isolate(alone *Member, what trouble) {
	for _, m := range c.Members {
		m.peer.CutFrom(func(from string) trouble {
			if m == alone || from == alone.id {
				return what
			}
			return none
		})
	}
}

// Heal ends what Isolate began.
func (c *Cluster) Heal() {
	for _, m := range c.Members {
		m.peer.Heal()
	}
}

// be runs the process of a member.
func be(description string) error {
	var m Member
	if err := json.Unmarshal([]byte(description), &m); err != nil {
		return err
	}
	config := embed.NewConfig()
	config.Name, config.Dir, config.InitialCluster = m.Name, m.Dir, m.Cluster
	config.LogLevel = "fatal"
	config.ListenClientUrls, config.AdvertiseClientUrls = parse(m.Client), parse(m.Client)
	config.ListenPeerUrls, config.AdvertisePeerUrls = parse(m.Peer), parse(m.Public)
	// The kernel survives a kill of the process, and with it the written data.
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = m.Quota
	if m.Secure != "" {
		config.ListenClientUrls = append(config.ListenClientUrls, parse(m.Secure)...)
		config.ClientTLSInfo = transport.TLSInfo{CertFile: m.Cert, KeyFile: m.Key, TrustedCAFile: m.CA, ClientCertAuth: true}
	}
	config.TickMs, config.ElectionMs = 50, 500
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}

func parse(s string) []url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err) // written here
	}
	return []url.URL{*u}
}
