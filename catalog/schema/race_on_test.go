//go:build race

package schema_test

// slow is how much longer everything may take: the race detector is watching.
const slow = 10
