// Package publish makes a cluster serve the custom resources of this server. It maintains an
// APIService in the cluster for each version of their groups, with the Service by which the cluster
// reaches this server.
//
// APIServices of other owners stay unchanged, except that one with this Service gets the CA bundle.
// The package knows definitions of this server and APIServices of the cluster.
package publish

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/object"
)

// Name is the name of the controller.
const Name = "apiservice-publisher"

const (
	// manager is the field manager, and the value of the label that marks its APIServices.
	manager = "anykind"
	label   = "app.kubernetes.io/managed-by"

	path = "/apis/apiregistration.k8s.io/v1/apiservices"
	// lookAgain is the time after which a changed APIService is repaired.
	lookAgain = time.Minute
	// groupPriority and versionPriority are the priorities of custom resources.
	groupPriority, versionPriority = 1000, 100
	defaultPort                    = 443
)

// A Service is the Service by which the cluster reaches this server.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      int32  `json:"port,omitempty"`
}

// ParseService parses NAMESPACE/NAME or NAMESPACE/NAME:PORT.
func ParseService(text string) (s Service, err error) {
	path, port, hasPort := strings.Cut(text, ":")
	var ok bool
	s.Namespace, s.Name, ok = strings.Cut(path, "/")
	s.Port = defaultPort
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return s, fmt.Errorf("%q has no port from 1 to 65535", text)
		}
		s.Port = int32(n)
	}
	if !ok || s.Namespace == "" || s.Name == "" || strings.Contains(s.Name, "/") {
		return s, fmt.Errorf("want NAMESPACE/NAME or NAMESPACE/NAME:PORT, not %q", text)
	}
	return s, nil
}

// Hosts returns the DNS names of this server in the cluster.
func (s Service) Hosts() []string {
	return []string{s.Name + "." + s.Namespace + ".svc", s.Name + "." + s.Namespace + ".svc.cluster.local"}
}

// Options of the controller.
type Options struct {
	Cluster *cluster.Client
	Service Service
	CA      []byte // the CA bundle in PEM
}

// A Controller maintains the APIServices. The key of its tasks is the name of an API group.
type Controller struct {
	Options
	objects *controller.Objects
	queue   *controller.Queue
}

// New returns the constructor of the controller.
func New(of Options) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{Options: of, objects: o, queue: q}
	}
}

// Keys returns the key prefix of CustomResourceDefinitions.
func (c *Controller) Keys() []string { return []string{c.objects.DefinitionPrefix()} }

// See queues the group of a definition.
func (c *Controller) See(e *controller.Event) {
	_, group, _ := strings.Cut(strings.TrimPrefix(e.Key, c.objects.DefinitionPrefix()), ".")
	c.queue.Add(controller.Task{Key: group})
}

// An apiService has the relevant fields of an APIService.
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Group    string   `json:"group"`
		Version  string   `json:"version"`
		Service  *Service `json:"service"`
		CABundle []byte   `json:"caBundle"`
	} `json:"spec"`
}

// ours reports whether the controller created an APIService.
func (a *apiService) ours() bool { return a.Labels[label] == manager }

// Do creates, updates or deletes the APIServices of a group.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if err := c.objects.Refresh(ctx); err != nil {
		return err
	}
	var versions []string
	if g := c.objects.Catalog.Set().Group(t.Key); g != nil {
		versions = g.Versions
	}
	var all struct{ Items []apiService }
	if err := c.Cluster.Get(ctx, path+"?labelSelector="+url.QueryEscape(label+"="+manager), &all); err != nil {
		return err
	}
	for _, a := range all.Items {
		if a.Spec.Group == t.Key && c.leadsHere(&a) && !slices.Contains(versions, a.Spec.Version) {
			only := metav1.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion}
			if err := c.Cluster.Delete(ctx, path+"/"+a.Name, only); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	for _, version := range versions {
		if err := c.keep(ctx, t.Key, version); err != nil {
			return err
		}
	}
	if len(versions) > 0 {
		c.queue.After(t, lookAgain)
	}
	return nil
}

// leadsHere reports whether an APIService has the Service of this server.
func (c *Controller) leadsHere(a *apiService) bool {
	s := a.Spec.Service
	return s != nil && s.Namespace == c.Service.Namespace && s.Name == c.Service.Name
}

// keep creates or updates the APIService of a version.
func (c *Controller) keep(ctx context.Context, group, version string) error {
	name := version + "." + group
	var found apiService
	err := c.Cluster.Get(ctx, path+"/"+name, &found)
	missing := apierrors.IsNotFound(err)
	switch {
	case err != nil && !missing:
		return err
	case !missing && !c.leadsHere(&found):
		c.objects.Logger.Warn("an APIService of the cluster sends a version of this server elsewhere", "apiservice", name)
		return nil
	case !missing && string(found.Spec.CABundle) == string(c.CA):
		return nil
	}
	fields := object.Tree{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": object.Tree{"name": name},
		"spec": object.Tree{"caBundle": c.CA},
	}
	if missing || found.ours() {
		fields["metadata"].(object.Tree)["labels"] = object.Tree{label: manager}
		fields["spec"] = object.Tree{
			"group": group, "version": version, "service": c.Service, "caBundle": c.CA,
			"groupPriorityMinimum": groupPriority, "versionPriority": versionPriority,
		}
	}
	return c.Cluster.Apply(ctx, path+"/"+name, manager, fields)
}
