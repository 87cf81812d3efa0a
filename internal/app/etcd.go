package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/protobuf"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/store/etcdkv"
	"github.com/anykind/anykind/internal/store/kv"
)

// Etcd configures a store in etcd.
type Etcd struct {
	Servers []string // URLs
	// CAFile has the CAs of the servers; empty for those of the system.
	CAFile string
	// CertFile and KeyFile are the client certificate; both empty for none.
	CertFile, KeyFile string
	// Prefix is the prefix of all keys; empty is /registry.
	Prefix string
	// CompactionInterval is the interval between compactions by one of the store's API servers; 0
	// disables compaction.
	CompactionInterval time.Duration
	// MediaType is the form of built-in kinds in etcd: StorageProtobuf or StorageJSON; empty is StorageJSON. Objects in both
	// forms are read.
	MediaType string
}

// Forms of built-in kinds in etcd.
const (
	StorageProtobuf = runtime.ContentTypeProtobuf
	StorageJSON     = runtime.ContentTypeJSON
)

// shared reports whether other servers may write to the store.
func (o Options) shared() bool { return o.Backend != nil || len(o.Etcd.Servers) > 0 }

// isEtcdURL reports whether a URL is valid for etcd: with a port, or with a Unix socket.
func isEtcdURL(server string) bool {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return false
	case u.Scheme == "unix" || u.Scheme == "unixs":
		return u.Path != ""
	}
	return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// open connects to the store, and returns when it responds.
func (e Etcd) open(ctx context.Context, maxBytes int, dial egress.Dial, gates *gate.Set) (kv.Backend, error) {
	for _, server := range e.Servers {
		if !isEtcdURL(server) {
			return nil, fmt.Errorf("etcd server %q: want a URL such as https://127.0.0.1:2379", server)
		}
	}
	secure, err := e.tls()
	if err != nil {
		return nil, err
	}
	if maxBytes == 0 {
		maxBytes = kv.DefaultMaxValueBytes
	}
	options := etcdkv.Options{
		Endpoints: e.Servers,
		TLS:       secure,
		Dial:      dial,
		Root:      resource.Root,
		Prefix:    etcdRoot(e.Prefix),
		// The stored form of an object may be larger than its JSON. etcd enforces its own limit.
		MaxValueBytes: 2 * maxBytes,
		Resource:      resourceOf(builtin.Stored(nil)),
		Gates:         gates,
	}
	store, err := etcdkv.Open(options)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	if _, err := store.Revision(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd at %s does not answer: %w", strings.Join(e.Servers, ", "), err), store.Close())
	}
	if err := store.Supported(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// resourceOf returns a function for the group and the plural in a key; both are "" for a key of no
// object.
func resourceOf(kinds []*resource.Definition) func(key string) (group, plural string) {
	builtIn := map[string]*resource.Definition{}
	for _, d := range kinds {
		builtIn[d.StoragePrefix] = d
	}
	return func(key string) (string, string) {
		rest := strings.TrimPrefix(key, resource.Root)
		end := len(key) - len(rest)
		for range 2 { // parts of a prefix
			part := strings.IndexByte(key[end:], '/')
			if part < 0 {
				return "", ""
			}
			end += part + 1
			if d := builtIn[key[:end]]; d != nil {
				return d.Group, d.Plural
			}
		}
		group, plural, _ := resource.SplitCustom(key[:end])
		if strings.HasPrefix(group, ".") { // bookkeeping of the store
			return "", ""
		}
		return strings.Clone(group), strings.Clone(plural)
	}
}

// storedForm converts objects to and from kube-apiserver's storage format in etcd.
type storedForm struct {
	kinds    []*resource.Definition
	types    *protobuf.Types
	protobuf bool // built-in kinds are written as protobuf
	cbor     bool // custom objects are written as CBOR, as by kube-apiserver
}

func newStoredForm(o Options) storedForm {
	return storedForm{
		kinds: builtin.Stored(o.Gates), types: &protobuf.Types{},
		protobuf: o.Etcd.MediaType == StorageProtobuf, cbor: o.Gates.On(gate.CBORServingAndStorage),
	}
}

// Decode returns the JSON of a stored value. It returns an undecodable value unchanged: the reader
// reports the error.
func (f storedForm) Decode(_ context.Context, key string, value []byte) []byte {
	value = builtin.StoredJSON(f.kinds, key, value)
	if strings.HasPrefix(key, crd.Prefix) {
		return orItself(crd.FromBeta, value)
	}
	return value
}

// Encode returns the stored value of a JSON object.
func (f storedForm) Encode(_ context.Context, key string, value []byte) ([]byte, error) {
	switch builtIn := builtin.IsStored(f.kinds, key); {
	case strings.HasPrefix(key, crd.Prefix):
		return orItself(crd.ToBeta, value), nil
	case builtIn && f.protobuf:
		if message, ok := builtin.StoredProtobuf(f.types, f.kinds, key, value); ok {
			return message, nil
		}
	case !builtIn && f.cbor:
		return orItself(codec.ToCBOR, value), nil
	}
	return value, nil
}

// Outdated implements transform.Former: a built-in kind is stored as JSON in place of protobuf or the reverse, in a removed
// version, or without later defaults.
func (f storedForm) Outdated(ctx context.Context, key string, stored []byte) (bool, error) {
	if !builtin.IsStored(f.kinds, key) {
		return false, nil
	}
	now, err := f.Encode(ctx, key, f.Decode(ctx, key, stored))
	return err == nil && !bytes.Equal(now, stored), nil
}

func orItself(rewrite func([]byte) ([]byte, error), value []byte) []byte {
	if made, err := rewrite(value); err == nil {
		return made
	}
	return value
}

// tls returns the TLS configuration, or nil if no server has an https URL.
func (e Etcd) tls() (*tls.Config, error) {
	if (e.CertFile == "") != (e.KeyFile == "") {
		return nil, fmt.Errorf("etcd: want both --etcd-certfile (%q) and --etcd-keyfile (%q)", e.CertFile, e.KeyFile)
	}
	secure := false
	for _, server := range e.Servers {
		secure = secure || strings.HasPrefix(server, "https:")
	}
	if !secure {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		pem, err := os.ReadFile(e.CAFile)
		if err != nil {
			return nil, fmt.Errorf("etcd: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("etcd: %s has no CA certificate", e.CAFile)
		}
	}
	if e.CertFile != "" {
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("etcd: %w", err)
			}
			return &certificate, nil
		}
		if _, err := load(nil); err != nil {
			return nil, err
		}
		config.GetClientCertificate = load // loaded for each connection: the files may change
	}
	return config, nil
}

// retain compacts the history of the store until ctx ends.
func (o Options) retain(ctx context.Context, b kv.Backend, failed func(error)) error {
	if _, ok := kv.As[kv.Historian](b); ok || o.copied != nil { // it compacts by itself, or keeps the changes of a fork
		<-ctx.Done()
		return ctx.Err()
	}
	store, ok := kv.As[*etcdkv.Store](b)
	switch {
	case !ok:
		return kv.Retain(ctx, b, History, failed)
	case o.Etcd.CompactionInterval <= 0:
		<-ctx.Done()
		return ctx.Err()
	}
	return store.Retain(ctx, o.Etcd.CompactionInterval, failed)
}
