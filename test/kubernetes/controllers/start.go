package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// A controller is one controller of kube-controller-manager.
type controller interface {
	Run(ctx context.Context, workers int)
}

// A maker creates a controller.
type maker func(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error)

func replicaSets(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return replicaset.NewReplicaSetController(ctx, f.Apps().V1().ReplicaSets(), f.Core().V1().Pods(), c, replicaset.BurstReplicas), nil
}

func deployments(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return deployment.NewDeploymentController(ctx, f.Apps().V1().Deployments(), f.Apps().V1().ReplicaSets(), f.Core().V1().Pods(), c)
}

func statefulSets(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return statefulset.NewStatefulSetController(ctx, f.Core().V1().Pods(), f.Apps().V1().StatefulSets(),
		f.Core().V1().PersistentVolumeClaims(), f.Apps().V1().ControllerRevisions(), c), nil
}

func jobs(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return job.NewController(ctx, c, f.Core().V1().Pods(), f.Batch().V1().Jobs(), nil, nil)
}

func daemonSets(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return daemon.NewDaemonSetsController(ctx, f.Apps().V1().DaemonSets(), f.Apps().V1().ControllerRevisions(),
		f.Core().V1().Pods(), f.Core().V1().Nodes(), c, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
}

func replicationControllers(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return replication.NewReplicationManager(ctx, f.Core().V1().Pods(), f.Core().V1().ReplicationControllers(), c, replication.BurstReplicas), nil
}

func serviceAccounts(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), f.Core().V1().ServiceAccounts(), f.Core().V1().Namespaces(), c,
		serviceaccount.DefaultServiceAccountsControllerOptions())
}

func expiredJobs(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (controller, error) {
	return ttlafterfinished.New(ctx, f.Batch().V1().Jobs(), c), nil
}

// start returns the Start of a World for controllers that share informers.
func start(makers ...maker) func(ctx context.Context, config *rest.Config) error {
	return func(ctx context.Context, config *rest.Config) error {
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		f := informers.NewSharedInformerFactory(c, 0)
		var running sync.WaitGroup
		for _, make := range makers {
			one, err := make(ctx, c, f)
			if err != nil {
				return err
			}
			running.Go(func() { one.Run(ctx, 1) })
		}
		f.Start(ctx.Done())
		running.Wait()
		f.Shutdown()
		return nil
	}
}
