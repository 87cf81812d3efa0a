package gate

// Gates that change this server, besides those of fields in the tables of kinds.
const (
	APIResponseCompression                       Name = "APIResponseCompression"
	AuthorizePodWebsocketUpgradeCreatePermission Name = "AuthorizePodWebsocketUpgradeCreatePermission"
	CBORServingAndStorage                        Name = "CBORServingAndStorage"
	CSIVolumeHealth                              Name = "CSIVolumeHealth"
	ClearingNominatedNodeNameAfterBinding        Name = "ClearingNominatedNodeNameAfterBinding"
	ConstrainedImpersonation                     Name = "ConstrainedImpersonation"
	CrossNamespaceVolumeDataSource               Name = "CrossNamespaceVolumeDataSource"
	HPAScaleToZero                               Name = "HPAScaleToZero"
	InPlacePodLevelResourcesVerticalScaling      Name = "InPlacePodLevelResourcesVerticalScaling"
	InPlacePodVerticalScalingMemoryBackedVolumes Name = "InPlacePodVerticalScalingMemoryBackedVolumes"
	KubeletInUserNamespace                       Name = "KubeletInUserNamespace"
	MutablePodResourcesForSuspendedJobs          Name = "MutablePodResourcesForSuspendedJobs"
	MutableSchedulingDirectivesForSuspendedJobs  Name = "MutableSchedulingDirectivesForSuspendedJobs"
	PodDeletionCost                              Name = "PodDeletionCost"
	PodTopologyLabelsAdmission                   Name = "PodTopologyLabelsAdmission"
	ServiceAccountNodeAudienceRestriction        Name = "ServiceAccountNodeAudienceRestriction"
	ShardedListAndWatch                          Name = "ShardedListAndWatch"
	StatefulSetRecreateStrategy                  Name = "StatefulSetRecreateStrategy"
	TaintTolerationComparisonOperators           Name = "TaintTolerationComparisonOperators"
	TokenRequestServiceAccountUIDValidation      Name = "TokenRequestServiceAccountUIDValidation"
	UserNamespacesHostNetworkSupport             Name = "UserNamespacesHostNetworkSupport"
)
