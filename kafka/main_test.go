package kafka

import (
	"os"
	"testing"

	"joinbench/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Check(m.Run(), nil)) }
