package payload

// Quota is a quota of the kind in a namespace, which nobody reaches, and the patch that says that nothing
// is used of it.
func (k Kind) Quota(namespace string) (quota, status []byte) {
	name := "count/" + Plural + "." + k.Group
	hard := object{name: "1000000"}
	return encode(object{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": "objects", "namespace": namespace},
		"spec": object{"hard": hard},
	}), encode(object{"status": object{"hard": hard, "used": object{name: "0"}}})
}
