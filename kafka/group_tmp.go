package kafka

type GroupMetadata struct {
	Group, MemberID string
	Generation      int32
	InstanceID      *string
}
