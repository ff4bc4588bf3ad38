package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of what is read.
const (
	maxFiles     = 1000 // of all folders
	maxFileBytes = 4 << 20
)

// Find returns where the configuration is: what the --config flags say, else
// $MAINSTEM_CONFIG, else ./mainstem.yaml, else mainstem/mainstem.yaml in the
// user's folder of configurations.
func Find(flag []string, env func(string) (string, bool)) ([]string, error) {
	if len(flag) > 0 {
		return flag, nil
	}
	if path, _ := env("MAINSTEM_CONFIG"); path != "" {
		return []string{path}, nil
	}
	tried := []string{"mainstem.yaml"}
	if dir, err := userDir(env, "XDG_CONFIG_HOME", ".config"); err == nil {
		tried = append(tried, filepath.Join(dir, "mainstem", "mainstem.yaml"))
	}
	for _, path := range tried {
		// Anything but absence is for Load to report: a file that cannot be read is not passed over.
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			return []string{path}, nil
		}
	}
	return nil, fmt.Errorf("configuration: none at %s (write one, or name it with --config or $MAINSTEM_CONFIG)", strings.Join(tried, " or "))
}

// userDir is the folder that variable names, or below in the home folder. The XDG
// rules have relative values ignored.
func userDir(env func(string) (string, bool), variable, below string) (string, error) {
	if dir, _ := env(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := homeDir(env)
	return filepath.Join(home, below), err
}

// files lists the files that paths mean, each once, in reading order.
func (l *loader) files(paths []string) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if clean := filepath.Clean(name); !seen[clean] {
			seen[clean] = true
			names = append(names, name)
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		if !info.IsDir() {
			add(path)
			continue
		}
		below, err := l.folder(path)
		if err != nil {
			return nil, err
		}
		for _, name := range below {
			add(name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("configuration: no file named")
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("configuration: %d files (at most %d)", len(names), maxFiles)
	}
	return names, nil
}

// folder lists the *.yaml and *.json of dir in name order, hidden ones left out.
func (l *loader) folder(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		switch info, err := os.Stat(name); { // a link to a file is a file
		case err != nil:
			return nil, fmt.Errorf("configuration: %w", err)
		case info.IsDir():
			continue
		}
		switch filepath.Ext(e.Name()) {
		case ".yaml", ".json":
			names = append(names, name)
		case ".yml":
			l.report.Warn(name, 1, "", "not read: of a folder only *.yaml and *.json count (rename it)")
		}
	}
	if names == nil {
		return nil, fmt.Errorf("configuration: %s: no *.yaml or *.json in this folder", dir)
	}
	return names, nil
}

// read returns the content of a file, which may be a pipe.
func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("configuration: %s: larger than %d bytes", name, maxFileBytes)
	}
	return data, nil
}

// othersCanRead reports whether every user of this machine can read the file.
func othersCanRead(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}
