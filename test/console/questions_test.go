package console

// A question is one of everyday, with the way of each program to its answer.
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
		{words: "Which Deployments are not ready?", console: to(`web 0/5`, "click Deployments")},
		{words: "Where is the object `checkout`?", console: to(`Service checkout in shop`, "key Ctrl+K", "type checkout")},
		{words: "Which objects of any kind mention this image?", console: to(`Deployment web in shop`, "key Ctrl+K", "type registry.example/web").and(`Pod web-7c5-x in shop`)},
		{words: "Which custom resource has this host in its spec?", console: to(`Database orders in shop spec.host`, "key Ctrl+K", "type db-17")},
		{words: "Which Pods carry the label app=web?", console: to(`web-7c5-x`, "click Pods", "click Label selector", "type app=web").but(`api-7c5-x`)},
		{words: "Which Pod has the most restarts?", console: to(`web-7c5-x.*api-7c5-x`, "click Pods", "click Restarts", "click Restarts ↑")},
		{words: "Which Deployments have spec.replicas > 1?", console: to(`web 0/5`, "click Deployments", "click CEL: object.spec…", "type object.spec.replicas > 1").but(`api 1/1`)},
		{words: "Which is the last of 7,000 ConfigMaps?", console: to(`zoo animal-06999`, "click ConfigMaps", "await ● live", "key End")},
	}
}

// reasons returns questions after reasons and the past.
func reasons() []question {
	return []question{
		{words: "Why is this Deployment not ready?", console: to(`ConfigMap web-settings does not exist`, "click Deployments", "click web")},
		{words: "Which events are about this Pod?", console: to(`Warning Failed ×3`, "click Pods", "click web-7c5-x")},
		{words: "Why is this namespace still Terminating?", console: to(`example.com/hold`, "click Cluster", "click namespaces", "click old")},
		{words: "Which objects does the deletion of this custom resource take along?", console: to(`ConfigMap orders-tuning`, "key Ctrl+K", "type orders", "await Database orders", "key Enter", "click Delete…").and(`Secret orders-login`)},
		{words: "Which objects refer to this ConfigMap?", console: to(`Deployment api in shop spec.*configMapRef.name`, "key Ctrl+K", "type settings")},
		{words: "Which objects belong to this Deployment, as a drawing or tree?", console: to(`ReplicaSet.*Pod`, "click Deployments", "click web", "click Graph")},
		{words: "What are the last lines of the log?", console: to(`first line of`, "click Pods", "click api-7c5-x", "click Logs")},
		{words: "Which field manager owns spec.replicas?", console: to(`autoscaler .{0,25}replicas : 5`, "click Deployments", "click web", "click YAML")},
		{words: "Which user changed spec.replicas, and from which value?", console: to(`patched by bob \(autoscaler\).*spec.replicas 3 → 5`, "click Deployments", "click web", "click Changes")},
		{words: "Which user deleted this ConfigMap, and which values did it have?", console: to(`beta ?: enabled-for-all`, "click Changes", "await Leases and Events", "key /", "type flags", "await ConfigMap flags in shop deleted by bob", "click flags", "click YAML")},
		{words: "Which objects of a namespace changed in the last minutes?", console: to(`ConfigMap flags in shop deleted`, "click Namespace", "enter shop", "click Changes")},
	}
}

// changing returns questions after changes by the user.
func changing() []question {
	return []question{
		{words: "Scale a Deployment", console: to(`Saved`, "click Deployments", "click api", "click Form", "fill replicas = 2", "click Save")},
		{words: "Edit a field with a wrong value, and read the error", console: to(`spec.replicas: Invalid value: -5: must be greater than or equal to 0`, "click Deployments", "click web", "click Edit", "replace replicas: 5 => replicas: -5")},
		{words: "Create an object", console: to(`ConfigMap fresh created`, "click ConfigMaps", "click New", "replace name: example => name: fresh", "click Save")},
		{words: "Read a Secret in clear text", console: none("base64 only")},
		{words: "Restart a Deployment", console: none("an annotation in the editor")},
		{words: "Cordon a Node", console: to(`Saved`, "click Cluster", "click Node", "click node", "click Edit", `replace spec: => spec:\n  unschedulable: true`, "click Save")},
	}
}

// rules returns questions after rights, webhooks and schemas.
func rules() []question {
	return []question{
		{words: "Which users may delete Secrets?", console: to(`jane User everywhere`, "click Rights", "fill verb = delete", "click Show")},
		{words: "Which rights does this user have?", console: none("own rights only")},
		{words: "Which webhooks see Pods?", console: to(`validating webhook image-policy: images.example.com`, "click Pods", "click About")},
		{words: "What does the field spec.size of this kind mean?", console: to(`Gigabytes of the volume`, "key Ctrl+K", "type database", "await databases.example.com", "key Enter", "click About", "await Names databases", "key /", "type size")},
		{words: "Switch to another context", console: to(`spare.*What are you looking for`, "choose Context = spare")},
	}
}
