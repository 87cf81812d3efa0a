package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/kv"
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
	// options have no metrics without a file.
	options encrypt.Options
}

// read reads the configuration.
func (e *Encryption) read(gates *gate.Set, log *slog.Logger) (read encryption, err error) {
	switch {
	case e.ConfigFile == "" && e.Reload:
		return read, errors.New("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")
	case e.ConfigFile == "":
		return read, nil
	}
	if read.data, err = os.ReadFile(e.ConfigFile); err != nil {
		return read, fmt.Errorf("error reading encryption provider configuration file %q: %w", e.ConfigFile, err)
	}
	read.options = encrypt.Options{Metrics: encrypt.NewMetrics(serverID()), Gates: gates, Log: log}
	if read.config, err = parseEncryption(read.data, read.options); err != nil {
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
	a.encryption, a.rekeyed = given.options.Metrics, configfile.NewMetrics("encryption", serverID())
	a.rekeyed.Begin(given.data)
	a.parts.run("reread", func(ctx context.Context) error { return reread(ctx, keys, w, o.Log) })
	for _, c := range keys.Checks(o.Encryption.Reload) {
		w.health.kms = append(w.health.kms, server.Check{Name: c.Name, Run: c.Run, Except: []string{"livez"}})
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
		c, err := parseEncryption(data, given.options)
		if err != nil {
			return true, err
		}
		err = keys.Use(ctx, c)
		return err == nil, err // a plugin may be healthy later
	}}
	f.Follow(ctx)
}

// verifyAgain is the time after which objects are verified again if the store did not answer.
const verifyAgain = 5 * time.Second

// reread has the cache read objects again after keys were added or removed, or a KMS answers again.
func reread(ctx context.Context, keys *encrypt.Keyring, w *wired, log *slog.Logger) error {
	lost := func(context.Context, string) bool { return false }
	if former, ok := kv.As[kv.Former](w.backend); ok {
		lost = func(ctx context.Context, key string) bool {
			_, err := former.Outdated(ctx, key)
			return encrypt.Lost(err)
		}
	}
	var again <-chan time.Time
	for {
		select {
		case <-keys.Readable():
			w.cache.Reread()
			continue
		case <-keys.Rekeyed():
			w.cache.Reread()
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
		again = nil
		if err := w.cache.Verify(ctx, keys.Covers, lost); err != nil && ctx.Err() == nil {
			log.Warn("objects cannot be read with the new keys yet", "error", err)
			again = time.After(verifyAgain)
		}
	}
}
