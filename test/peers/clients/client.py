"""Calls of requests, httpx, aiohttp and zeep. Arguments and output: test/peers/client-stacks/client-program.ts."""
import asyncio
import hashlib
import json
import os
import sys

STACK, BASE, FOLDER, *CELLS = sys.argv[1:]
COOKIE_PATHS = ["a/login", "b/login", "a/account", "b/account"]
KEPT_CALLS = 5


def report(**line):
    print(json.dumps(line), flush=True)


class Digest:
    def __init__(self):
        self.bytes = 0
        self.hash = hashlib.sha256()

    def add(self, chunk):
        self.bytes += len(chunk)
        self.hash.update(chunk)

    def line(self):
        return {"bytes": self.bytes, "sha256": self.hash.hexdigest()}


def content(cell):
    """A small body as bytes; a large one is read from its file while it is sent."""
    path = os.path.join(FOLDER, cell)
    if cell == "up":
        return open(path, "rb")
    with open(path, "rb") as file:
        return file.read()


def event_of(line):
    return line[len("data: "):] if line.startswith("data: ") else None


def with_requests():
    import requests

    session = requests.Session()

    def call(digest, path, method="GET", body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        with session.request(method, f"{BASE}/{path}", data=body, headers=headers, stream=True) as response:
            response.raise_for_status()
            for chunk in response.iter_content(65536):
                digest.add(chunk)

    def events():
        with session.get(f"{BASE}/sse", stream=True) as response:
            response.raise_for_status()
            yield from response.iter_lines(chunk_size=1, decode_unicode=True)

    return call, events


def with_httpx():
    import httpx

    client = httpx.Client(timeout=60)

    def pieces(file):
        while chunk := file.read(65536):
            yield chunk

    def call(digest, path, method="GET", body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        sent = pieces(body) if hasattr(body, "read") else body
        with client.stream(method, f"{BASE}/{path}", content=sent, headers=headers) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                digest.add(chunk)

    def events():
        with client.stream("GET", f"{BASE}/sse") as response:
            response.raise_for_status()
            yield from response.iter_lines()

    return call, events


def run_cell(cell, call, events):
    digest = Digest()
    if cell == "sse":
        for line in events():
            if event_of(line.strip()) is not None:
                report(cell=cell, event=event_of(line.strip()))
    elif cell == "keep-alive":
        for _ in range(KEPT_CALLS):
            call(digest, cell)
    elif cell == "cookies":
        for path in COOKIE_PATHS:
            call(digest, path)
    elif cell in ("post", "up"):
        call(digest, cell, "POST", content(cell))
    else:
        call(digest, cell)
    return digest.line()


async def run_aiohttp_cell(cell, session):
    digest = Digest()

    async def call(path, method="GET", body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        async with session.request(method, f"{BASE}/{path}", data=body, headers=headers) as response:
            response.raise_for_status()
            async for chunk in response.content.iter_any():
                digest.add(chunk)

    if cell == "sse":
        async with session.get(f"{BASE}/sse") as response:
            response.raise_for_status()
            async for line in response.content:
                event = event_of(line.decode().strip())
                if event is not None:
                    report(cell=cell, event=event)
    elif cell == "keep-alive":
        for _ in range(KEPT_CALLS):
            await call(cell)
    elif cell in ("post", "up"):
        await call(cell, "POST", content(cell))
    else:
        await call(cell)
    return digest.line()


async def main_aiohttp():
    import aiohttp

    # Without trust_env, aiohttp reads no proxy from the environment.
    async with aiohttp.ClientSession(trust_env=True) as session:
        for cell in CELLS:
            try:
                report(cell=cell, **await run_aiohttp_cell(cell, session))
            except Exception as error:
                report(cell=cell, error=f"{type(error).__name__}: {error}")


def run_zeep_cell(cell):
    """The envelopes as the transport sends and receives them; the service's address is set by the application."""
    import zeep
    from zeep.transports import Transport

    sent, received = Digest(), Digest()

    class Recording(Transport):
        def load(self, url):
            document = super().load(url)
            if cell == "get":
                received.add(document)
            return document

        def post(self, address, message, headers):
            sent.add(message)
            response = super().post(address, message, headers)
            received.add(response.content)
            return response

    description = "get" if cell == "get" else "wsdl"
    settings = zeep.Settings(xml_huge_tree=True)
    client = zeep.Client(f"{BASE}/{description}", transport=Recording(operation_timeout=60), settings=settings)
    if cell == "get":
        return received.line()
    service = client.create_service("{urn:quotes}QuotesBinding", f"{BASE}/{cell}")
    text = content(cell) if cell in ("post", "up") else b"x"
    text = text.read() if hasattr(text, "read") else text
    for _ in range(KEPT_CALLS if cell == "keep-alive" else 1):
        service.quote(text.decode())
    return {**received.line(), "sentSha256": sent.hash.hexdigest()}


def main():
    if STACK == "aiohttp":
        asyncio.run(main_aiohttp())
        return
    transport = {"requests": with_requests, "httpx": with_httpx}.get(STACK)
    ends = transport() if transport else None
    for cell in CELLS:
        try:
            report(cell=cell, **(run_cell(cell, *ends) if ends else run_zeep_cell(cell)))
        except Exception as error:
            report(cell=cell, error=f"{type(error).__name__}: {error}")


main()
