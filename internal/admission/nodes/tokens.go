package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// serviceAccount checks a TokenRequest of a node: the token is bound to a pod on the node, and the
// pod uses its audience.
func (q *question) serviceAccount(ctx context.Context) error {
	if q.Operation != registry.Create || q.Target.Subresource != "token" {
		return nil
	}
	asked := kind.ValueOf[authenticationv1.TokenRequest](q.Object)
	ref := asked.Spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return q.refuse("node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return q.refuse("node requested token with a pod binding without a uid")
	}
	pod, err := q.podOf(ctx, ref.Name)
	switch {
	case err != nil:
		return err
	case ref.UID != pod.UID:
		return q.refuse("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	case pod.Spec.NodeName != q.node:
		return q.refuse("node requested token bound to a pod scheduled on a different node")
	}
	if q.Gates.On(gate.ServiceAccountNodeAudienceRestriction) {
		if err := q.audience(ctx, asked.Spec.Audiences, pod); err != nil {
			return q.Forbidden(err)
		}
	}
	return nil
}

// audience checks that a pod has a volume with a token for the audience, or that RBAC allows the
// node to request tokens for it.
func (q *question) audience(ctx context.Context, audiences []string, pod *corev1.Pod) error {
	if len(audiences) > 1 {
		return errors.New("node may only request 0 or 1 audiences")
	}
	audience := strings.Join(audiences, "")
	wanted, err := q.wants(ctx, pod, audience)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %w", audience, err)
	}
	if wanted {
		return nil
	}
	allowed, err := q.may(ctx, "request-serviceaccounts-token-audience", audience, q.Target.Name)
	switch {
	case allowed:
		return nil
	case err != nil:
		return fmt.Errorf("error authorizing %s to request tokens for audience %q: %w", q.User.Name, audience, err)
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", q.User.Name, audience)
}

// may asks the authorizer for a permission of the node. The verb applies to the resource.
func (q *question) may(ctx context.Context, verb, resource, name string) (bool, error) {
	decision, _, err := q.by.Authorizer.Authorize(ctx, &authz.Attributes{User: q.User, Info: request.Info{
		IsResource: true, Verb: verb, Group: q.Target.Definition.Group, Version: q.Target.Version.Name,
		Resource: resource, Namespace: q.Target.Namespace, Name: name,
	}})
	return decision == authz.Allow, err
}

// wants reports whether a volume of a pod has a token for an audience, directly or through its CSI
// driver.
func (q *question) wants(ctx context.Context, pod *corev1.Pod, audience string) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience
		}) {
			return true, nil
		}
		driver, err := q.driverOf(ctx, pod, v)
		if err == nil && driver != "" {
			var asks bool
			if asks, err = q.asksFor(ctx, driver, audience); asks {
				return true, nil
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return false, utilerrors.NewAggregate(errs)
}

// driverOf returns the CSI driver of a volume, or "".
func (q *question) driverOf(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	switch s := &v.VolumeSource; {
	case s.Ephemeral != nil && s.Ephemeral.VolumeClaimTemplate != nil:
		return q.driverOfClaim(ctx, pod.Namespace, pod.Name+"-"+v.Name)
	case s.PersistentVolumeClaim != nil:
		return q.driverOfClaim(ctx, pod.Namespace, s.PersistentVolumeClaim.ClaimName)
	case s.CSI != nil:
		return s.CSI.Driver, nil
	default:
		return inTreeDriver(s.GCEPersistentDisk != nil, s.AWSElasticBlockStore != nil, s.Cinder != nil, s.AzureDisk != nil,
			s.AzureFile != nil, s.VsphereVolume != nil, s.PortworxVolume != nil), nil
	}
}

func (q *question) driverOfClaim(ctx context.Context, namespace, name string) (string, error) {
	claim, err := q.by.Claims.Read(ctx, namespace, name)
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		return "", status.NotFound(corev1.Resource("persistentvolumeclaim"), name) // as client-go's listers do
	}
	volume, err := q.by.Volumes.Read(ctx, "", claim.Spec.VolumeName)
	switch {
	case err != nil:
		return "", err
	case volume == nil:
		return "", status.NotFound(corev1.Resource("persistentvolume"), claim.Spec.VolumeName)
	}
	s := &volume.Spec.PersistentVolumeSource
	if s.CSI != nil {
		return s.CSI.Driver, nil
	}
	return inTreeDriver(s.GCEPersistentDisk != nil, s.AWSElasticBlockStore != nil, s.Cinder != nil, s.AzureDisk != nil,
		s.AzureFile != nil, s.VsphereVolume != nil, s.PortworxVolume != nil), nil
}

// inTreeDriver returns the CSI driver that replaces an in-tree volume plugin.
func inTreeDriver(gce, aws, cinder, azureDisk, azureFile, vsphere, portworx bool) string {
	switch {
	case gce:
		return "pd.csi.storage.gke.io"
	case aws:
		return "ebs.csi.aws.com"
	case cinder:
		return "cinder.csi.openstack.org"
	case azureDisk:
		return "disk.csi.azure.com"
	case azureFile:
		return "file.csi.azure.com"
	case vsphere:
		return "csi.vsphere.vmware.com"
	case portworx:
		return "pxd.portworx.com"
	}
	return ""
}

// asksFor reports whether a CSI driver requests tokens for an audience.
func (q *question) asksFor(ctx context.Context, name, audience string) (bool, error) {
	driver, err := q.by.Drivers.Get(ctx, "", name)
	switch {
	case err != nil:
		return false, err
	case driver == nil:
		return false, status.NotFound(storagev1.Resource("csidriver"), name)
	}
	return slices.ContainsFunc(driver.Spec.TokenRequests, func(t storagev1.TokenRequest) bool { return t.Audience == audience }), nil
}

// podCertificate checks a PodCertificateRequest: the pod is on the node and has a volume for such a
// certificate.
func (q *question) podCertificate(ctx context.Context) error {
	if !q.Gates.On(gate.PodCertificateRequest) {
		return q.refuse("PodCertificateRequest feature gate is disabled")
	}
	if q.Operation != registry.Create {
		return q.refuse("unexpected operation %v", q.Operation)
	}
	if q.Target.Subresource != "" {
		return q.refuse("unexpected subresource %v", q.Target.Subresource)
	}
	asked := kind.ValueOf[certificatesv1.PodCertificateRequest](q.Object).Spec
	if string(asked.NodeName) != q.node {
		return q.refuse("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", asked.NodeName, q.node)
	}
	node, err := q.by.Nodes.Get(ctx, "", q.node)
	switch {
	case err != nil:
		return q.refuse("while retrieving node %q named in the PodCertificateRequest: %w", asked.NodeName, err)
	case node == nil:
		return unknown("while retrieving node %q named in the PodCertificateRequest: %v", asked.NodeName, status.NotFound(nodeResource, q.node))
	}
	named := q.Target.Namespace + "/" + asked.PodName
	if node.UID != asked.NodeUID {
		return unknown("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", named, asked.NodeUID, node.UID)
	}
	pod, err := q.podOf(ctx, asked.PodName)
	switch {
	case status.Is(err, "NotFound"):
		return unknown("while retrieving pod %q named in the PodCertificateRequest: %v", named, err)
	case err != nil:
		return q.refuse("while retrieving pod %q named in the PodCertificateRequest: %w", named, err)
	}
	return q.certificateOf(ctx, pod, &asked)
}

// certificateOf checks that the request names the pod correctly, and that the pod has a volume for
// the certificate.
func (q *question) certificateOf(ctx context.Context, pod *corev1.Pod, request *certificatesv1.PodCertificateRequestSpec) error {
	named := q.Target.Namespace + "/" + request.PodName
	_, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case request.PodUID != pod.UID:
		return unknown("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", named, request.PodUID, string(pod.UID))
	case types.NodeName(pod.Spec.NodeName) != request.NodeName:
		return q.refuse("pod %q is not running on node %q named in the PodCertificateRequest", named, request.NodeName)
	case mirrors:
		return q.refuse("pod %q is a mirror pod", named)
	case request.ServiceAccountName != pod.Spec.ServiceAccountName:
		return q.refuse("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", named, request.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	account, err := q.by.ServiceAccounts.Read(ctx, q.Target.Namespace, request.ServiceAccountName)
	of := q.Target.Namespace + "/" + request.ServiceAccountName
	switch {
	case err != nil:
		return q.refuse("while retrieving service account %q named in the PodCertificateRequest: %w", of, err)
	case account == nil:
		return unknown("while retrieving service account %q named in the PodCertificateRequest: %v", of, status.NotFound(corev1.Resource("serviceaccount"), request.ServiceAccountName))
	case request.ServiceAccountUID != account.UID:
		return unknown("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", named, request.ServiceAccountUID, account.UID)
	case mounts(pod, request.SignerName):
		return nil
	}
	// role names cannot contain a slash
	allowed, err := q.may(ctx, "request-serviceaccounts-podcertificate-signer", strings.ReplaceAll(request.SignerName, "/", ":"), request.ServiceAccountName)
	switch {
	case allowed:
		return nil
	case err != nil:
		return q.refuse("error authorizing %s to request podcertificaterequests for signer %q: %w", q.User.Name, request.SignerName, err)
	}
	return q.refuse("pod %q does not mount a podCertificate projected volume for signer %q", named, request.SignerName)
}

// mounts reports whether a pod has a volume with a certificate of a signer.
func mounts(pod *corev1.Pod, signer string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.PodCertificate != nil && s.PodCertificate.SignerName == signer
		})
	})
}

// unknown reports that the caches of the node and the server differ. As in Kubernetes it is a 500,
// so kubelets retry.
func unknown(format string, args ...any) error { return fmt.Errorf(format, args...) }
