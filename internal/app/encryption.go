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
}

// read reads the configuration.
func (e *Encryption) read() (read encryption, err error) {
	switch {
	case e.ConfigFile == "" && e.Reload:
		return read, errors.New("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")
	case e.ConfigFile == "":
		return read, nil
	}
	if read.data, err = os.ReadFile(e.ConfigFile); err != nil {
		return read, fmt.Errorf("error reading encryption provider configuration file %q: %w", e.ConfigFile, err)
	}
	if read.config, err = parseEncryption(read.data); err != nil {
		return read, fmt.Errorf("encryption provider configuration file %q: %w", e.ConfigFile, err)
	}
	return read, nil
}

func parseEncryption(data []byte) (*encrypt.Config, error) {
	decoded, kind, err := configfile.DecodeAny(data)
	if err != nil {
		return nil, fmt.Errorf("error decoding encryption provider configuration: %w", err)
	}
	in, ok := decoded.(*apiserver.EncryptionConfiguration)
	if !ok {
		return nil, fmt.Errorf("got unexpected config type: %v", kind)
	}
	return encrypt.New(in)
}

// follow puts changes of the file in force. Values that are read or written later use the new keys.
func (e *Encryption) follow(ctx context.Context, data []byte, keys *encrypt.Keyring, m *configfile.Metrics, log *slog.Logger) {
	f := configfile.File{Path: e.ConfigFile, Of: "encryption", Data: data, Metrics: m, Log: log, Load: func(_ context.Context, data []byte) (bool, error) {
		c, err := parseEncryption(data)
		if err != nil {
			return true, err
		}
		keys.Use(c)
		return true, nil
	}}
	f.Follow(ctx)
}
