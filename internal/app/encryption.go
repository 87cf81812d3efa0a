package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// An Encryption configures encryption at rest.
type Encryption struct {
	// ConfigFile is an EncryptionConfiguration; "" stores plain values.
	ConfigFile string
	// Reload follows changes of the file.
	Reload bool
}

// encryption is the parsed configuration.
type encryption struct {
	config *encrypt.Config // nil without a file
	data   []byte
	// metrics are nil without a file.
	metrics *encrypt.Metrics
}

// read reads the configuration.
func (e *Encryption) read(log *slog.Logger) (read encryption, err error) {
	switch {
	case e.ConfigFile == "" && e.Reload:
		return read, errors.New("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")
	case e.ConfigFile == "":
		return read, nil
	}
	if read.data, err = os.ReadFile(e.ConfigFile); err != nil {
		return read, fmt.Errorf("error reading encryption provider configuration file %q: %w", e.ConfigFile, err)
	}
	read.metrics = encrypt.NewMetrics(serverID())
	if read.config, err = parseEncryption(read.data, encrypt.Options{Metrics: read.metrics, Log: log}); err != nil {
		return read, fmt.Errorf("encryption provider configuration file %q: %w", e.ConfigFile, err)
	}
	return read, nil
}

func parseEncryption(data []byte, o encrypt.Options) (*encrypt.Config, error) {
	decoded, kind, err := configfile.DecodeAny(data)
	if err != nil {
		return nil, fmt.Errorf("error decoding encryption provider configuration: %w", err)
	}
	in, ok := decoded.(*apiserver.EncryptionConfiguration)
	if !ok {
		return nil, fmt.Errorf("got unexpected config type: %v", kind)
	}
	return encrypt.New(in, o)
}

// encrypt starts the parts of the server that encryption needs.
func (w *wired) encrypt(a *App, o Options, given encryption, keys *encrypt.Keyring) {
	a.encryption, a.rekeyed = given.metrics, configfile.NewMetrics("encryption", serverID())
	a.rekeyed.Begin(given.data)
	a.parts.run("reread", func(ctx context.Context) error { return reread(ctx, keys, w.cache) })
	if o.Encryption.Reload || keys.HasKMS() {
		w.health.kms = keys.Check
	}
	if w.health.rekeys = o.Encryption.Reload; o.Encryption.Reload {
		a.parts.run("encryption", func(ctx context.Context) error {
			o.Encryption.follow(ctx, given, keys, a.rekeyed, o.Log)
			return nil
		})
	}
}

// follow puts changes of the file in force. Values that are read or written later use the new keys.
func (e *Encryption) follow(ctx context.Context, given encryption, keys *encrypt.Keyring, m *configfile.Metrics, log *slog.Logger) {
	f := configfile.File{Path: e.ConfigFile, Of: "encryption", Data: given.data, Metrics: m, Log: log, Load: func(ctx context.Context, data []byte) (final bool, err error) {
		c, err := parseEncryption(data, encrypt.Options{Metrics: given.metrics, Log: log})
		if err != nil {
			return true, err
		}
		err = keys.Use(ctx, c)
		return err == nil, err // a plugin may be healthy later
	}}
	f.Follow(ctx)
}

// reread has the cache read objects again that could not be decrypted, when that may have changed.
func reread(ctx context.Context, keys *encrypt.Keyring, cache *watchcache.Cache) error {
	for {
		select {
		case <-keys.Readable():
			cache.Reread()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
