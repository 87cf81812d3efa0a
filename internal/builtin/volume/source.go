package volume

import (
	"cmp"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/schema/gotype"
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
	fields := sourceFields(volume)
	for _, name := range sources {
		source := fields[name]
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

// sourceFields returns the sources of a volume by name.
func sourceFields(volume any) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	v := reflect.ValueOf(volume).Elem()
	for member := range gotype.Fields(v.Type()) {
		fields[member.JSONName] = v.FieldByName(member.Name)
	}
	return fields
}
