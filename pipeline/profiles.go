package pipeline

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"joinbench/config"
)

//go:embed profiles/*.yaml
var profileFiles embed.FS

// Profiles lists the run profiles that are built in.
func Profiles() []string {
	files, _ := fs.Glob(profileFiles, "profiles/*.yaml") // the pattern is well formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "profiles/"), ".yaml")
	}
	slices.Sort(files)
	return files
}

// Profile reads a built-in run profile. The error is a *config.Error.
func Profile(name string) (*config.Profile, error) {
	data, err := profileFiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		return nil, &config.Error{Faults: []config.Fault{{Key: "--profile", Message: fmt.Sprintf("unknown profile %q (there are: %s; --config takes a file of your own)",
			name, strings.Join(Profiles(), ", "))}}}
	}
	return config.ParseProfile(data, "profile "+name)
}
