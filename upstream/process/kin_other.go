//go:build unix && !linux

package process

import (
	"errors"
	"os"
	"syscall"
)

// members knows the group only, as one member with a negative number, which kill understands.
func (k kin) members() []int {
	if err := syscall.Kill(-k.leader, 0); err != nil && err != syscall.EPERM {
		return nil
	}
	return []int{-k.leader}
}

func pipeName(*os.File) (string, bool) { return "", false }

func reopen(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }
