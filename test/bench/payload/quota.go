package payload

// Quota is a quota of the kind in a namespace with a limit out of reach, and the status patch that
// sets its usage to zero.
func (k Kind) Quota(namespace string) (quota, status []byte) {
	name := "count/" + Plural + "." + k.Group
	hard := object{name: "1000000"}
	return encode(object{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": "objects", "namespace": namespace},
		"spec": object{"hard": hard},
	}), encode(object{"status": object{"hard": hard, "used": object{name: "0"}}})
}
