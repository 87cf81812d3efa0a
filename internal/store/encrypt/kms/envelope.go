//lint:file-ignore SA1019 version 1 of the protocol is deprecated, and old data needs it

package kms

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/apis/apiserver"
	kmsapi "k8s.io/kms/apis/v1beta1"

	"github.com/anykind/anykind/internal/store/encrypt/block"
)

// An envelopeService is the API of a KMS plugin with version 1 of the protocol. Each call has a timeout.
type envelopeService interface {
	decrypter
	encrypt(ctx context.Context, plain []byte) ([]byte, error)
	close() error
}

// An Envelope encrypts with one KMS plugin by version 1 of the protocol. Each value has a key of its own. The KMS
// encrypts the key at the write, and it is stored in front of the value.
type Envelope struct {
	name    string
	timeout time.Duration
	service envelopeService
	options Options
	keys    cache
	probe   probe

	stop context.CancelFunc
	run  sync.WaitGroup
}

// OpenEnvelope returns an Envelope of a configuration. It makes no calls before Start.
func OpenEnvelope(c *apiserver.KMSConfiguration, o Options) (*Envelope, error) {
	s := &envelopeClient{timeout: c.Timeout.Duration}
	var err error
	if s.connection, err = connect(c, s.checked); err != nil {
		return nil, fmt.Errorf("could not configure KMSv1-Plugin's probe %q, error: %w", c.Name, err)
	}
	s.api = kmsapi.NewKeyManagementServiceClient(s.connection)
	return newEnvelope(c, s, o), nil
}

func newEnvelope(c *apiserver.KMSConfiguration, s envelopeService, o Options) *Envelope {
	limit := 0
	if c.CacheSize != nil {
		limit = max(int(*c.CacheSize), 0)
	}
	return &Envelope{name: c.Name, timeout: c.Timeout.Duration, service: s, options: o, stop: func() {}, probe: newProbe(),
		keys: newCache(s, o.Metrics, limit, func(n int) {
			if limit > 0 {
				o.Metrics.filled.Set(float64(n) / float64(limit))
			}
		})}
}

// Timeout returns the timeout of both calls of a check.
func (e *Envelope) Timeout() time.Duration { return 2 * e.timeout }

// Start checks the plugin once, and then in the background until Close. A plugin that does not answer is
// no error: it may start later.
func (e *Envelope) Start(ctx context.Context) {
	err := e.Check(ctx)
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.run.Go(func() { pollUntil(ctx, e.name, err, e.Check, e.options.Log) })
	e.run.Go(func() { e.rereadUntil(ctx) })
}

// retryLost limits the interval at which values are read again that the plugin rejects.
const retryLost = 10 * time.Minute

// rereadUntil calls Readable some time after a key could not be decrypted, until ctx ends: once the plugin is healthy
// again, or after a pause that grows.
func (e *Envelope) rereadUntil(ctx context.Context) {
	for pause := retryMost; ; pause = min(2*pause, retryLost) {
		select {
		case <-e.keys.failed:
		case <-ctx.Done():
			return
		}
		select {
		case <-e.keys.healed:
			pause = retryMost
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		e.options.Readable()
	}
}

// Close ends the background work and the connection.
func (e *Envelope) Close() error {
	e.stop()
	err := e.service.close()
	e.run.Wait()
	return err
}

// Check returns the problem of the plugin. It has the plugin encrypt and decrypt, or returns the result of a recent check.
func (e *Envelope) Check(ctx context.Context) error { return e.probe.check(ctx, e.ask, e.keys.healed) }

func (e *Envelope) ask(ctx context.Context) error {
	sealed, err := e.service.encrypt(ctx, []byte("ping"))
	if err != nil {
		return &unansweredError{"encrypt", e.name, err}
	}
	if _, err := e.service.decrypt(ctx, string(uuid.NewUUID()), &source{kind: kindEnvelope, encrypted: sealed}); err != nil {
		return &unansweredError{"decrypt", e.name, err}
	}
	return nil
}

// Seal appends the encrypted value to dst. data is authenticated.
func (e *Envelope) Seal(dst, plain, data []byte) ([]byte, error) {
	key := e.generate()
	sealed, err := e.service.encrypt(context.Background(), key)
	if err != nil {
		return nil, err
	}
	if len(sealed) > math.MaxUint16 {
		return nil, fmt.Errorf("the KMS encrypts a key as %d bytes, more than fit into a value", len(sealed))
	}
	o, err := newEnvelopeKey(key)
	if err != nil {
		return nil, err
	}
	e.keys.put(&source{kind: kindEnvelope, encrypted: sealed}, o)
	return o.Encrypt(append(binary.BigEndian.AppendUint16(dst, uint16(len(sealed))), sealed...), plain, data), nil
}

func (e *Envelope) generate() []byte {
	defer e.options.Metrics.generated(time.Now())
	return random()
}

var errEnvelope = errors.New("invalid data encountered by envelope transformer: failed to read uint16 length prefixed data")

// Open returns the plain value. stale reports that Seal would use another cipher.
func (e *Envelope) Open(ctx context.Context, sealed, data []byte) (plain []byte, stale bool, err error) {
	if len(sealed) < 2 {
		return nil, false, errEnvelope
	}
	n, rest := int(binary.BigEndian.Uint16(sealed)), sealed[2:]
	if len(rest) < n {
		return nil, false, errEnvelope
	}
	o, err := e.keys.get(ctx, &source{kind: kindEnvelope, encrypted: rest[:n]})
	if err != nil {
		return nil, false, err
	}
	return o.open(rest[n:], data)
}

// An envelopeKey is the key of one value. It also reads values with AES-CBC, as old servers wrote them.
type envelopeKey struct {
	block.GCM
	old block.CBC
}

func newEnvelopeKey(key []byte) (envelopeKey, error) {
	g, err := block.NewGCM(key)
	if err != nil {
		return envelopeKey{}, err
	}
	c, err := block.NewCBC(key)
	return envelopeKey{g, c}, err
}

func (k envelopeKey) open(sealed, data []byte) (plain []byte, old bool, err error) {
	if plain, err = k.Decrypt(sealed, data); err == nil {
		return plain, false, nil
	}
	if plain, oldErr := k.old.Decrypt(sealed); oldErr == nil {
		return plain, true, nil
	}
	return nil, false, err
}

// envelopeVersion is the version of the protocol in its messages.
const envelopeVersion = "v1beta1"

// An envelopeClient calls a plugin on its socket. Calls wait until it listens.
type envelopeClient struct {
	connection *grpc.ClientConn
	api        kmsapi.KeyManagementServiceClient
	timeout    time.Duration

	mu    sync.Mutex
	known bool // the plugin has the version
}

func (c *envelopeClient) close() error { return c.connection.Close() }

// checked asks for the version of the plugin before the first call.
func (c *envelopeClient) checked(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	if !kmsapi.IsVersionCheckMethod(method) {
		if err := c.checkVersion(ctx); err != nil {
			return err
		}
	}
	return call(ctx, method, request, answer, cc, o...)
}

func (c *envelopeClient) checkVersion(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return nil
	}
	answer, err := c.api.Version(ctx, &kmsapi.VersionRequest{Version: envelopeVersion})
	switch {
	case err != nil:
		return fmt.Errorf("failed get version from remote KMS provider: %w", err)
	case answer.GetVersion() != envelopeVersion:
		return fmt.Errorf("KMS provider api version %s is not supported, only %s is supported now", answer.GetVersion(), envelopeVersion)
	}
	c.known = true
	return nil
}

func (c *envelopeClient) encrypt(ctx context.Context, plain []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.Encrypt(ctx, &kmsapi.EncryptRequest{Version: envelopeVersion, Plain: plain})
	return answer.GetCipher(), err
}

func (c *envelopeClient) decrypt(ctx context.Context, _ string, s *source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := c.api.Decrypt(ctx, &kmsapi.DecryptRequest{Version: envelopeVersion, Cipher: s.encrypted})
	return answer.GetPlain(), err
}
