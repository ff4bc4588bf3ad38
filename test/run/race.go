//go:build race

package run

import "time"

// race says that the command is built as the tests are: with the race detector.
const race = true

// Soon is what counts as "at once".
const Soon = 25 * time.Second
