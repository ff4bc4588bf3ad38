// Package document reads YAML and JSON files strictly: what each value has to be, and
// every problem with its line.
package document

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
	Path string // servers.github.args[0]; "" for the file as a whole
	What string // what is wrong (what would be right)
}

// String returns "FILE:LINE: path: what".
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.What)
}

// Problems are all that is wrong with some files, in the order of files and lines.
type Problems []Problem

// Error returns one problem a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// A Report collects what is found in files. It and the Values that were read into it are
// for one goroutine.
type Report struct {
	order    map[string]int // files as they were read
	errors   Problems
	warnings Problems
}

// NewReport returns an empty report.
func NewReport() *Report { return &Report{order: map[string]int{}} }

// Wrong adds what no Value stands for: see Problem. A line below 1 counts as 1.
func (r *Report) Wrong(file string, line int, path, what string) {
	r.errors = append(r.errors, Problem{file, max(line, 1), path, what})
}

// Warn is Wrong for what somebody should look at.
func (r *Report) Warn(file string, line int, path, what string) {
	r.warnings = append(r.warnings, Problem{file, max(line, 1), path, "warning: " + what})
}

// Problems returns everything, warnings included, if anything is wrong, and nil if not.
func (r *Report) Problems() Problems {
	if len(r.errors) == 0 {
		return nil
	}
	return r.sorted(slices.Concat(r.errors, r.warnings))
}

// Warnings returns the warnings.
func (r *Report) Warnings() Problems { return r.sorted(slices.Clone(r.warnings)) }

// sorted returns found in reading order, each problem once, cut to maxProblems.
func (r *Report) sorted(found Problems) Problems {
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
