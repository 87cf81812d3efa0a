package gate

// Gates that change this server.
const (
	CBORServingAndStorage          Name = "CBORServingAndStorage"
	CrossNamespaceVolumeDataSource Name = "CrossNamespaceVolumeDataSource"
)
