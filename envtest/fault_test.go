package envtest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A fault hits its requests, as often as requested, and no others.
func TestInject(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	c := clientOf(t, e.StartFor(t))
	ctx := t.Context()
	forbidden := Refuse(apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil))
	second := e.Inject(Fault{Requests: Requests{Verb: "create", Resource: "configmaps"}, Skip: 1, Effect: forbidden})
	for i, want := range []bool{false, true, false} {
		object := configMap("")
		object.GenerateName = "c-"
		if err := c.Create(ctx, object); apierrors.IsForbidden(err) != want {
			t.Errorf("create %d: %v", i, err)
		}
	}
	if second.Count() != 1 {
		t.Errorf("it happened %d times", second.Count())
	}
	always := e.Inject(Fault{Requests: Requests{Verb: "read", Group: "core", Namespace: "default"}, Times: Always, Effect: forbidden})
	for range 3 {
		if err := c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
			t.Errorf("%v", err)
		}
	}
	if err := c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("kube-system")); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
	always.Remove()
	if err := c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default")); err != nil || always.Count() != 3 {
		t.Errorf("removed, after %d times: %v", always.Count(), err)
	}
}

// Requests selects by the attributes of RBAC rules.
func TestRequests(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	config := e.StartFor(t)
	jane, err := e.AddUser(User{Name: "jane", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	admins, janes := clientOf(t, config), clientOf(t, jane.Config())
	ctx := t.Context()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	for _, test := range []struct {
		name string
		of   Requests
		want string
	}{
		{"all", Requests{}, "admin create pods, admin patch pods/status, jane get pods"},
		{"by resource", Requests{Resource: "pods"}, "admin create pods, jane get pods"},
		{"by subresource", Requests{Resource: "pods/status"}, "admin patch pods/status"},
		{"by any subresource", Requests{Resource: "pods/*"}, "admin patch pods/status"},
		{"by a subresource of anything", Requests{Resource: "*/status"}, "admin patch pods/status"},
		{"by user", Requests{User: "jane"}, "jane get pods"},
		{"by kind of verb", Requests{Verb: "write"}, "admin create pods, admin patch pods/status"},
		{"by name", Requests{Name: "p"}, "admin patch pods/status, jane get pods"},
		{"by group", Requests{Group: "apps"}, ""},
	} {
		of := e.Record(test.of)
		object := pod.DeepCopy()
		if err := admins.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		patch := client.MergeFrom(object.DeepCopy())
		object.Status.Message = "m"
		if err := admins.Status().Patch(ctx, object, patch); err != nil {
			t.Fatal(err)
		}
		if err := janes.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		of.Stop()
		if err := admins.Delete(ctx, object, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(of.String()) {
			words := strings.Fields(line)
			_, resource, _ := strings.Cut(words[2], "/default/")
			got = append(got, words[0]+" "+words[1]+" "+strings.Replace(resource, "/p", "", 1))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
	}
}

// The effects, as clients see them, in fake time.
func TestEffects(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	inBubble(t, e, func(t *testing.T, config *rest.Config) {
		c, ctx := clientOf(t, config), t.Context()
		object := configMap("object")
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		next := func(effect Effect) { e.Inject(Fault{Requests: Requests{Resource: "configmaps"}, Effect: effect}) }
		update := func() error {
			object.Data = map[string]string{"at": time.Now().String()}
			time.Sleep(time.Microsecond)
			return c.Update(ctx, object)
		}
		took := func(what func() error) (time.Duration, error) {
			began := time.Now()
			err := what()
			return time.Since(began).Round(time.Second), err
		}

		next(Conflict())
		if err := update(); !apierrors.IsConflict(err) || err.Error() != `Operation cannot be fulfilled on configmaps "object": the object has been modified; please apply your changes to the latest version and try again` {
			t.Errorf("Conflict: %v", err)
		}
		next(Delay(7 * time.Second))
		if d, err := took(update); d != 7*time.Second || err != nil {
			t.Errorf("Delay: %v, %v", d, err)
		}
		next(TooManyRequests(3500 * time.Millisecond))
		if d, err := took(update); d != 4*time.Second || err != nil {
			t.Errorf("TooManyRequests: %v, %v", d, err)
		}
		next(HangUp())
		before := object.ResourceVersion
		if err := update(); err == nil || object.ResourceVersion != before {
			t.Errorf("HangUp: %v", err)
		}
		next(LoseAnswer())
		if err := update(); err == nil {
			t.Error("LoseAnswer: there was one")
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || object.ResourceVersion == before {
			t.Errorf("LoseAnswer: it was not done; %v", err)
		}
		next(FailStore())
		if err := update(); err == nil || apierrors.IsConflict(err) {
			t.Errorf("FailStore: %v", err)
		}
		next(Expired())
		if err := c.List(ctx, &corev1.ConfigMapList{}); !apierrors.IsResourceExpired(err) {
			t.Errorf("Expired: %v", err)
		}
		if err := update(); err != nil {
			t.Errorf("when all is over: %v", err)
		}
	})
}

// An informer resumes when its watch ends, and lists again after 410.
func TestEndWatches(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	inBubble(t, e, func(t *testing.T, config *rest.Config) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		clients := kubernetes.NewForConfigOrDie(config)
		factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace("default"))
		lister := factory.Core().V1().ConfigMaps().Lister()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		watches := Requests{Verb: "watch", Resource: "configmaps"}
		asked := e.Record(Requests{Verb: "read", Resource: "configmaps"})
		seen := func(name string) {
			t.Helper()
			if _, err := clients.CoreV1().ConfigMaps("default").Create(ctx, configMap(name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if _, err := lister.ConfigMaps("default").Get(name); err != nil {
				t.Errorf("%v", err)
			}
		}
		seen("first")
		if n := e.EndWatches(watches); n != 1 {
			t.Errorf("%d watches ended", n)
		}
		seen("second")
		e.Inject(Fault{Requests: watches, Effect: Expired()})
		e.EndWatches(watches)
		seen("third")
		cancel()
		factory.Shutdown()
		if got := strings.Count(asked.String(), " watch "); got < 3 {
			t.Errorf("%d watches were asked for:\n%s", got, asked)
		}
	})
}

// A rejected watch gets the error as an event.
func TestExpiredWatch(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	clients := kubernetes.NewForConfigOrDie(e.StartFor(t))
	e.Inject(Fault{Requests: Requests{Verb: "watch"}, Effect: Expired()})
	w, err := clients.CoreV1().Secrets("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	event := <-w.ResultChan()
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("%+v", event)
	}
}

// Webhooks are slow or unreachable for the chosen requests.
func TestWebhooksFail(t *testing.T) {
	t.Parallel()
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer hook.Close()
	seconds, none, everywhere := int32(1), admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.AllScopes
	e := &Environment{}
	e.WebhookInstallOptions.ValidatingWebhooks = []*admissionregistrationv1.ValidatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook.example.com", TimeoutSeconds: &seconds, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &hook.URL},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &everywhere},
			}},
		}},
	}}
	c := clientOf(t, e.StartFor(t))
	ctx := t.Context()
	// Start sets the caBundle of its own server, so it is not compared.
	var stored admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.Get(ctx, client.ObjectKey{Name: "hook"}, &stored); err != nil {
		t.Fatal(err)
	}
	stored.Webhooks[0].ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	if err := c.Update(ctx, &stored); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, configMap("well")); err != nil {
		t.Fatal(err)
	}
	of := Requests{Verb: "create", Resource: "configmaps"}
	e.Inject(Fault{Requests: of, Effect: SlowWebhooks(time.Minute)})
	if err := c.Create(ctx, configMap("slow")); err == nil || !strings.Contains(err.Error(), "context deadline exceeded") {
		t.Errorf("%v", err)
	}
	e.Inject(Fault{Requests: of, Effect: FailWebhooks()})
	if err := c.Create(ctx, configMap("none")); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
	if err := c.Create(ctx, configMap("again")); err != nil {
		t.Error(err)
	}
}

// WaitIdle waits for open requests, and its error names them.
func TestSettle(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	inBubble(t, e, func(t *testing.T, config *rest.Config) {
		c := clientOf(t, config)
		e.Inject(Fault{Requests: Requests{Verb: "list"}, Effect: Delay(20 * time.Second)})
		go func() { _ = c.List(t.Context(), &corev1.ConfigMapList{}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := e.WaitIdle(ctx); err == nil || !strings.Contains(err.Error(), "1 requests are in progress") {
			t.Errorf("%v", err)
		}
		began := time.Now()
		if err := e.WaitIdle(t.Context()); err != nil || time.Since(began).Round(time.Second) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
