package app

import (
	"context"
	"log/slog"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/encrypt"
)

// OpenKeys opens the keys of an EncryptionConfiguration, for the values that a server with it has stored. They
// must be closed.
func OpenKeys(ctx context.Context, file string) (*encrypt.Keyring, error) {
	gates := gate.With(map[gate.Name]bool{gate.KMSv1: true}) // for values that a server with the gate has written
	given, err := (&Encryption{ConfigFile: file}).read(gates, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return encrypt.NewKeyring(ctx, given.config, builtin.Stored(nil), nil), nil
}

// anotherKeyring returns a Keyring of a configuration that has a Keyring, or is going to have one.
func anotherKeyring(ctx context.Context, c *encrypt.Config) (*encrypt.Keyring, error) {
	own, err := c.Copy()
	if err != nil {
		return nil, err
	}
	return encrypt.NewKeyring(ctx, own, builtin.Stored(nil), nil), nil
}
