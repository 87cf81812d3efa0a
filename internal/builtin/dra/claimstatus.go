package dra

import (
	"context"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// prepareClaim drops status entries of devices that are no longer allocated.
func prepareClaim(_ context.Context, c *resource.Change) {
	if c.Subresource != "status" {
		return
	}
	status := kind.Tree(c.Object, "status")
	now, before := results(c.Object), results(c.Old)
	isOneOf := func(results []any, device any) bool {
		return slices.ContainsFunc(results, func(r any) bool { return nameOfDevice(treeOf(r)) == nameOfDevice(treeOf(device)) })
	}
	devices := slices.DeleteFunc(kind.List(status, "devices"), func(d any) bool { return isOneOf(before, d) && !isOneOf(now, d) })
	if len(devices) == 0 {
		delete(status, "devices")
		return
	}
	status["devices"] = devices
}

func treeOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// results returns the allocated devices of a claim.
func results(claim map[string]any) []any {
	return kind.List(claim, "status", "allocation", "devices", "results")
}

// A deviceName identifies a device, or a share of one.
type deviceName struct{ Driver, Pool, Device, ShareID string }

func nameOfDevice(m map[string]any) deviceName {
	return deviceName{kind.Text(m, "driver"), kind.Text(m, "pool"), kind.Text(m, "device"), kind.Text(m, "shareID")}
}

func validateClaimStatus(c *rule.Check, claim, old *resourcev1.ResourceClaim) {
	c = c.At("status")
	merged(c, resourcev1.Validate_ResourceClaimStatus, &claim.Status, &old.Status, func(own *rule.Check) {
		own = own.At("status")
		names := namesOf(&claim.Spec.Devices)
		validateReserved(own.At("reservedFor"), claim, old)
		validateDevices(own.At("devices"), &claim.Status)
		switch a, at := claim.Status.Allocation, own.At("allocation"); {
		case a == nil:
		case old.Status.Allocation == nil:
			validateAllocation(at, a, names)
		case !rule.Tagged(c.Gates): // otherwise, a tag makes it immutable
			at.Immutable(a, old.Status.Allocation)
		}
	})
}

func validateReserved(c *rule.Check, claim, old *resourcev1.ResourceClaim) {
	consumers := claim.Status.ReservedFor
	if !tooMany(c, len(consumers), resourcev1.ResourceClaimReservedForMaxSize, true) {
		var uids []types.UID
		for i, r := range consumers {
			at := c.At(i)
			if r.Resource == "" {
				at.At("resource").Required("")
			}
			if r.Name == "" {
				at.At("name").Required("")
			}
			if r.UID == "" {
				at.At("uid").Required("")
			}
			uids = append(uids, r.UID)
		}
		unique(c, true, uids...)
	}
	if len(consumers) == 0 {
		return
	}
	isNew := func(r resourcev1.ResourceClaimConsumerReference) bool {
		return !slices.Contains(old.Status.ReservedFor, r)
	}
	switch {
	case claim.Status.Allocation == nil:
		c.Forbidden("may not be specified when `allocated` is not set")
	case claim.DeletionTimestamp != nil && slices.ContainsFunc(consumers, isNew):
		c.Forbidden("new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
	}
}

// validateDevices validates the status of devices, which must be allocated.
func validateDevices(c *rule.Check, status *resourcev1.ResourceClaimStatus) {
	allocated := map[deviceName]bool{}
	if status.Allocation != nil {
		for _, r := range status.Allocation.Devices.Results {
			name := deviceName{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
			if r.ShareID != nil {
				name.ShareID = string(*r.ShareID)
			}
			allocated[name] = true
		}
	}
	var names []deviceName
	for i := range status.Devices {
		d, at := &status.Devices[i], c.At(i)
		name := deviceName{Driver: d.Driver, Pool: d.Pool, Device: d.Device}
		at.Add(driver(d.Driver, at.At("driver").Path())...)
		at.Add(pool(d.Pool, at.At("pool").Path())...)
		at.Add(label(d.Device, at.At("device").Path())...)
		if d.ShareID != nil {
			name.ShareID = *d.ShareID
			at.Add(uid(*d.ShareID, at.At("shareID").Path()).MarkCoveredByDeclarative()...)
		}
		names = append(names, name)
		if !allocated[name] {
			at.Invalid(name, "must be an allocated device in the claim")
		}
		conditions := at.At("conditions")
		if n := len(d.Conditions); n > resourcev1.AllocatedDeviceStatusMaxConditions {
			conditions.TooMany(n, resourcev1.AllocatedDeviceStatusMaxConditions)
		}
		conditions.Conditions(d.Conditions)
		if d.Data != nil && len(d.Data.Raw) > 0 {
			validateRaw(at.At("data"), d.Data.Raw, resourcev1.AllocatedDeviceStatusDataMaxLength)
		}
		validateNetwork(at.At("networkData"), d.NetworkData)
	}
	unique(c, true, names...)
}

func validateNetwork(c *rule.Check, data *resourcev1.NetworkDeviceData) {
	if data == nil {
		return
	}
	short := func(name, text string, max int) {
		if len(text) > max {
			c.Add(field.TooLong(c.At(name).Path(), "", max).WithOrigin("maxBytes").MarkCoveredByDeclarative())
		}
	}
	short("interfaceName", data.InterfaceName, resourcev1.NetworkDeviceDataInterfaceNameMaxLength)
	short("hardwareAddress", data.HardwareAddress, resourcev1.NetworkDeviceDataHardwareAddressMaxLength)
	at := c.At("ips")
	if tooMany(at, len(data.IPs), resourcev1.NetworkDeviceDataMaxIPs, true) {
		return
	}
	for i, address := range data.IPs {
		c.Add(validation.IsValidInterfaceAddress(at.At(i).Path(), address)...)
	}
	unique(at, true, data.IPs...)
}

func validateAllocation(c *rule.Check, a *resourcev1.AllocationResult, names requests) {
	at := c.At("devices", "results")
	if !tooMany(at, len(a.Devices.Results), resourcev1.AllocationResultsMaxSize, true) {
		for i := range a.Devices.Results {
			validateResult(at.At(i), &a.Devices.Results[i], names)
		}
	}
	at = c.At("devices", "config")
	if !tooMany(at, len(a.Devices.Config), 2*resourcev1.DeviceConfigMaxSize, true) {
		for i := range a.Devices.Config {
			config := &a.Devices.Config[i]
			validateSource(at.At(i, "source"), config.Source)
			validateReferences(at.At(i, "requests"), config.Requests, names)
			validateConfiguration(at.At(i), config.DeviceConfiguration, false)
		}
	}
	if a.NodeSelector != nil {
		kind.ValidateNodeSelector(c.At("nodeSelector"), a.NodeSelector, false)
	}
}

// validateSource has its own error for a missing source: at the element, as in Kubernetes.
func validateSource(c *rule.Check, source resourcev1.AllocationConfigSource) {
	known := []resourcev1.AllocationConfigSource{resourcev1.AllocationConfigSourceClaim, resourcev1.AllocationConfigSourceClass}
	switch {
	case source == "":
		c.Add(field.Required(c.Path(), "").MarkCoveredByDeclarative())
	case !slices.Contains(known, source):
		c.Add(field.NotSupported(c.Path(), source, known).MarkCoveredByDeclarative())
	}
}

func validateResult(c *rule.Check, r *resourcev1.DeviceRequestAllocationResult, names requests) {
	validateReference(c.At("request"), r.Request, names)
	c.Add(driver(r.Driver, c.At("driver").Path()).MarkCoveredByDeclarative()...)
	c.Add(pool(r.Pool, c.At("pool").Path()).MarkCoveredByDeclarative()...)
	c.Add(label(r.Device, c.At("device").Path())...)
	validateBinding(c, r.BindingConditions, r.BindingFailureConditions)
	for i := range r.Tolerations {
		validateToleration(c.At("tolerations", i), &r.Tolerations[i])
	}
	if r.ShareID != nil {
		c.Add(uid(string(*r.ShareID), c.At("shareID").Path()).MarkCoveredByDeclarative()...)
	}
	validateSkipped(c.At("skipNodeOperations"), r.SkipNodeOperations)
}

// validateBinding validates binding conditions and binding failure conditions. Both or none must be
// present.
func validateBinding(c *rule.Check, conditions, failures []string) {
	list := func(c *rule.Check, names []string, max int) {
		if !tooMany(c, len(names), max, true) {
			for i, name := range names {
				c.Add(metavalidation.ValidateLabelName(name, c.At(i).Path())...)
			}
		}
	}
	bound, failed := c.At("bindingConditions"), c.At("bindingFailureConditions")
	list(bound, conditions, resourcev1.BindingConditionsMaxSize)
	list(failed, failures, resourcev1.BindingFailureConditionsMaxSize)
	unique(bound, false, conditions...)
	unique(failed, false, failures...)
	for i, name := range failures {
		if slices.Contains(conditions, name) {
			failed.At(i).Invalid(name, "bindingFailureConditions must not overlap with bindingConditions")
		}
	}
	if len(conditions) == 0 && len(failures) > 0 {
		bound.Invalid(conditions, "bindingConditions are required to use bindingFailureConditions")
	}
	if len(failures) == 0 && len(conditions) > 0 {
		failed.Invalid(failures, "bindingFailureConditions are required to use bindingConditions")
	}
}
