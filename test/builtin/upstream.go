package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// An Object is a decoded JSON object.
type Object = map[string]any

// namespaceName is the namespace of namespaced objects.
const namespaceName = "place"

// An Outcome is the result of a write, on either side.
type Outcome struct {
	Code     int
	Message  string // of an error without Problems
	Problems []Problem
	Warnings []string
	Object   Object // as it would be stored
}

// A Problem is one validation error.
type Problem struct{ Type, Field, Message string }

// A Case is one write. Old is nil for a create.
type Case struct {
	Kind        *Kind
	Subresource string
	Old, New    Object
}

func (k *Kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// body returns the kind of the request body.
func (c Case) body() *Kind {
	if c.Subresource == "scale" {
		return scales
	}
	return c.Kind
}

// ID names a kind in flags and files: its plural, with version and group if another kind has the same
// plural.
func (k *Kind) ID() string {
	switch {
	case k.dual:
		return k.Plural + ".dual"
	case k.Group == "events.k8s.io", k.of != nil, k.Kind == "HorizontalPodAutoscaler" && k.Version == "v1":
		return k.Plural + "." + k.Version + "." + k.Group
	}
	return k.Plural
}

// Upstream returns the outcome of kube-apiserver.
func Upstream(c Case) (out Outcome) {
	w := httptest.NewRecorder()
	var err error
	var obj runtime.Object
	filters.WithWarningRecorder(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		if o := c.Kind.external().(runtime.Object); deprecation.IsDeprecated(o, 1, 37) {
			o.GetObjectKind().SetGroupVersionKind(c.Kind.gvk())
			warning.AddWarning(r.Context(), "", deprecation.WarningMessage(o))
		}
		obj, err = c.Kind.upstream(c.Kind.context(r.Context(), c), c)
	})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	out.Warnings = w.Header().Values("Warning")
	if err != nil {
		out.fail(err)
		return out
	}
	if out.Object, err = c.body().stored(obj); err != nil {
		out.fail(err)
		return out
	}
	out.Code = http.StatusOK
	if c.Old == nil {
		out.Code = http.StatusCreated
	}
	return out
}

// stored returns an object as a client sees it after a round trip through the store. Most are stored
// as protobuf, which has no empty lists.
func (k *Kind) stored(obj runtime.Object) (out Object, err error) {
	gv := k.gvk().GroupVersion()
	if k.codecs == &legacyscheme.Codecs {
		binary := k.serializer(runtime.ContentTypeProtobuf)
		data, err := runtime.Encode(k.codecs.EncoderForVersion(binary, k.storageVersion()), obj)
		if err != nil {
			return nil, err
		}
		if obj, err = runtime.Decode(k.codecs.DecoderToVersion(binary, k.hub()), data); err != nil {
			return nil, err
		}
	}
	data, err := runtime.Encode(k.codecs.EncoderForVersion(k.serializer(runtime.ContentTypeJSON), gv), obj)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(data, &out)
}

// storageVersion is the version in the store, or one with the same fields and defaults.
func (k *Kind) storageVersion() schema.GroupVersion {
	switch {
	case k.of != nil:
		return k.of.gvk().GroupVersion()
	case k.Kind == "HorizontalPodAutoscaler":
		return schema.GroupVersion{Group: k.Group, Version: "v2"}
	}
	return k.gvk().GroupVersion()
}

func (o *Outcome) fail(err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		o.Code, o.Message = http.StatusInternalServerError, err.Error()
		return
	}
	s := known.Status()
	o.refuse(&s)
}

// refuse sets the outcome from a Status.
func (o *Outcome) refuse(s *metav1.Status) {
	o.Code, o.Message = int(s.Code), s.Message
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return
	}
	o.Message = ""
	for _, c := range s.Details.Causes {
		o.Problems = append(o.Problems, Problem{string(c.Type), c.Field, random.ReplaceAllString(c.Message, "uid")})
	}
}

// context returns the context of a request by an administrator.
func (k *Kind) context(ctx context.Context, c Case) context.Context {
	info := &apirequest.RequestInfo{
		IsResourceRequest: true, APIGroup: k.Group, APIVersion: k.Version, Resource: k.Plural,
		Subresource: c.Subresource, Verb: "create", APIPrefix: "apis",
	}
	if c.Old != nil {
		info.Verb, info.Name = "update", nameOf(c.Old)
	}
	namespace := ""
	if k.Strategy.NamespaceScoped() {
		namespace = namespaceName
	}
	info.Namespace = namespace
	ctx = apirequest.WithRequestInfo(apirequest.WithNamespace(ctx, namespace), info)
	return apirequest.WithUser(ctx, &user.DefaultInfo{Name: adminName, Groups: adminGroups})
}

func (k *Kind) upstream(ctx context.Context, c Case) (runtime.Object, error) {
	obj, err := c.body().decode(c.New)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if c.Old == nil {
		rest.WipeObjectMetaSystemFields(m)
		if s := k.storages[c.Subresource]; s != nil {
			return s.do(ctx, k, nil, obj, "")
		}
		rest.FillObjectMetaSystemFields(m)
		return obj, rest.BeforeCreate(k.Strategy, ctx, obj)
	}
	old, err := k.decode(c.Old)
	if err != nil {
		return nil, fmt.Errorf("the old object: %w", err)
	}
	if s := k.storages[c.Subresource]; s != nil {
		return s.do(ctx, k, old, obj, nameOf(c.Old))
	}
	var strategy rest.RESTUpdateStrategy = k.Strategy
	if c.Subresource != "" {
		strategy = k.Subresources[c.Subresource]
	}
	return obj, rest.BeforeUpdate(strategy, ctx, obj, old)
}

// hub is the internal version of upstream's code.
func (k *Kind) hub() schema.GroupVersion {
	return schema.GroupVersion{Group: k.Group, Version: runtime.APIVersionInternal}
}

func (k *Kind) serializer(mediaType string) runtime.Serializer {
	info, _ := runtime.SerializerInfoForMediaType(k.codecs.SupportedMediaTypes(), mediaType)
	return info.Serializer
}

// decode decodes a request body, with defaults. Its errors are those of the create handler.
func (k *Kind) decode(o Object) (runtime.Object, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	gvk := k.gvk()
	obj, got, err := k.codecs.DecoderToVersion(k.serializer(runtime.ContentTypeJSON), k.hub()).Decode(data, &gvk, nil)
	if err != nil {
		if got == nil || got.Kind == "" {
			return nil, apierrors.NewBadRequest("the object provided is unrecognized")
		}
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, k.Kind, err))
	}
	return obj, nil
}

func nameOf(o Object) string {
	m, _ := o["metadata"].(Object)
	name, _ := m["name"].(string)
	return name
}

// path returns the path of requests for a kind, or for one object of it.
func (k *Kind) path(name, subresource string) string {
	parts := []string{"/apis", k.Group, k.Version}
	if k.Group == "" {
		parts = []string{"/api", k.Version}
	}
	if k.Strategy.NamespaceScoped() {
		parts = append(parts, "namespaces", namespaceName)
	}
	parts = append(parts, k.Plural)
	if name != "" {
		parts = append(parts, name)
	}
	if subresource != "" {
		parts = append(parts, subresource)
	}
	return strings.Join(parts, "/")
}

// readOutcome reads our response.
func readOutcome(w *httptest.ResponseRecorder) (out Outcome) {
	out.Code, out.Warnings = w.Code, w.Header().Values("Warning")
	body := w.Body.Bytes()
	if w.Code < 300 {
		if err := json.Unmarshal(body, &out.Object); err != nil {
			out.Code, out.Message = 0, fmt.Sprintf("the answer is no JSON: %v", err)
		}
		return out
	}
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" {
		out.Message = string(bytes.TrimSpace(body))
		return out
	}
	out.refuse(&s)
	return out
}
