//go:build !race

package schema_test

// slow is how much longer everything may take.
const slow = 1
