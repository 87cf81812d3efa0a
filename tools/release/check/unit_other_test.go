//go:build !linux

package check

import "testing"

func (r *release) unit(t *testing.T) { t.Skip("there is no systemd here") }
