package gate

// Gates that change this server, besides those of fields in the tables of kinds.
const (
	CBORServingAndStorage          Name = "CBORServingAndStorage"
	CrossNamespaceVolumeDataSource Name = "CrossNamespaceVolumeDataSource"
	ShardedListAndWatch            Name = "ShardedListAndWatch"
)
