package core

import "errors"

// Change is what one batch did to one ring of one task: a journal record (buckets' format).
type Change struct {
	Task    int
	Space   byte
	Journal []byte
}

// Ledger is a Sink whose word comes before the state's (rule 24). Its methods are called by the engine's goroutine.
type Ledger interface {
	Sink
	// Settle makes the outputs of batch n, its changes and its commit record certain, all of them or none. The bytes are
	// valid until it returns. ErrAborted (wrapped): nothing of it happened: the engine undoes the batch, Run returns an
	// error that wraps ErrAborted, and the caller goes back with Engine.Rewind.
	Settle(n uint64, changes []Change, record []byte) error
	// Kept is called once the state has the batch on disk (at-least-once: the offsets may be committed now).
	Kept(n uint64) error
}

// ErrAborted is what a Ledger answers when nothing of a batch happened.
var ErrAborted = errors.New("the batch was aborted")
