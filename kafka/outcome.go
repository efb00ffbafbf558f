package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// What an error of a broker means for who goes on.
var (
	// ErrFatal is wrapped by errors that trying again does not mend: a right that is missing, a topic that is gone, a setting that
	// the broker refuses.
	ErrFatal = errors.New("not to be mended by trying again")
	// ErrFenced is wrapped by errors that say that a younger producer has the transactional id, or that the transaction took
	// longer than its timeout: brokers do not tell the two apart.
	ErrFenced = errors.New("fenced")
	// ErrNotMember is wrapped by errors that say that the group does not know this member any more, or is about to share out its
	// partitions anew.
	ErrNotMember = errors.New("no longer this member of the group")
)

// meaning says what codes mean that are more than "try again".
var meaning = map[*kerr.Error]error{
	kerr.TransactionalIDAuthorizationFailed: ErrFatal,
	kerr.TopicAuthorizationFailed:           ErrFatal,
	kerr.GroupAuthorizationFailed:           ErrFatal,
	kerr.ClusterAuthorizationFailed:         ErrFatal,
	kerr.SaslAuthenticationFailed:           ErrFatal,
	kerr.UnsupportedSaslMechanism:           ErrFatal,
	kerr.IllegalSaslState:                   ErrFatal,
	kerr.UnsupportedVersion:                 ErrFatal,
	kerr.InvalidTransactionTimeout:          ErrFatal,
	kerr.InvalidTopicException:              ErrFatal,
	kerr.UnknownTopicOrPartition:            ErrFatal,
	kerr.UnknownTopicID:                     ErrFatal,
	kerr.InvalidTimestamp:                   ErrFatal,
	kerr.InvalidSessionTimeout:              ErrFatal,
	kerr.InconsistentGroupProtocol:          ErrFatal,
	kerr.PolicyViolation:                    ErrFatal,
	kerr.InvalidConfig:                      ErrFatal,
	kerr.ProducerFenced:                     ErrFenced,
	kerr.InvalidProducerEpoch:               ErrFenced,
	kerr.IllegalGeneration:                  ErrNotMember,
	kerr.UnknownMemberID:                    ErrNotMember,
	kerr.RebalanceInProgress:                ErrNotMember,
	kerr.FencedInstanceID:                   ErrNotMember,
	kerr.StaleMemberEpoch:                   ErrNotMember,
	kerr.GroupIDNotFound:                    ErrNotMember,
}

// hints say what to do about a code, where its name does not.
var hints = map[*kerr.Error]string{
	kerr.InvalidTransactionTimeout: "the broker allows shorter transactions only: raise its transaction.max.timeout.ms",
	kerr.InvalidSessionTimeout:     "the broker allows no such --session-timeout: see its group.min.session.timeout.ms and group.max.session.timeout.ms",
	kerr.InvalidTimestamp:          "the event time of a result is too far from the broker's clock for the topic: raise message.timestamp.after.max.ms and message.timestamp.before.max.ms of the topic",
	kerr.UnknownTopicOrPartition:   "the topic is not there (any more)",
	kerr.UnknownTopicID:            "the topic was deleted and made anew",
}

// explain adds to an error of a broker what it means.
func explain(err error) error {
	var code *kerr.Error
	if !errors.As(err, &code) {
		return err
	}
	if hint := hints[code]; hint != "" {
		err = fmt.Errorf("%s: %w", hint, err)
	}
	if m := meaning[code]; m != nil {
		return &outcome{err, m}
	}
	return err
}

// outcome is an error with its meaning; the text is the error's.
type outcome struct{ err, meaning error }

func (o *outcome) Error() string   { return o.err.Error() }
func (o *outcome) Unwrap() []error { return []error{o.err, o.meaning} }
