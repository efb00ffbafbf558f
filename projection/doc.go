// Package projection turns raw records into what the join needs of them.
package projection
