package console

// A question is an everyday one, with the way of each program to its answer.
type question struct {
	words                  string
	console, k9s, headlamp way
}

// A way to an answer has steps, and patterns of the text that is the answer; "!" before a pattern means that it must be
// absent. A way that does not exist has a reason.
type way struct {
	steps, answer []string
	none          string
}

// to returns a way that ends with an answer.
func to(answer string, steps ...string) way { return way{steps: steps, answer: []string{answer}} }

// and returns the way with more texts that must be present.
func (w way) and(patterns ...string) way {
	w.answer = append(w.answer, patterns...)
	return w
}

// but returns the way with texts that must be absent.
func (w way) but(patterns ...string) way {
	for _, p := range patterns {
		w.answer = append(w.answer, "!"+p)
	}
	return w
}

// none returns the way that does not exist, for a reason.
func none(reason string) way { return way{none: reason} }

// questions returns all questions.
func questions() []question {
	return append(append(append(finding(), reasons()...), changing()...), rules()...)
}

// finding returns questions after objects.
func finding() []question {
	return []question{
		{words: "Which Deployments are not ready?", console: to(`web 0/5`, "click Deployments"), k9s: to(`web 0/5`, "enter :deploy"), headlamp: to(`web shop 0/5`, "click Workloads", "click Deployments")},
		{words: "Where is the object `checkout`?", console: to(`Service checkout in shop`, "key Ctrl+K", "type checkout"), k9s: to(`services shop checkout`, "enter :workloads", "await workloads\\(all\\)", "enter /checkout").but(`animal`), headlamp: to(`Service • shop`, "key /", "type checkout")},
		{words: "Which objects of any kind mention this image?", console: to(`Deployment web in shop`, "key Ctrl+K", "type registry.example/web").and(`Pod web-7c5-x in shop`), k9s: none("one kind at a time"), headlamp: none("one path at a time")},
		{words: "Which custom resource has this host in its spec?", console: to(`Database orders in shop spec.host`, "key Ctrl+K", "type db-17"), k9s: none("no search in values"), headlamp: to(`orders`, "click Advanced Search (Beta)", "click Select Resources", "click Select All", "key Escape", "click .monaco-editor", `type spec.host === "db-17.example.net"`)},
		{words: "Which Pods carry the label app=web?", console: to(`web-7c5-x`, "click Pods", "click Label selector", "type app=web").but(`api-7c5-x`), k9s: to(`pods\(all\)\[1\].*web-7c5-x`, "enter :pods app=web"), headlamp: to(`web-7c5-x`, "click Workloads", "click Pods", "click Show/Hide search", "type app=web").but(`api-7c5-x`)},
		{words: "Which Pod has the most restarts?", console: to(`web-7c5-x.*api-7c5-x`, "click Pods", "click Restarts", "click Restarts ↑"), k9s: to(`web-7c5-x.*api-7c5-x`, "key Shift+T"), headlamp: to(`web-7c5-x.*api-7c5-x`, "click Workloads", "click Pods", "click Restarts")},
		{words: "Which Deployments have spec.replicas > 1?", console: to(`web 0/5`, "click Deployments", "click CEL: object.spec…", "type object.spec.replicas > 1").but(`api 1/1`), k9s: none("no expressions"), headlamp: to(`web .*shop`, "click Advanced Search (Beta)", "click Select Resources", "click Select All", "key Escape", "click .monaco-editor", `type kind === "Deployment" && spec.replicas > 1`)},
		{words: "Which is the last of 7,000 ConfigMaps?", console: to(`zoo animal-06999`, "click ConfigMaps", "await ● live", "key End"), k9s: to(`animal-06999`, "enter :cm zoo", "await animal", "key Shift+G"), headlamp: to(`animal-06999`, "click Configuration", "click Config Maps", "click Name", "click Name")},
	}
}

// reasons returns questions after reasons and the past.
func reasons() []question {
	return []question{
		{words: "Why is this Deployment not ready?", console: to(`ConfigMap web-settings does not exist`, "click Deployments", "click web"), k9s: to(`configmap "web-settings" not found`, "enter :deploy", "await deployments", "enter /web", "await deployments\\(all\\)\\[1\\]", "key Enter", "await web-7c5-x", "key d"), headlamp: to(`configmap "web-settings" not found`, "click Workloads", "click Deployments", "click web", "scroll web-7c5-x", "click web-7c5-x", "scroll web-settings")},
		{words: "Which events are about this Pod?", console: to(`Warning Failed ×3`, "click Pods", "click web-7c5-x"), k9s: to(`configmap "web-settings" not found`, "enter /web", "await pods\\(all\\)\\[1\\]", "key d"), headlamp: to(`Error: configmap "web-settings" not found`, "click Workloads", "click Pods", "click web-7c5-x", "scroll Error: configmap")},
		{words: "Why is this namespace still Terminating?", console: to(`example.com/hold`, "click Cluster", "click namespaces", "click old"), k9s: to(`example.com/hold`, "enter :ns", "await namespaces\\(all\\)", "enter /old", "await namespaces\\(all\\)\\[1\\]", "key d"), headlamp: to(`example.com/hold`, "click Namespaces", "click old", "click Edit", "scroll example.com/hold")},
		{words: "Which objects does the deletion of this custom resource take along?", console: to(`ConfigMap orders-tuning`, "key Ctrl+K", "type orders", "await Database orders", "key Enter", "click Delete…").and(`Secret orders-login`), k9s: none("no dependents of custom resources"), headlamp: none("its map has owners, one kind at a time")},
		{words: "Which objects refer to this ConfigMap?", console: to(`Deployment api in shop spec.*configMapRef.name`, "key Ctrl+K", "type settings"), k9s: to(`shop api apps/v1/deployments`, "enter :cm shop", "await configmaps", "enter /settings", "await configmaps\\(shop\\)\\[1\\]", "key u"), headlamp: none("its map knows volumes only")},
		{words: "Which objects belong to this Deployment, as a drawing or tree?", console: to(`ReplicaSet.*Pod`, "click Deployments", "click web", "click Graph"), k9s: to(`web\(1\) \[0/5.*web-7c5-x`, "enter :xray deploy shop"), headlamp: to(`web-7c5`, "click Map", "click Filter", "type shop", "click shop", "click Expand All")},
		{words: "What are the last lines of the log?", console: to(`first line of`, "click Pods", "click api-7c5-x", "click Logs"), k9s: to(`line of /containerLogs`, "enter /api", "await pods\\(all\\)\\[1\\]", "key l"), headlamp: to(`first line of`, "click Workloads", "click Pods", "click api-7c5-x", "click Show Logs")},
		{words: "Which field manager owns spec.replicas?", console: to(`autoscaler .{0,25}replicas : 5`, "click Deployments", "click web", "click YAML"), k9s: to(`f:replicas: \{\} .{0,5}manager: autoscaler`, "enter :deploy", "await deployments", "enter /web", "await deployments\\(all\\)\\[1\\]", "key y", "await apiVersion", "key m"), headlamp: to(`f:replicas .{0,30}manager : autoscaler`, "click Workloads", "click Deployments", "click web", "click Edit", "click Hide Managed Fields")},
		{words: "Which user changed spec.replicas, and from which value?", console: to(`patched by bob \(autoscaler\).*spec.replicas 3 → 5`, "click Deployments", "click web", "click Changes"), k9s: none("no history"), headlamp: none("no history")},
		{words: "Which user deleted this ConfigMap, and which values did it have?", console: to(`beta ?: enabled-for-all`, "click All changes", "await Leases and Events", "key /", "type flags", "await ConfigMap flags in shop deleted by bob", "click flags", "click YAML"), k9s: none("no history"), headlamp: none("no history")},
		{words: "Which objects of a namespace changed last?", console: to(`ConfigMap flags in shop deleted`, "click Namespace of lists", "enter shop", "click All changes"), k9s: none("no history"), headlamp: none("no history")},
	}
}

// changing returns questions after changes by the user.
func changing() []question {
	return []question{
		{words: "Scale a Deployment", console: to(`Scaled`, "click Deployments", "click api", "click Scale…", "fill Replicas = 2", "click Scale"), k9s: to(`scaled successfully`, "enter :deploy", "await deployments", "enter /api", "await deployments\\(all\\)\\[1\\]", "key s", "await Scale deployment", "key BSpace", "enter 3", "key Enter"), headlamp: to(`Scaled`, "click Workloads", "click Deployments", "click api", "click Scale", "click Increment", "click Apply")},
		{words: "Edit a field with a wrong value, and read the error", console: to(`spec.replicas: Invalid value: -5: must be greater than or equal to 0`, "click Deployments", "click web", "click Edit", "replace replicas: 5 => replicas: -5"), k9s: to(`spec.replicas: Invalid value: -5: must be greater than or equal to 0`, "enter :deploy", "await deployments", "enter /web", "await deployments\\(all\\)\\[1\\]", "key e", "await apiVersion", "enter :%s/replicas: 5/replicas: -5/", "enter :wq"), headlamp: to(`Invalid value`, "click Workloads", "click Deployments", "click web", "click Edit", "replace replicas: 5 => replicas: -5", "click Save & Apply")},
		{words: "Create an object (k9s: from a file that exists)", console: to(`ConfigMap fresh created`, "click ConfigMaps", "click New", "replace name: example => name: fresh", "click Save"), k9s: to(`configmap/fresh created`, "enter :dir MANIFESTS", "await fresh.yaml", "key a"), headlamp: to(`fresh`, "click Create", `replace # Enter your YAML or JSON here => {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fresh", "namespace": "default"}}`, "click Apply")},
		{words: "Read a Secret in clear text", console: to(`swordfish`, "click Secret", "click orders-login", "click YAML", "click Show the values"), k9s: to(`password: swordfish`, "enter :secrets shop", "await secrets", "enter /orders", "await secrets\\(shop\\)\\[1\\]", "key x"), headlamp: to(`swordfish`, "click Configuration", "click Secrets", "click orders-login", "click toggle field visibility")},
		{words: "Restart a Deployment", console: to(`Saved`, "click Deployments", "click api", "click Restart…", "click Restart"), k9s: to(`Restart in progress`, "enter :deploy", "await deployments", "enter /api", "await deployments\\(all\\)\\[1\\]", "key r", "await Confirm Restart", "key Tab", "key Enter"), headlamp: to(`Restarted`, "click Workloads", "click Deployments", "click api", "click Restart", "click Restart")},
		{words: "Cordon a Node", console: to(`Saved`, "click Cluster", "click Node", "click node", "click Cordon…", "click Cordon"), k9s: to(`SchedulingDisabled`, "enter :node", "await nodes", "key c", "await Cordon node", "key Tab", "key Enter"), headlamp: to(`Cordoned`, "click Nodes", "click node", "click Cordon")},
	}
}

// rules returns questions after rights, webhooks and schemas.
func rules() []question {
	return []question{
		{words: "Which users may delete Secrets?", console: to(`jane User everywhere`, "click Rights", "fill verb = delete", "click Show"), k9s: none("one user at a time"), headlamp: none("bindings by hand")},
		{words: "Which rights does this user have?", console: to(`get, delete secrets|secret-keeper`, "click Rights", "fill name or namespace:name = jane", "enter"), k9s: to(`secrets core CR:secret-keeper`, "enter :can u:jane"), headlamp: none("bindings by hand")},
		{words: "Which webhooks see Pods?", console: to(`validating webhook image-policy: images.example.com`, "click Pods", "click About"), k9s: none("each configuration by hand"), headlamp: none("each configuration by hand")},
		{words: "What does the field spec.size of this custom resource mean?", console: to(`Gigabytes of the volume`, "key Ctrl+K", "type database", "await databases.example.com", "key Enter", "click About", "await Names databases", "key /", "type size"), k9s: to(`Gigabytes of the volume`, "enter :crd", "await customresourcedefinitions", "enter /databases", "await \\[1\\]", "key y", "await apiVersion"), headlamp: to(`Gigabytes`, "click Custom Resources", "click databases.example.com", "click Edit", "scroll Gigabytes")},
		{words: "Switch to another context", console: to(`spare.*What are you looking for`, "choose Context = spare"), k9s: to(`Context: spare`, "enter :ctx spare"), headlamp: to(`Only warnings`, "key /", "type spare", "click spare").and(`spare`).but(`[^+]anykind`)},
	}
}
