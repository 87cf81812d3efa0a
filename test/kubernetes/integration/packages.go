package main

// all are the packages that are run, below test/integration. Those of one kind of object that are not
// here have not been looked through; -packages runs them, too.
var all = []string{
	"apimachinery",
	"apiserver",
	"apiserver/apply",
	"apiserver/cel",
	"apiserver/discovery",
	"auth",
	"certificates",
	"client",
	"clustertrustbundles",
	"defaulttolerationseconds",
	"deployment",
	"dryrun",
	"endpoints",
	"endpointslice",
	"events",
	"evictions",
	"garbagecollector",
	"namespace",
	"pods",
	"quota",
	"replicaset",
	"secrets",
	"service",
	"serviceaccount",
	"statefulset",
	"storageclasses",
	"ttlcontroller",
}
