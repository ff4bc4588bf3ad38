//go:build !race

package run

// race says that the command is built as the tests are: with the race detector.
const race = false
