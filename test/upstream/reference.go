package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// testReference runs the tests with the server they were made for, on an etcd in
// this process, and returns what became of them.
func (s *suite) testReference(o options) (*result, error) {
	etcd, address, err := startEtcd(filepath.Join(s.dir, "etcd"))
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	if err := os.Setenv("KUBE_INTEGRATION_ETCD_URL", address); err != nil {
		return nil, err
	}
	return runTests(o, []string{"test"}, nil, filepath.Join(s.dir, "failed-reference"))
}

func startEtcd(dir string) (*embed.Etcd, string, error) {
	client, err := freeURL()
	if err != nil {
		return nil, "", err
	}
	peer, err := freeURL()
	if err != nil {
		return nil, "", err
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, client.String(), nil
	case err := <-etcd.Err():
		return nil, "", err
	case <-time.After(time.Minute):
		etcd.Close()
		return nil, "", fmt.Errorf("it was not ready after a minute")
	}
}

// freeURL returns a URL of this machine on which nothing listens.
func freeURL() (*url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}
