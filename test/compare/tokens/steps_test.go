package tokens

import "fmt"

// setup creates the objects for tokens.
var setup = []step{
	{method: "POST", path: "serviceaccounts", body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n"},
	{method: "POST", path: "serviceaccounts", body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other}\n"},
	{method: "POST", path: "serviceaccounts", body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: held, finalizers: [example.com/held]}\n"},
	{method: "POST", path: "/api/v1/nodes", body: "apiVersion: v1\nkind: Node\nmetadata: {name: node1}\n"},
	{method: "POST", path: "secrets", body: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"},
	pod("p", "nodeName: node1"), pod("lost", "nodeName: gone"), pod("free", ""),
}

func pod(name, more string) step {
	return step{method: "POST", path: "pods", body: `
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec:
  serviceAccountName: robot
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: i}]
  ` + more}
}

// token returns a TokenRequest for a ServiceAccount.
func token(account, text string) step {
	return step{method: "POST", path: "serviceaccounts/" + account + "/token", body: "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\n" + text}
}

// bound returns a TokenRequest with a bound object.
func bound(apiVersion, kind, name, uid string) step {
	return token("robot", fmt.Sprintf("spec: {boundObjectRef: {apiVersion: %q, kind: %q, name: %q, uid: %q}}", apiVersion, kind, name, uid))
}

func (s step) kept(name string) step {
	s.keep = name
	return s
}

// asked are TokenRequests.
var asked = []step{
	token("robot", ""),
	token("robot", "spec: {}"),
	token("robot", "spec: {audiences: [a, b, a]}"),
	token("robot", "spec: {audiences: []}"),
	token("robot", "spec: {audiences: ['']}"),
	token("robot", "spec: {audiences: null}"),
	token("robot", "spec: {expirationSeconds: 600}"),
	token("robot", "spec: {expirationSeconds: 599}"),
	token("robot", "spec: {expirationSeconds: 0}"),
	token("robot", "spec: {expirationSeconds: -1}"),
	token("robot", "spec: {expirationSeconds: 5000001}"), // is shortened, with a warning
	token("robot", "spec: {expirationSeconds: 4294967296}"),
	token("robot", "spec: {expirationSeconds: 4294967297}"),
	token("robot", "spec: {expirationSeconds: null}"),
	token("robot", "spec: {expirationSeconds: 3607}"),
	token("robot", "metadata: {name: robot, namespace: default, labels: {a: b}, generateName: x, resourceVersion: '7', finalizers: [x/y]}"),
	token("robot", "metadata: {name: other}"),
	token("robot", "metadata: {namespace: other}"),
	token("robot", "metadata: {uid: other}"),
	token("robot", "metadata: {uid: <uid:serviceaccounts/robot>}"),
	token("robot", "status: {token: mine}"),
	token("robot", "spec: {unknown: 1}"),
	token("robot", "spec: {attestations: {a: [b]}}"),
	token("robot?dryRun=All", ""),
	token("missing", ""),
	token("missing", "spec: {expirationSeconds: 1}"),
	token("missing", "metadata: {name: other}"),
	{method: "POST", path: "/api/v1/namespaces/nowhere/serviceaccounts/x/token", body: "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\n"},
	{method: "POST", path: "serviceaccounts/robot/token", body: "{}"},
	{method: "POST", path: "serviceaccounts/robot/token"},
	{method: "POST", path: "serviceaccounts/robot/token", body: "apiVersion: authentication.k8s.io/v2\nkind: TokenRequest\n"},
	{method: "GET", path: "serviceaccounts/robot/token"},
	{method: "PUT", path: "serviceaccounts/robot/token", body: "{}"},
	{method: "DELETE", path: "serviceaccounts/robot/token"},
	bound("v1", "Pod", "p", ""),
	bound("v1", "Pod", "p", "<uid:pods/p>"),
	bound("v1", "Pod", "p", "another"),
	bound("v1", "Pod", "lost", ""),
	bound("v1", "Pod", "free", ""),
	bound("v1", "Pod", "missing", ""),
	bound("v1", "Pod", "", ""),
	bound("v7", "Pod", "p", ""),
	bound("", "Pod", "p", ""),
	bound("apps/v1", "Pod", "p", ""),
	bound("a/b/c", "Pod", "p", ""),
	bound("v1", "Secret", "s", "<uid:secrets/s>"),
	bound("v1", "Secret", "s", "another"),
	bound("v1", "Secret", "missing", ""),
	bound("v1", "Node", "node1", ""),
	bound("v1", "Node", "node1", "another"),
	bound("v1", "Node", "missing", ""),
	bound("v1", "ConfigMap", "x", ""),
	bound("", "", "", ""),
	bound("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "x", ""),
	token("other", "spec: {boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}"),
	token("robot", "spec: {expirationSeconds: 3607, boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}"),
	token("robot", "spec: {expirationSeconds: 3608, boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}"),
	token("robot", "spec: {expirationSeconds: 3607, audiences: [x], boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}"),
}

// hooks are webhook configurations.
var hooks = []step{
	{method: "POST", path: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", body: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: v}
webhooks:
- {name: a.b.c, clientConfig: {url: 'https://a/x'}, rules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}], sideEffects: None, admissionReviewVersions: [v1]}
- {name: b.b.c, clientConfig: {service: {namespace: n, name: s, port: 8443, path: /p}}, rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [x]}], sideEffects: None, admissionReviewVersions: [v1]}
`},
	{method: "POST", path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", body: `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: m}
webhooks:
- {name: a.b.c, clientConfig: {service: {namespace: n, name: s}}, reinvocationPolicy: IfNeeded, rules: [{operations: [CREATE], apiGroups: ['example.com'], apiVersions: [v1], resources: ['x']}], sideEffects: None, admissionReviewVersions: [v1]}
`},
}

// forHook returns a TokenRequest with a bound webhook configuration.
func forHook(kind, name, audiences, attestations string) step {
	return token("robot", fmt.Sprintf("spec: {audiences: [%s], attestations: {%s}, boundObjectRef: {apiVersion: admissionregistration.k8s.io/v1, kind: %sWebhookConfiguration, name: %q}}",
		audiences, attestations, kind, name))
}

// forHooks are TokenRequests for webhooks, with and without the gate APIServerWebhookAuthenticationToken.
var forHooks = []step{
	forHook("Validating", "v", "'https://a/x'", "admissionReviewAPIGroups: [apps]"),
	forHook("Validating", "v", "'https://a/x'", "admissionReviewAPIGroups: [example.com]"),
	forHook("Validating", "v", "'https://a/'", "admissionReviewAPIGroups: [apps]"),
	forHook("Validating", "v", "'https://s.n.svc:8443/p'", "admissionReviewAPIGroups: [example.com]"),
	forHook("Validating", "v", "'https://s.n.svc:8443/p/'", "admissionReviewAPIGroups: [example.com]"),
	forHook("Validating", "v", "x", "admissionReviewAPIGroups: ['*']"),
	forHook("Validating", "missing", "x", "admissionReviewAPIGroups: ['*']"),
	forHook("Validating", "", "x", "admissionReviewAPIGroups: ['*']"),
	forHook("Mutating", "m", "'https://s.n.svc:443/'", "admissionReviewAPIGroups: [example.com]"),
	forHook("Mutating", "m", "'https://s.n.svc/'", "admissionReviewAPIGroups: [example.com]"),
	forHook("Mutating", "v", "'https://s.n.svc:443/'", "admissionReviewAPIGroups: [example.com]"),
	forHook("Mutating", "m", "'https://localhost'", "admissionReviewAPIGroups: ['*']"),
	forHook("Mutating", "m", "", "admissionReviewAPIGroups: ['*']"),
	forHook("Mutating", "m", "x, y", "admissionReviewAPIGroups: ['*']"),
	forHook("Mutating", "m", "x", ""),
	forHook("Mutating", "m", "x", "admissionReviewAPIGroups: []"),
	forHook("Mutating", "m", "x", "admissionReviewAPIGroups: ['']"),
	forHook("Mutating", "m", "x", "admissionReviewAPIGroups: [a, b]"),
	forHook("Mutating", "m", "x, y", "admissionReviewAPIGroups: [A_B]"),
	forHook("Mutating", "m", "x", "other: [a]"),
	forHook("Mutating", "m", "x", "admissionReviewAPIGroups: [a], other: [a]"),
	token("robot", "spec: {attestations: {admissionReviewAPIGroups: [a]}, expirationSeconds: 1, boundObjectRef: {apiVersion: v1, kind: Pod, name: p}}"),
	token("robot", "spec: {audiences: [x], attestations: {admissionReviewAPIGroups: ['*']}, expirationSeconds: 700, boundObjectRef: {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, name: m, uid: other}}"),
}

// used are TokenRequests whose tokens are then used.
var used = []step{
	token("robot", "").kept("plain"),
	token("robot", "spec: {audiences: [x, 'https://localhost']}").kept("two audiences"),
	token("robot", "spec: {audiences: [x]}").kept("another audience"),
	token("held", "").kept("held"),
	bound("v1", "Pod", "p", "").kept("pod"),
	bound("v1", "Pod", "lost", "").kept("lost"),
	bound("v1", "Secret", "s", "").kept("secret"),
	bound("v1", "Node", "node1", "").kept("node"),
}

// ended are steps that invalidate a token, each with the token to use afterwards. The token is unused
// before: Kubernetes caches successful authentications for ten seconds.
var ended = []step{
	bound("v1", "Pod", "p", "").kept("pod that is gone"),
	{method: "DELETE", path: "pods/p?gracePeriodSeconds=0", as: "pod that is gone"},
	bound("v1", "Pod", "lost", "").kept("pod that is going"),
	{method: "DELETE", path: "pods/lost?gracePeriodSeconds=30", as: "pod that is going"},
	bound("v1", "Secret", "s", "").kept("Secret that is gone"),
	{method: "DELETE", path: "secrets/s", as: "Secret that is gone"},
	bound("v1", "Node", "node1", "").kept("node that is gone"),
	{method: "DELETE", path: "/api/v1/nodes/node1", as: "node that is gone"},
	token("held", "").kept("account that is going"),
	{method: "DELETE", path: "serviceaccounts/held", as: "account that is going"},
	token("robot", "").kept("account that is gone"),
	token("robot", "").kept("account that is another one"),
	{method: "DELETE", path: "serviceaccounts/robot", as: "account that is gone"},
	{method: "POST", path: "serviceaccounts", body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n", as: "account that is another one"},
}
