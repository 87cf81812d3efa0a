package storage

import (
	"math"
	"unicode/utf8"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
	"github.com/anykind/anykind/internal/object/resource"
)

func attachments() *resource.Definition {
	return kind.Kind[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]{
		Definition:  resource.Definition{Group: storagev1.GroupName, Plural: "volumeattachments", ReturnsDeleted: true},
		StatusKeeps: "spec metadata",
		Rules:       rule.Lazy(volume.Rules),
		Validate:    validateAttachment,
		Columns: `
			Name      string name  .metadata.name
			Attacher  string name  .spec.attacher
			PV        string       .spec.source.persistentVolumeName
			Node      string       .spec.nodeName
			Attached  boolean      .status.attached
			Age
		`,
	}.New()
}

func validateAttachment(c *rule.Check, a, old *storagev1.VolumeAttachment) {
	spec := c.At("spec")
	if old == nil && rule.Tagged(c.Gates) {
		validateAttacher(spec.At("attacher"), a.Spec.Attacher)
	} else {
		kind.ValidateDriverName(spec.At("attacher"), a.Spec.Attacher)
	}
	validateAttached(spec.At("source"), &a.Spec.Source)
	spec.At("nodeName").Invalids(a.Spec.NodeName, validation.IsDNS1123Subdomain(a.Spec.NodeName))
	validateAttachmentStatus(c.At("status"), &a.Status)
	if old != nil {
		spec.UnchangedBeta(a.Spec, old.Spec)
	}
}

// validateAttacher validates the driver name of a new attachment by the tags of the type. The messages differ from those
// for other driver names.
func validateAttacher(c *rule.Check, name string) {
	const most = 63
	if name == "" {
		c.Required("")
		return
	}
	if utf8.RuneCountInString(name) > most {
		c.Add(field.TooLongCharacters(c.Path(), name, most))
	}
	//lint:ignore SA1019 old names may be so
	c.Invalids(name, content.IsDNS1123SubdomainCaseless(name))
}

// validateAttached validates the source of an attachment: an existing volume, or an inline one.
func validateAttached(c *rule.Check, s *storagev1.VolumeAttachmentSource) {
	name := s.PersistentVolumeName
	switch {
	case s.InlineVolumeSpec == nil && name == nil:
		c.Required("must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case s.InlineVolumeSpec != nil && name != nil:
		c.Forbidden("must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case s.InlineVolumeSpec != nil:
		volume.ValidateInline(c.At("inlineVolumeSpec"), s.InlineVolumeSpec)
	case *name == "":
		c.At("persistentVolumeName").Required("must specify non empty persistentVolumeName")
	}
	if name != nil {
		c.At("persistentVolumeName").Invalids(*name, validation.IsDNS1123Subdomain(*name))
	}
}

func validateAttachmentStatus(c *rule.Check, s *storagev1.VolumeAttachmentStatus) {
	const most = 256 << 10
	size := 0
	for key, value := range s.AttachmentMetadata {
		size += len(key) + len(value)
	}
	if size > most {
		c.At("attachmentMetadata").TooLong(most)
	}
	validateError(c.At("attachError"), s.AttachError)
	validateError(c.At("detachError"), s.DetachError)
}

func validateError(c *rule.Check, e *storagev1.VolumeError) {
	if e == nil {
		return
	}
	if len(e.Message) > 1024 {
		c.At("message").TooLong(1024)
	}
	if e.ErrorCode != nil && *e.ErrorCode < 0 {
		c.At("errorCode").Invalid(*e.ErrorCode, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}
