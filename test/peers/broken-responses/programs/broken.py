"""Arguments and output: test/peers/broken-responses/clients.ts."""

import http.client
import json
import sys
import urllib.request
from urllib.parse import urlsplit

import requests

variant, base, *paths = sys.argv[1:]


def parts_of(url):
    if variant == "requests":
        yield from requests.get(url, stream=True).raw.stream(65536)
        return
    if variant == "http.client":
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.request("GET", urlsplit(url).path)
        response = connection.getresponse()
    else:
        response = urllib.request.urlopen(url)
    # With a size, http.client returns a short body without an error: applications read it whole.
    yield response.read()


for path in paths:
    count, error = 0, ""
    try:
        for part in parts_of(base + path):
            count += len(part)
    except http.client.IncompleteRead as thrown:
        count, error = len(thrown.partial), repr(thrown)
    except Exception as thrown:
        error = repr(thrown)
    print(json.dumps({"path": path, "bytes": count, "error": error}), flush=True)
