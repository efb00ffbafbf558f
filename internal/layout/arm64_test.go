package layout

import (
	"os"
	"os/exec"
	"testing"
)

// TestBuildsForArm64: B66. All that has no C in it builds for another architecture. (make lint lets go vet look at it too.)
func TestBuildsForArm64(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles everything")
	}
	cmd := exec.Command("go", "build", "-o", os.DevNull, "./...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
