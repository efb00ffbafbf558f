// Package config is the configuration of a join: what it means, where each value came from, and what is
// wrong with it.
//
// What comes in: the text of a join.yaml or of a run profile, the environment, and flags. What goes out: a
// *Join (or *Profile) whose fields the other packages read, and errors that name the key, the line and the
// nearest right word.
//
//  1. Default gives every key its value; Parse lays a file over it (ParseProfile does the same with a file
//     that holds the join under "join:" and the generator's settings under "load:").
//  2. ApplyEnv lays JOINBENCH_* over that, Set lays a flag over that. So the order is default < file < env
//     < flag, and it is the caller who calls in this order.
//  3. Validate names every fault that is left: missing keys, and combinations that cannot work (rule 13).
//  4. Spread and Width give what "auto" stands for; Print writes the effective configuration, each value
//     with its origin, in a form that Parse reads back.
//
// Nothing is ignored. An unknown key, an unknown value, a number without its unit, a YAML feature that is not
// understood and a value that only a later build supports are each an *Error, which commands turn into exit
// code 2. All keys live in one table (keys.go): reading, flags, environment, checking, printing and the
// suggestions are made from it, so a key that is read is also printed and can also be set by a flag.
//
// A Join belongs to one goroutine until it is validated; from then on any number may read it. The package
// starts no goroutine, opens no file and keeps none of the bytes it is given.
package config
