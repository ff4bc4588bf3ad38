//go:build !race

package run

import "time"

// race says that the command is built as the tests are: with the race detector.
const race = false

// Soon is what counts as "at once" on a busy machine.
const Soon = 5 * time.Second
