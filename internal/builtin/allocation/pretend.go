package allocation

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// pretendedPort is Kubernetes' first node port in a dry run, if no port is requested.
const pretendedPort = 32769

// A pretence is a Chooser for a dry run: its choices need not be free.
type pretence struct{ operation }

func (o *pretence) NextAddress(ctx context.Context, family corev1.IPFamily) (string, error) {
	ranges, err := o.a.Ranges(ctx, true)
	for _, p := range ranges {
		if FamilyOf(p.Addr()) == family {
			return p.Masked().Addr().String(), nil
		}
	}
	if err == nil {
		err = ErrFull
	}
	return "", err
}

func (o *pretence) TakeAddress(ctx context.Context, text string) error {
	ip, err := ParseAddress(text)
	if err != nil {
		return err
	}
	ranges, err := o.a.Ranges(ctx, true)
	if err != nil {
		return err
	}
	var first netip.Prefix
	for _, p := range ranges {
		switch {
		case FamilyOf(p.Addr()) != FamilyOf(ip):
		case Contains(p, ip):
			return nil
		case !first.IsValid():
			first = p
		}
	}
	if !first.IsValid() {
		return errNoRange
	}
	return errNotInRange(ip, first)
}

func (o *pretence) NextPort(context.Context) (int32, error) {
	port := int32(0)
	for chosen := range o.chosen {
		port = max(port, chosen+1)
	}
	if port == 0 {
		port = pretendedPort
	}
	o.chosen[port] = true
	return port, nil
}

func (o *pretence) TakePort(ctx context.Context, port int32) error {
	err := o.withPorts(ctx, func() error {
		if !o.free(port) {
			return errPortTaken
		}
		return nil
	})
	if err == nil {
		o.chosen[port] = true
	}
	return err
}
