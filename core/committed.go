package core

// Watermarks are those of the last committed batch, by side: what they allow to come out has come (rules 10, 16, 17). Before
// the first batch they are far in the past, after a drain far in the future. Called between batches by the engine's goroutine,
// or after Run.
func (e *Engine) Watermarks() [2]int64 { return e.wm }
