//go:build !linux

package pipeline

import "time"

func nap(d time.Duration) { time.Sleep(d) }
