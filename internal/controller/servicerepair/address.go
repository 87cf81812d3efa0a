package servicerepair

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/core"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// addressGrace is the least age of an unused IPAddress before its deletion. A kube-apiserver over
// the same store creates it before the Service.
const addressGrace = time.Minute

// checkService sets missing fields of a Service, and repairs the IPAddresses of its cluster IPs.
func (c *Controller) checkService(ctx context.Context, key string) error {
	var s corev1.Service
	about, err := c.read(ctx, key, &s)
	if err != nil || about == nil || about.Deleting {
		return err
	}
	if core.Lacks(&s) {
		// The write itself sets them.
		return c.objects.Change(ctx, c.objects.Lookup("", "services"), key, about.UID, "", func(object.Tree) bool { return true })
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	for _, text := range s.Spec.ClusterIPs {
		if err := c.checkAddressOf(ctx, &s, about, text); err != nil {
			return err
		}
	}
	return nil
}

// checkAddressOf repairs the IPAddress of a cluster IP of a Service.
func (c *Controller) checkAddressOf(ctx context.Context, s *corev1.Service, about *controller.Header, text string) error {
	const action = "ClusterIPAllocation"
	ip, err := allocation.ParseAddress(text)
	if err != nil {
		c.warnService(ctx, about, "ClusterIPNotValid", "ClusterIPValidation", fmt.Sprintf("Cluster IP %s is not a valid IP; please recreate Service", text))
		return nil
	}
	name := fmt.Sprintf("[%v]: %s", allocation.FamilyOf(ip), ip)
	ranges, err := c.addresses.Ranges(ctx, false)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return allocation.Contains(p, ip) }) {
		c.warnService(ctx, about, "ClusterIPOutOfRange", action, fmt.Sprintf("Cluster IP %s is not within any configured Service CIDR; please recreate service", name))
		return nil
	}
	d := c.objects.Lookup(networkingv1.GroupName, "ipaddresses")
	var a networkingv1.IPAddress
	key := d.Key("", ip.String())
	found, err := c.read(ctx, key, &a)
	if err != nil {
		return err
	}
	if found == nil {
		made, err := c.objects.CreateFor(ctx, about, d, "", c.addresses.NewAddress(ip.String(), s.Namespace, s.Name))
		if made {
			c.warnService(ctx, about, "ClusterIPNotAllocated", action, fmt.Sprintf("Cluster IP %s is not allocated; repairing", name))
		}
		return err
	}
	if isOfService(&a) && a.Spec.ParentRef.Namespace == s.Namespace && a.Spec.ParentRef.Name == s.Name {
		if labelled(&a, ip) {
			return nil
		}
	} else {
		other, err := c.holds(ctx, &a)
		if err != nil {
			return err
		}
		if other {
			c.warnService(ctx, about, "ClusterIPAlreadyAllocated", action, fmt.Sprintf("Cluster IP %s was assigned to multiple services; please recreate service", name))
			return nil
		}
		c.warnService(ctx, about, "ClusterIPNotAllocated", action, fmt.Sprintf("the ClusterIP %s for Service %s/%s has a wrong reference; repairing", name, s.Namespace, s.Name))
	}
	if err := c.objects.Delete(ctx, d, key, asRead(found)); err != nil {
		return err
	}
	_, err = c.objects.CreateFor(ctx, about, d, "", c.addresses.NewAddress(ip.String(), s.Namespace, s.Name))
	return err
}

// asRead returns options that delete only the object with the UID that was read.
func asRead(h *controller.Header) *metav1.DeleteOptions {
	uid := types.UID(h.UID)
	return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// labelled reports whether an IPAddress has the labels of an IPAddress of a Service.
func labelled(a *networkingv1.IPAddress, ip netip.Addr) bool {
	return a.Labels[networkingv1.LabelIPAddressFamily] == string(allocation.FamilyOf(ip)) && isManaged(a)
}

func isManaged(a *networkingv1.IPAddress) bool {
	return a.Labels[networkingv1.LabelManagedBy] == allocation.ManagedBy
}

// holds reports whether the parent of an IPAddress is a Service that has the address.
func (c *Controller) holds(ctx context.Context, a *networkingv1.IPAddress) (bool, error) {
	if !isOfService(a) {
		return false, nil
	}
	var s corev1.Service
	ref := a.Spec.ParentRef
	found, err := c.read(ctx, c.services+ref.Namespace+"/"+ref.Name, &s)
	return found != nil && slices.Contains(allocation.Holds(&s).Addresses, a.Name), err
}

// checkAddress deletes an IPAddress whose Service no longer has the address.
func (c *Controller) checkAddress(ctx context.Context, t controller.Task) error {
	d := c.objects.Lookup(networkingv1.GroupName, "ipaddresses")
	key := d.Key("", t.Key)
	var a networkingv1.IPAddress
	about, err := c.read(ctx, key, &a)
	if err != nil || about == nil || !isManaged(&a) || about.Deleting {
		return err
	}
	reason, note := "IPAddressNotAllocated", ""
	if isOfService(&a) {
		ref := a.Spec.ParentRef
		of := fmt.Sprintf("IPAddress: %s for Service %s/%s", a.Name, ref.Namespace, ref.Name)
		held, err := c.holds(ctx, &a)
		if held || err != nil {
			return err
		}
		if age := c.objects.Now().Sub(a.CreationTimestamp.Time); age < addressGrace {
			c.queue.After(t, addressGrace-age)
			return nil
		}
		service, err := c.objects.Read(ctx, c.services+ref.Namespace+"/"+ref.Name)
		switch {
		case err != nil:
			return err
		case service == nil:
			note = of + " appears to have leaked: cleaning up"
		default:
			reason, note = "IPAddressWrongReference", of+" has a wrong reference; cleaning up"
		}
	} else {
		note = fmt.Sprintf("IPAddress %s appears to have been modified, not referencing a Service %v: cleaning up", a.Name, a.Spec.ParentRef)
	}
	c.objects.Warn(ctx, d, about, controller.Warning{Reporter: addressReporter, Reason: reason, Action: "IPAddressAllocation", Note: note})
	return c.objects.Delete(ctx, d, key, asRead(about))
}

func (c *Controller) warnService(ctx context.Context, about *controller.Header, reason, action, note string) {
	c.objects.Warn(ctx, c.objects.Lookup("", "services"), about, controller.Warning{Reporter: addressReporter, Reason: reason, Action: action, Note: note})
}
