package volume

import (
	"net"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// diskRules are the rules of disks and file systems.
var diskRules = rule.All(
	rule.On(func(c *rule.Check, s *corev1.HostPathVolumeSource) {
		if requirePath(c.At("path"), s.Path) && s.Type != nil {
			validateHostPathType(c.At("type"), *s.Type)
		}
	}),
	rule.On(func(c *rule.Check, s *corev1.LocalVolumeSource) { requirePath(c.At("path"), s.Path) }),
	rule.On(func(c *rule.Check, s *corev1.GCEPersistentDiskVolumeSource) { validatePartition(c, s.Partition) }),
	rule.On(func(c *rule.Check, s *corev1.AWSElasticBlockStoreVolumeSource) { validatePartition(c, s.Partition) }),
	rule.On(validateGitRepo),
	rule.On(validateNFS),
	rule.On(func(c *rule.Check, s *corev1.ISCSIVolumeSource) {
		const unknown = "must be valid format starting with iqn, eui, or naa"
		validateISCSI(c, s.IQN, s.InitiatorName, unknown)
		if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
			c.At("secretRef").Required("")
		}
	}),
	rule.On(func(c *rule.Check, s *corev1.ISCSIPersistentVolumeSource) {
		validateISCSI(c, s.IQN, s.InitiatorName, "must be valid format")
		if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
			c.At("secretRef").Required("")
		}
		if s.SecretRef != nil {
			need(c.At("secretRef", "name"), s.SecretRef.Name)
		}
	}),
	rule.On(validateFC),
	rule.On(func(c *rule.Check, s *corev1.GlusterfsPersistentVolumeSource) {
		switch at := c.At("endpointsNamespace"); {
		case s.EndpointsNamespace == nil:
		case *s.EndpointsNamespace == "":
			at.Invalid("", "if the endpointnamespace is set, it must be a valid namespace name")
		default:
			at.Invalids(*s.EndpointsNamespace, apivalidation.ValidateNamespaceName(*s.EndpointsNamespace, false))
		}
	}),
	rule.On(validateFlocker),
	rule.On(validateQuobyte),
	rule.On(func(c *rule.Check, s *corev1.CinderVolumeSource) { needName(c, s.SecretRef) }),
	rule.On(func(c *rule.Check, s *corev1.CinderPersistentVolumeSource) {
		if s.SecretRef != nil {
			need(c.At("secretRef", "name"), s.SecretRef.Name)
			need(c.At("secretRef", "namespace"), s.SecretRef.Namespace)
		}
	}),
	rule.On(func(c *rule.Check, s *corev1.StorageOSVolumeSource) { needName(c, s.SecretRef) }),
	rule.On(func(c *rule.Check, s *corev1.StorageOSPersistentVolumeSource) {
		if s.SecretRef != nil {
			need(c.At("secretRef", "name"), s.SecretRef.Name)
			need(c.At("secretRef", "namespace"), s.SecretRef.Namespace)
		}
	}),
	rule.On(func(c *rule.Check, s *corev1.FlexVolumeSource) { validateFlexOptions(c, s.Options) }),
	rule.On(func(c *rule.Check, s *corev1.FlexPersistentVolumeSource) { validateFlexOptions(c, s.Options) }),
	rule.On(func(c *rule.Check, s *corev1.AzureFilePersistentVolumeSource) {
		if s.SecretNamespace != nil {
			need(c.At("secretNamespace"), *s.SecretNamespace)
		}
	}),
	rule.On(validateAzureDisk),
	rule.On(validateCSI),
	rule.On(validateCSIPersistent),
)

// need adds an error for an empty text.
func need(c *rule.Check, s string) {
	if s == "" {
		c.Required("")
	}
}

func needName(c *rule.Check, secret *corev1.LocalObjectReference) {
	if secret != nil {
		need(c.At("secretRef", "name"), secret.Name)
	}
}

// requirePath validates the path of a directory, and reports whether it is set.
func requirePath(c *rule.Check, path string) bool {
	need(c, path)
	c.Invalids(path, rule.PathUp(path))
	return path != ""
}

var hostPathTypes = []corev1.HostPathType{
	corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
	corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
}

func validateHostPathType(c *rule.Check, t corev1.HostPathType) {
	for _, known := range hostPathTypes {
		if t == known {
			return
		}
	}
	rule.NotSupported(c, t, hostPathTypes...)
}

func validatePartition(c *rule.Check, n int32) {
	if n < 0 || n > 255 {
		c.At("partition").Invalid(n, validation.InclusiveRangeError(1, 255))
	}
}

func validateGitRepo(c *rule.Check, s *corev1.GitRepoVolumeSource) {
	c = c.At("directory")
	if strings.HasPrefix(s.Directory, "/") {
		c.Invalid(s.Directory, "must be a relative path")
	}
	c.Invalids(s.Directory, rule.PathUp(s.Directory))
}

func validateNFS(c *rule.Check, s *corev1.NFSVolumeSource) {
	need(c.At("server"), s.Server)
	need(c.At("path"), s.Path)
	if !strings.HasPrefix(s.Path, "/") {
		c.At("path").Invalid(s.Path, "must be an absolute path")
	}
}

// The formats of iSCSI names, by prefix.
var iscsiNames = map[string]func() *regexp.Regexp{
	"iqn": rule.Pattern(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": rule.Pattern(`^eui.[[:alnum:]]{16}$`),
	"naa": rule.Pattern(`^naa.[[:alnum:]]{32}$`),
}

func validateISCSI(c *rule.Check, iqn string, initiator *string, unknown string) {
	if iqn == "" {
		c.At("iqn").Required("")
	} else {
		validateISCSIName(c.At("iqn"), iqn, unknown)
	}
	if initiator != nil {
		validateISCSIName(c.At("initiatorname"), *initiator, unknown)
	}
}

func validateISCSIName(c *rule.Check, name, unknown string) {
	form := iscsiNames[name[:min(3, len(name))]]
	if form == nil {
		c.Invalid(name, unknown)
	} else if !form().MatchString(name) {
		c.Invalid(name, "must be valid format")
	}
}

// validateISCSITotal limits the length of the directory name that nodes derive from a volume and
// its target.
func validateISCSITotal(c *rule.Check, told any, name, portal string, initiator *string) {
	if initiator != nil && len(name)+len(":")+len(portal) > 64 {
		c.Invalid(told, "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.")
	}
}

func validateFC(c *rule.Check, s *corev1.FCVolumeSource) {
	switch at := c.At("targetWWNs"); {
	case len(s.TargetWWNs) == 0 && len(s.WWIDs) == 0:
		at.Required("must specify either targetWWNs or wwids, but not both")
	case len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0:
		at.Invalid(s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")
	}
	if len(s.TargetWWNs) == 0 {
		return
	}
	if s.Lun == nil {
		c.At("lun").Required("lun is required if targetWWNs is specified")
	} else if *s.Lun < 0 || *s.Lun > 255 {
		c.At("lun").Invalid(*s.Lun, validation.InclusiveRangeError(0, 255))
	}
}

func validateFlocker(c *rule.Check, s *corev1.FlockerVolumeSource) {
	switch {
	case s.DatasetName == "" && s.DatasetUUID == "":
		c.Required("one of datasetName and datasetUUID is required")
	case s.DatasetName != "" && s.DatasetUUID != "":
		c.Invalid("resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(s.DatasetName, "/") {
		c.At("datasetName").Invalid(s.DatasetName, "must not contain '/'")
	}
}

func validateQuobyte(c *rule.Check, s *corev1.QuobyteVolumeSource) {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	switch {
	case s.Registry == "":
		c.At("registry").Required(pairs)
	case len(s.Tenant) >= 65:
		c.At("tenant").Required("must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(s.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				c.At("registry").Invalid(s.Registry, pairs)
			}
		}
	}
}

func validateFlexOptions(c *rule.Check, options map[string]string) {
	for _, key := range kind.SortedKeys(options) {
		namespace, _, _ := strings.Cut(key, "/")
		namespace = "." + strings.ToLower(namespace)
		if strings.HasSuffix(namespace, ".kubernetes.io") || strings.HasSuffix(namespace, ".k8s.io") {
			c.At("options").AtKey(key).Invalid(key, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

func validateAzureDisk(c *rule.Check, s *corev1.AzureDiskVolumeSource) {
	if s.Kind == nil {
		return
	}
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *s.Kind == corev1.AzureManagedDisk {
		prefix, form = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if at := c.At("diskURI"); !strings.HasPrefix(s.DataDiskURI, prefix) {
		at.Add(field.NotSupported(at.Path(), s.DataDiskURI, []string{form}))
	}
}

func validateCSI(c *rule.Check, s *corev1.CSIVolumeSource) {
	kind.ValidateDriverName(c.At("driver"), s.Driver)
	if s.NodePublishSecretRef == nil {
		return
	}
	name := s.NodePublishSecretRef.Name
	if name == "" {
		c.At("nodePublishSecretRef", "name").Required("")
		return
	}
	c.At("name").Invalids(name, validation.IsDNS1123Subdomain(name))
}

func validateCSIPersistent(c *rule.Check, s *corev1.CSIPersistentVolumeSource) {
	kind.ValidateDriverName(c.At("driver"), s.Driver)
	validateSecret(c.At("controllerPublishSecretRef"), s.ControllerPublishSecretRef)
	validateSecret(c.At("controllerExpandSecretRef"), s.ControllerExpandSecretRef)
	validateSecret(c.At("nodePublishSecretRef"), s.NodePublishSecretRef)
	validateSecret(c.At("nodeExpandSecretRef"), s.NodeExpandSecretRef)
}

func validateSecret(c *rule.Check, s *corev1.SecretReference) {
	if s == nil {
		return
	}
	need(c.At("name"), s.Name)
	if s.Name != "" {
		c.At("name").Invalids(s.Name, validation.IsDNS1123Subdomain(s.Name))
	}
	need(c.At("namespace"), s.Namespace)
	if s.Namespace != "" {
		c.At("namespace").Invalids(s.Namespace, validation.IsDNS1123Label(s.Namespace))
	}
}
