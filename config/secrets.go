package config

import (
	"regexp"
	"strings"
)

// Passwords are in the configuration, and what is wrong with one is shown to people and kept in logs. So a line that may hold
// a password is in no excerpt: each line that has the word before a colon, and all that stands below sasl, whatever the words
// there are meant to be. This goes by the text, since a file that is no YAML has nothing else.

var (
	passwordLine = regexp.MustCompile(`(?i)pass[a-z]*["']?\s*:|secret[a-z]*["']?\s*:`)
	saslLine     = regexp.MustCompile(`(^|[\s{,"'])sasl["']?\s*:`)
)

const secretText = "***" // what is printed for a value that is not shown

// hasSecrets says whether a group of keys, with its dot, holds a value that must not be shown.
func hasSecrets(prefix string) bool { return strings.HasPrefix(prefix, "kafka.sasl.") }

// secretLines are the lines, from 1, that may hold a password.
func secretLines(lines []string) map[int]bool {
	hide := map[int]bool{}
	below := -1 // the indentation of sasl
	for i, line := range lines {
		text := strings.TrimLeft(line, " \t")
		indent := len(line) - len(text)
		if below >= 0 && text != "" && indent <= below && !strings.HasPrefix(text, "}") {
			below = -1
		}
		if below < 0 && saslLine.MatchString(line) {
			below = indent
		}
		if below >= 0 || passwordLine.MatchString(line) {
			hide[i+1] = true
		}
	}
	return hide
}

// secretLeaf is a value that is not shown, neither by Print nor in a message.
func secretLeaf(key string, p *string) leaf {
	return leaf{
		key: key,
		get: func() string {
			if *p == "" {
				return ""
			}
			return quote(secretText)
		},
		set: func(n node) error {
			if n.kind != scalarNode {
				return n.errorf("%s is not a single value", key)
			}
			*p = n.text
			return nil
		},
	}
}
