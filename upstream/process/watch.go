//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// watchScript ends a family when its standard input ends without the word "done", which happens when we die in whatever way:
// the kernel closes our end of the pipe. Only the shell's own commands are used, so that nothing has to be found or started.
// What belongs to the family is decided as in kin; the pipe of the child's standard output is descriptor 3 here, and it alone
// identifies a child that was started in the instant of our death, before its number could be told.
const watchScript = `
trap '' HUP INT QUIT TERM PIPE
read -r sid
[ "$sid" = done ] && exit
read -r word && exit
[ -d /proc/self/fd ] || { kill -9 -- "-$sid"; exit; }
round=0
while [ $round -lt 50 ]; do
	round=$((round + 1)) all=' ' before=
	while [ "$all" != "$before" ]; do
		before=$all
		for dir in /proc/[0-9]*; do
			pid=${dir#/proc/} stat=
			case $all in *" $pid "*) continue ;; esac
			[ "$pid" = $$ ] && continue
			{ while read -r line; do stat=$stat$line; done <"$dir/stat"; } 2>/dev/null
			set -- ${stat##*)}
			case $1 in '' | Z | X) continue ;; esac
			case "$all" in *" $2 "*) all="$all$pid " && continue ;; esac
			if [ "$3" = "$sid" ] || [ "$4" = "$sid" ] || [ "$dir/fd/1" -ef /proc/$$/fd/3 ]; then
				all="$all$pid "
			fi
		done
	done
	[ "$all" = ' ' ] && exit
	kill -9 $all
done
`

// A watch is a shell that outlives us by the moment it takes to end one child's family. It is a process of its own because the
// kernel's own means (a signal at the parent's death) reaches the direct child only, and a wrapper's server would live on.
// It has its own session, so that what kills our process group leaves it alone.
type watch struct {
	cmd  *exec.Cmd
	life *os.File // closed with us
}

// startWatch starts the watcher of a child whose standard output we read from stdout.
func startWatch(stdout *os.File) (*watch, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path:        shell,
		Args:        []string{"sh", "-c", watchScript},
		Env:         []string{"LC_ALL=C"},
		Dir:         "/", // keeps no folder busy
		Stdin:       theirs,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if same, err := reopen(stdout); err == nil {
		defer same.Close()
		cmd.ExtraFiles = []*os.File{same}
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	return &watch{cmd, ours}, nil
}

// watch tells which child it is. Should the watcher be dead, the child runs without one.
func (w *watch) watch(pid int) { fmt.Fprintf(w.life, "%d\n", pid) }

// end lets the watcher go, and waits for it.
func (w *watch) end() {
	fmt.Fprintln(w.life, "done")
	w.life.Close()
	w.cmd.Wait()
}
