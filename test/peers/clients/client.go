// Calls of net/http. Arguments and output: test/peers/client-stacks/client-program.ts.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
)

type line struct {
	Cell   string `json:"cell"`
	Event  string `json:"event,omitempty"`
	Bytes  int64  `json:"bytes"`
	Sha256 string `json:"sha256,omitempty"`
	Error  string `json:"error,omitempty"`
}

func report(l line) {
	text, _ := json.Marshal(l)
	fmt.Println(string(text))
}

// The default transport reads http_proxy.
func call(client *http.Client, method, url string, body io.Reader, read func(io.Reader) error) error {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if file, ok := body.(*os.File); ok {
		about, err := file.Stat()
		if err != nil {
			return err
		}
		request.ContentLength = about.Size()
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return read(response.Body)
}

func readEvents(body io.Reader) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if event := strings.TrimPrefix(lines.Text(), "data: "); event != lines.Text() {
			report(line{Cell: "sse", Event: event})
		}
	}
	return lines.Err()
}

func runCell(client *http.Client, base, folder, cell string) (line, error) {
	hash := sha256.New()
	var received int64
	digest := func(body io.Reader) error {
		n, err := io.Copy(hash, body)
		received += n
		return err
	}
	get := func(path string) error { return call(client, "GET", base+"/"+path, nil, digest) }
	var err error
	switch cell {
	case "sse":
		err = call(client, "GET", base+"/sse", nil, readEvents)
	case "keep-alive":
		for i := 0; i < 5 && err == nil; i++ {
			err = get(cell)
		}
	case "cookies":
		for _, path := range []string{"a/login", "b/login", "a/account", "b/account"} {
			if err == nil {
				err = get(path)
			}
		}
	case "post":
		content, failed := os.ReadFile(filepath.Join(folder, cell))
		if failed != nil {
			return line{}, failed
		}
		err = call(client, "POST", base+"/"+cell, bytes.NewReader(content), digest)
	case "up":
		file, failed := os.Open(filepath.Join(folder, cell))
		if failed != nil {
			return line{}, failed
		}
		err = call(client, "POST", base+"/"+cell, file, digest)
	default:
		err = get(cell)
	}
	return line{Cell: cell, Bytes: received, Sha256: hex.EncodeToString(hash.Sum(nil))}, err
}

func main() {
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	for _, cell := range os.Args[4:] {
		result, err := runCell(client, os.Args[2], os.Args[3], cell)
		if err != nil {
			result = line{Cell: cell, Error: err.Error()}
		}
		report(result)
	}
}
