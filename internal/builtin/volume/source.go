package volume

import (
	"cmp"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// The sources of a volume. If it has several, the first in this order counts.
var (
	sourcesOfPods = strings.Fields(`
		emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi
		glusterfs flocker persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc
		flexVolume configMap azureFile vsphereVolume photonPersistentDisk portworxVolume
		azureDisk storageos projected scaleIO csi ephemeral image`)
	sourcesOfPersistent = strings.Fields(`
		hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs
		iscsi cinder fc flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume
		azureDisk scaleIO local storageos csi`)
)

// Some sources have other names in errors: for errors inside, and for one source too many.
var (
	insideName = map[string]string{"gcePersistentDisk": "persistentDisk"}
	extraName  = map[string]string{"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
)

// validateSource validates the source of a volume at c, and that there is only one. It returns the
// name of the first.
func validateSource(c *rule.Check, volume any, sources []string) (first string) {
	fields := reflect.ValueOf(volume).Elem()
	for _, name := range sources {
		source := sourceField(fields, name)
		if source.IsNil() {
			continue
		}
		_, always := source.Interface().(*corev1.FlexPersistentVolumeSource)
		if first == "" || always {
			c.Walk(source.Interface(), cmp.Or(insideName[name], name))
		} else {
			c.At(cmp.Or(extraName[name], name)).Forbidden("may not specify more than 1 volume type")
		}
		first = cmp.Or(first, name)
	}
	if first == "" {
		c.Required("must specify a volume type")
	}
	return first
}

// sourceField returns the source of that name of a volume.
func sourceField(volume reflect.Value, name string) reflect.Value {
	if volume.Type() == reflect.TypeFor[corev1.VolumeSource]() {
		return volume.Field(indexesOfPods()[name])
	}
	return volume.Field(indexesOfPersistent()[name])
}

// The indexes of the sources in their Go types.
var (
	indexesOfPods       = sync.OnceValue(func() map[string]int { return indexesOf(reflect.TypeFor[corev1.VolumeSource]()) })
	indexesOfPersistent = sync.OnceValue(func() map[string]int { return indexesOf(reflect.TypeFor[corev1.PersistentVolumeSource]()) })
)

func indexesOf(t reflect.Type) map[string]int {
	indexes := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		indexes[name] = i
	}
	return indexes
}
