package config

// ParseRate reads events a second: a number with k, M or G, and "/s" if you like, for example 500k/s, 2M or 347.2.
func ParseRate(s string) (float64, error) { return parseRate(s) }
