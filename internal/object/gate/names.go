package gate

// Gates that change this server, besides those of fields in the tables of kinds.
const (
	CBORServingAndStorage                        Name = "CBORServingAndStorage"
	ClearingNominatedNodeNameAfterBinding        Name = "ClearingNominatedNodeNameAfterBinding"
	CrossNamespaceVolumeDataSource               Name = "CrossNamespaceVolumeDataSource"
	HPAScaleToZero                               Name = "HPAScaleToZero"
	InPlacePodLevelResourcesVerticalScaling      Name = "InPlacePodLevelResourcesVerticalScaling"
	InPlacePodVerticalScalingMemoryBackedVolumes Name = "InPlacePodVerticalScalingMemoryBackedVolumes"
	KubeletInUserNamespace                       Name = "KubeletInUserNamespace"
	MutablePodResourcesForSuspendedJobs          Name = "MutablePodResourcesForSuspendedJobs"
	MutableSchedulingDirectivesForSuspendedJobs  Name = "MutableSchedulingDirectivesForSuspendedJobs"
	PodDeletionCost                              Name = "PodDeletionCost"
	PodTopologyLabelsAdmission                   Name = "PodTopologyLabelsAdmission"
	ShardedListAndWatch                          Name = "ShardedListAndWatch"
	StatefulSetRecreateStrategy                  Name = "StatefulSetRecreateStrategy"
	TaintTolerationComparisonOperators           Name = "TaintTolerationComparisonOperators"
	UserNamespacesHostNetworkSupport             Name = "UserNamespacesHostNetworkSupport"
)
