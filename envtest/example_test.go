package envtest_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/envtest"
)

// must is for examples: a test has t.Fatal.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func newClient(config *rest.Config) client.Client {
	c, err := client.New(config, client.Options{})
	must(err)
	return c
}

func settings(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data:       map[string]string{"color": color},
	}
}

// A suite that has its server from controller-runtime changes the import line.
func Example() {
	testEnv := &envtest.Environment{
		CRDDirectoryPaths:     []string{"testdata/crds"},
		ErrorIfCRDPathMissing: true,
	}
	config, err := testEnv.Start()
	must(err)
	defer func() { must(testEnv.Stop()) }()

	must(newClient(config).Create(context.Background(), settings("blue")))
	fmt.Println("definitions:", testEnv.CRDs[0].Name)
	// Output: definitions: gadgets.example.com
}

// A controller of kube-controller-manager runs if it is named.
func ExampleEnvironment_controllers() {
	testEnv := &envtest.Environment{Controllers: []string{"namespace-controller"}}
	config, err := testEnv.Start()
	must(err)
	defer func() { must(testEnv.Stop()) }()
	ctx, c := context.Background(), newClient(config)

	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	must(c.Create(ctx, team))
	must(c.Delete(ctx, team))
	must(testEnv.WaitIdle(ctx))
	fmt.Println(apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(team), team)))
	// Output: true
}

// Servers begin with the state of another one.
func ExampleEnvironment_Snapshot() {
	ctx := context.Background()
	template := &envtest.Environment{CRDDirectoryPaths: []string{"testdata/crds"}}
	config, err := template.Start()
	must(err)
	must(newClient(config).Create(ctx, settings("blue")))
	prepared, err := template.Snapshot()
	must(err)
	must(template.Stop())

	for _, color := range []string{"red", "green"} {
		testEnv := &envtest.Environment{From: prepared}
		config, err := testEnv.Start()
		must(err)
		c, object := newClient(config), settings("")
		must(c.Get(ctx, client.ObjectKeyFromObject(object), object))
		fmt.Println(object.Data["color"], "becomes", color)
		object.Data["color"] = color
		must(c.Update(ctx, object))
		must(testEnv.Stop())
	}
	// Output:
	// blue becomes red
	// blue becomes green
}

// The next write of a ConfigMap is a conflict.
func ExampleEnvironment_Inject() {
	testEnv := &envtest.Environment{}
	config, err := testEnv.Start()
	must(err)
	defer func() { must(testEnv.Stop()) }()
	ctx, c := context.Background(), newClient(config)
	object := settings("blue")
	must(c.Create(ctx, object))

	conflict := testEnv.Inject(envtest.Fault{
		Requests: envtest.Requests{Verb: "update", Resource: "configmaps"},
		Effect:   envtest.Conflict(),
	})
	attempts := 0
	must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		attempts++
		return c.Update(ctx, object)
	}))
	fmt.Println(attempts, "attempts,", conflict.Count(), "conflict")
	// Output: 2 attempts, 1 conflict
}

// A watch ends. Its client resumes, gets 410, and lists again.
func ExampleEnvironment_EndWatches() {
	testEnv := &envtest.Environment{}
	config, err := testEnv.Start()
	must(err)
	defer func() { must(testEnv.Stop()) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	watches := envtest.Requests{Verb: "watch", Resource: "configmaps"}
	transcript := testEnv.Record(watches)
	waitFor := func(begun int) {
		must(wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
			return strings.Count(transcript.String(), "\n") >= begun, nil
		}))
	}
	objects, err := cache.New(config, cache.Options{})
	must(err)
	go func() { must(objects.Start(ctx)) }()
	_, err = objects.GetInformer(ctx, &corev1.ConfigMap{})
	must(err)
	waitFor(1)

	expired := testEnv.Inject(envtest.Fault{Requests: watches, Effect: envtest.Expired()})
	ended := testEnv.EndWatches(watches)
	waitFor(3) // the rejected watch, and the next one
	fmt.Println(ended, "watch ended,", expired.Count(), "was too late")
	// Output: 1 watch ended, 1 was too late
}

// An overloaded server sends Retry-After, and clients retry then.
func ExampleTooManyRequests() {
	testEnv := &envtest.Environment{}
	config, err := testEnv.Start()
	must(err)
	defer func() { must(testEnv.Stop()) }()

	busy := testEnv.Inject(envtest.Fault{
		Requests: envtest.Requests{Verb: "write", Namespace: "default"},
		Times:    2,
		Effect:   envtest.TooManyRequests(time.Second),
	})
	started := time.Now()
	must(newClient(config).Create(context.Background(), settings("blue")))
	fmt.Println(busy.Count(), time.Since(started) > 2*time.Second)
	// Output: 2 true
}

// The requests of a program and their outcomes can be compared with a golden file.
func ExampleEnvironment_Record() {
	testEnv := &envtest.Environment{}
	config, err := testEnv.Start()
	must(err)
	defer func() { must(testEnv.Stop()) }()
	jane, err := testEnv.AddUser(envtest.User{Name: "jane"}, nil)
	must(err)
	ctx, c := context.Background(), newClient(config)

	transcript := testEnv.Record(envtest.Requests{Verb: "write"}, envtest.Requests{User: "jane"})
	object := settings("blue")
	must(c.Create(ctx, object))
	object.Data["color"] = "green"
	object.Labels = map[string]string{"app": "web"}
	must(c.Update(ctx, object))
	_ = newClient(jane.Config()).List(ctx, &corev1.SecretList{})
	must(c.Delete(ctx, object))
	fmt.Print(transcript)
	// Output:
	// admin create /api/v1/namespaces/default/configmaps 201 settings {"data":{"color":"blue"}}
	// admin update /api/v1/namespaces/default/configmaps/settings 200 data.color="green" metadata.labels={"app":"web"}
	// jane list /api/v1/secrets 403
	// admin delete /api/v1/namespaces/default/configmaps/settings 200 settings deleted
}
