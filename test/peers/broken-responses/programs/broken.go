// Arguments and output: test/peers/broken-responses/clients.ts.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	for _, path := range os.Args[3:] {
		bytes, err := read(os.Args[2] + path)
		text := ""
		if err != nil {
			text = err.Error()
		}
		line, _ := json.Marshal(map[string]any{"path": path, "bytes": bytes, "error": text})
		fmt.Println(string(line))
	}
}

func read(url string) (int64, error) {
	response, err := http.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}
