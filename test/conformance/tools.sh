# Sourced by run.sh. Keeps Node 24 and exact versions of npm packages in one folder, which may be deleted at any time.
#
#   need_node             sets NODE; installs Node 24 if there is none on PATH
#   need_npm NAME PKG…    installs PKG… once and prints the folder that holds node_modules

NODE_VERSION=24.22.3
TOOLS=${XDG_CACHE_HOME:-$HOME/.cache}/mainstem-test

need_node() {
	NODE=$(command -v node || true)
	if [ -n "$NODE" ] && [ "$("$NODE" -p 'process.versions.node.split(".")[0]')" -ge 24 ]; then
		return
	fi
	local arch
	case $(uname -m) in
	x86_64) arch=x64 ;;
	aarch64) arch=arm64 ;;
	*) echo "Node 24 is needed on PATH: there is no package of it for $(uname -m)" >&2 && return 1 ;;
	esac
	NODE=$(need_npm node "node-linux-$arch@$NODE_VERSION")/node_modules/node-linux-$arch/bin/node
}

need_npm() {
	local name=$1 folder
	shift
	folder=$TOOLS/$name-$(printf '%s\n' "$@" | cksum | cut -d' ' -f1)
	if [ ! -e "$folder/complete" ]; then
		mkdir -p "$TOOLS"
		( # one at a time: whoever had to wait finds it done
			flock 9
			if [ ! -e "$folder/complete" ]; then
				echo "installing $*" >&2
				rm -rf "$folder" && mkdir "$folder" && cd "$folder" && echo '{"private": true}' >package.json &&
					npm install --no-audit --no-fund --ignore-scripts --save-exact --loglevel=error "$@" >&2 &&
					touch complete
			fi
		) 9>"$TOOLS/lock" || return
	fi
	echo "$folder"
}
