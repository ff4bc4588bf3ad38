package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds a report: nobody reads more, and a hostile file could ask for millions.
const maxProblems = 1000

// A Problem is one thing that is wrong with a file, or, if What starts with
// "warning: ", one thing that somebody should look at.
type Problem struct {
	File string
	Line int    // from 1
	Path string // mcpServers.github.transport; "" for the file as a whole
	What string // what is wrong (what would be right)
}

// String returns "FILE:LINE: path: what".
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.What)
}

// Problems are all that is wrong with a configuration, in the order of files and lines.
type Problems []Problem

// Error returns one problem a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// A report collects what Load finds.
type report struct {
	order    map[string]int // files as they were read
	errors   Problems
	warnings Problems
}

func (r *report) error(file string, line int, path, what string) {
	r.errors = append(r.errors, Problem{file, max(line, 1), path, what})
}

func (r *report) warn(file string, line int, path, what string) {
	r.warnings = append(r.warnings, Problem{file, max(line, 1), path, "warning: " + what})
}

// sorted returns found in reading order, each problem once, cut to maxProblems.
func (r *report) sorted(found Problems) Problems {
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(r.order[a.File], r.order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	found = slices.Compact(found)
	if over := len(found) - maxProblems; over > 0 {
		last := found[maxProblems-1]
		found = append(found[:maxProblems:maxProblems], Problem{last.File, last.Line, "", fmt.Sprintf("and %d more problems", over)})
	}
	return found
}
