package config

// Nearest returns the name that word most likely stood for, "" if none is near: for flags that take names.
func Nearest(word string, names []string) string { return nearest(word, names, nil) }

// ParseCount reads a whole number with a unit if it has one: 500, 500k, 10M, 1G.
func ParseCount(text string) (int64, error) { return parseCount(text) }
