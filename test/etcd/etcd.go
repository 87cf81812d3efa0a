// Package etcd tests the store in etcd, and servers that share one etcd. It uses the published etcd,
// in the process of the test.
package etcd

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// Start starts an etcd, which stops at the end of the test, and returns its URL.
func Start(t testing.TB) string {
	t.Helper()
	client, peer := freeURL(t), freeURL(t)
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.LogLevel = "fatal"
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// A single member elects itself after the shortest timeout.
	config.TickMs, config.ElectionMs = 10, 50
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("etcd was not ready after a minute")
	}
	return client.String()
}

// ports are those that freeURL returned: after firstPort, each once.
var (
	ports     atomic.Int64
	firstPort = rand.Int64N(12_000)
)

// freeURL returns a URL of this machine with a free port. The port is below the ephemeral ports, which
// outgoing connections use. No two calls return the same one.
func freeURL(t testing.TB) url.URL {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+(firstPort+ports.Add(1))%12_000))
		if err != nil {
			continue
		}
		defer l.Close()
		return url.URL{Scheme: "http", Host: l.Addr().String()}
	}
	t.Fatal("found no free port")
	return url.URL{}
}
