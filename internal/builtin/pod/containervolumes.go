package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// checkVolumeMounts validates the volume mounts of a container at c. Errors of subpaths,
// propagation and recursive read-only mounts name the list.
func checkVolumeMounts(c *rule.Check, x *corev1.Container, pod *podContext) {
	list, paths := c.At("volumeMounts"), sets.New[string]()
	for i := range x.VolumeMounts {
		m, at := &x.VolumeMounts[i], list.At(i)
		checkVolumeName(at.At("name"), m.Name, pod)
		if m.MountPath == "" {
			at.At("mountPath").Required("")
		}
		if paths.Has(m.MountPath) {
			at.At("mountPath").Invalid(m.MountPath, "must be unique")
		}
		paths.Insert(m.MountPath)
		if slices.ContainsFunc(x.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == m.Name }) {
			at.At("name").Invalid(m.Name, "must not already exist in volumeDevices")
		}
		if slices.ContainsFunc(x.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.DevicePath == m.MountPath }) {
			at.At("mountPath").Invalid(m.MountPath, "must not already exist as a path in volumeDevices")
		}
		checkSubPaths(list, at, m)
		if m.MountPropagation != nil {
			checkPropagation(list.At("mountPropagation"), *m.MountPropagation, x)
		}
		if m.RecursiveReadOnly != nil {
			checkRecursiveReadOnly(list.At("recursiveReadOnly"), m)
		}
		checkBindMountOptions(at.At("bindMountOptions"), m, pod)
	}
}

func checkBindMountOptions(c *rule.Check, m *corev1.VolumeMount, pod *podContext) {
	for i, option := range m.BindMountOptions {
		known(c.At(i), option, string(corev1.BindMountOptionNoDev), string(corev1.BindMountOptionNoExec), string(corev1.BindMountOptionNoSUID))
		if slices.Contains(m.BindMountOptions[:i], option) {
			c.At(i).Duplicate(option)
		}
	}
	if v := pod.volumes[m.Name]; len(m.BindMountOptions) > 0 && v != nil && v.Image != nil {
		c.Invalid(m.BindMountOptions, "bindMountOptions may not be used with image volumes")
	}
}

func checkVolumeName(c *rule.Check, name string, pod *podContext) {
	if name == "" {
		c.Required("")
	}
	if pod.volumes[name] == nil {
		notFound(c, name)
	}
}

func checkSubPaths(list, at *rule.Check, m *corev1.VolumeMount) {
	if m.SubPath != "" {
		checkDescending(list.At("subPath"), m.SubPath)
	}
	if m.SubPathExpr == "" {
		return
	}
	if m.SubPath != "" {
		at.At("subPathExpr").Invalid(m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
	}
	checkDescending(list.At("subPathExpr"), m.SubPathExpr)
}

// checkDescending rejects a path that leaves its directory.
func checkDescending(c *rule.Check, path string) {
	if strings.HasPrefix(path, "/") {
		c.Invalid(path, "must be a relative path")
	}
	c.Invalids(path, rule.PathUp(path))
}

func checkPropagation(c *rule.Check, p corev1.MountPropagationMode, x *corev1.Container) {
	known(c, p, corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := x.SecurityContext != nil && isTrue(x.SecurityContext.Privileged)
	if p == corev1.MountPropagationBidirectional && !privileged {
		c.Forbidden("Bidirectional mount propagation is available only to privileged containers")
	}
}

func checkRecursiveReadOnly(c *rule.Check, m *corev1.VolumeMount) {
	mode := *m.RecursiveReadOnly
	if !known(c, mode, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible) ||
		mode == corev1.RecursiveReadOnlyDisabled {
		return
	}
	if !m.ReadOnly {
		c.Forbidden("may only be specified when readOnly is true")
	}
	if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
		c.Forbidden("may only be specified when mountPropagation is None or not specified")
	}
}

// checkVolumeDevices validates the volume devices of a container at c.
func checkVolumeDevices(c *rule.Check, x *corev1.Container, pod *podContext) {
	if len(x.VolumeDevices) > 0 && !hostUsers(&pod.spec) && !pod.allowed.volumeDevices {
		c.At("volumeDevices").Forbidden("when `hostUsers` is false")
	}
	names, paths := sets.New[string](), sets.New[string]()
	for i := range x.VolumeDevices {
		d, at := &x.VolumeDevices[i], c.At("volumeDevices", i)
		name, device := at.At("name"), at.At("devicePath")
		checkVolumeName(name, d.Name, pod)
		if names.Has(d.Name) {
			name.Invalid(d.Name, "must be unique")
		}
		if v := pod.volumes[d.Name]; v != nil && v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			name.Invalid(d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if d.DevicePath == "" {
			device.Required("")
		}
		if paths.Has(d.DevicePath) {
			device.Invalid(d.DevicePath, "must be unique")
		}
		if len(rule.PathUp(d.DevicePath)) > 0 {
			device.Invalid(d.DevicePath, "can not contain backsteps ('..')")
		} else {
			paths.Insert(d.DevicePath)
		}
		if slices.ContainsFunc(x.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == d.Name }) {
			name.Invalid(d.Name, "must not already exist in volumeMounts")
		}
		if slices.ContainsFunc(x.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == d.DevicePath }) {
			device.Invalid(d.DevicePath, "must not already exist as a path in volumeMounts")
		}
		if d.Name != "" {
			names.Insert(d.Name)
		}
	}
}
