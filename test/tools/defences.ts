/** What docs/security.md defends against, each with the tests that show it. */

export interface NamedTest {
  readonly file: string;
  /** As the source of the test has it. */
  readonly title: string;
}

/** By threat. */
export const DEFENCES: Readonly<Record<string, readonly NamedTest[]>> = {
  'a web page calls the port: fetch, form, img, script, iframe, beacon, link, window.open, redirect': [
    {
      file: 'test/e2e/browser.test.ts',
      title: 'the %s port responds with 403 to attempts of web pages, and none reaches the upstream',
    },
    { file: 'test/listener/guard.test.ts', title: 'a web page' },
  ],
  'a page calls the partner from a browser that uses the sidecar as its proxy': [
    { file: 'test/e2e/browser-as-proxy-client.test.ts', title: 'no attempt against the partner reaches the API (%s)' },
  ],
  'DNS rebinding makes a page same-origin with the port': [
    { file: 'test/e2e/browser.test.ts', title: 'by a name that was rebound to it' },
    { file: 'test/listener/guard.test.ts', title: 'is required exactly once, in any case; HTTP/1.0 may have none' },
    {
      file: 'test/listener/guard.test.ts',
      title: 'is invalid with a character that no host may contain, at any position',
    },
    { file: 'test/admin/server.test.ts', title: '%s is refused to a rebound name, also from this machine' },
  ],
  'a page opens a WebSocket, to which CORS does not apply': [
    { file: 'test/e2e/websocket.test.ts', title: 'from a foreign web page is refused, and never reaches the upstream' },
    { file: 'test/listener/websocket/websocket.test.ts', title: 'because upgrades are off' },
  ],
  'another page uses the rights of an allowed page': [
    {
      file: 'test/e2e/browser.test.ts',
      title:
        'may send requests with its own header fields after a preflight and read the responses; another page may not',
    },
    { file: 'test/listener/cors.test.ts', title: 'of another page is refused without CORS fields' },
  ],
  'another container or host calls the port': [
    { file: 'test/config/rules/rules.test.ts', title: 'an address that is not loopback' },
    { file: 'test/listener/guard.test.ts', title: 'the required header' },
    { file: 'test/listener/bind.test.ts', title: 'has the mode %i, and the umask of the process is unchanged' },
  ],
  'an application calls, or is made to call, more than it should': [
    {
      file: 'test/listener/allow-list.test.ts',
      title: 'every allowed path is below a path of the list for each way in which servers decode and resolve it',
    },
  ],
  'another host reads the state at the admin port': [
    { file: 'test/admin/server.test.ts', title: 'gives other machines only the probes and the metrics' },
  ],
  'a page, a rebound name or another machine ends the sidecar': [
    {
      file: 'test/e2e/quit.test.ts',
      title: 'is refused to pages of other sites, through a rebound name, and to the page of the port itself',
    },
    { file: 'test/admin/quit.test.ts', title: 'is refused to other machines, also with exposeAll' },
  ],
  'a text of the partner or of a client runs as a script in the status page': [
    { file: 'test/admin/page.test.ts', title: 'shows a failure and escapes texts from the upstream' },
    {
      file: 'test/admin/page.test.ts',
      title: 'loads files of this port only, enforced by its policy, and has no inline script or style',
    },
  ],
  'a request is steered to another origin': [
    { file: 'test/exchange/requests.test.ts', title: 'invariant 1: a token is sent only to the configured origin' },
    {
      file: 'test/peers/http-proxy-3.test.ts',
      title: 'not here: each such target gets a response, and the next request is served',
    },
  ],
  'a path leaves the base path': [
    {
      file: 'test/upstream/request-target.test.ts',
      title: 'accepts nothing that leaves the base when it is resolved, or decoded twice and resolved',
    },
  ],
  'request smuggling': [
    { file: 'test/listener/parser-faults.test.ts', title: 'is refused and does not reach the upstream:' },
    { file: 'test/listener/guard.test.ts', title: 'the framing' },
    { file: 'test/upstream/framing.test.ts', title: 'with a stream of unknown length is chunked' },
    { file: 'test/hostile/corpus.test.ts', title: '$id ($clause)' },
    {
      file: 'test/hostile/fuzz.test.ts',
      title:
        '2000 mutated requests: each connection gets a response or is closed, and the witness saw what the sidecar reports',
    },
  ],
  'a request hidden behind a refused one': [
    {
      file: 'test/hostile/responses.test.ts',
      title: 'a request in the same packet as one whose length cannot be trusted',
    },
    {
      file: 'test/listener/parser-faults.test.ts',
      title: 'an upgrade after a request with ambiguous framing is not served',
    },
  ],
  'CONNECT, TRACE or h2c open a tunnel past the defences': [
    { file: 'test/listener/guard.test.ts', title: '%s is refused' },
    {
      file: 'test/listener/ignored-upgrades.test.ts',
      title: 'requests with ignored upgrades reach the upstream whole, once and without the fields',
    },
  ],
  "an upstream's 101 opens a tunnel for another protocol": [
    { file: 'test/listener/websocket/websocket-handshake.test.ts', title: 'a 101 that does not accept the WebSocket' },
  ],
  'a client strips or replaces the bearer (Connection: authorization)': [
    {
      file: 'test/exchange/requests.test.ts',
      title: 'invariant 1: exactly one bearer is sent, for all client headers',
    },
    {
      file: 'test/listener/websocket/websocket.test.ts',
      title: 'is requested without the fields that Connection names, but with the token',
    },
  ],
  'a client replaces a fixed header field, or another API gets its value': [
    {
      file: 'test/composition/own-headers.test.ts',
      title: 'invariant 1: is in each attempt once, and the client’s own fields of these names are not',
    },
    {
      file: 'test/composition/own-headers.test.ts',
      title: 'invariant 1: inherits the fixed fields of the top level for the same origin only',
    },
  ],
  'a field name with underscores replaces another field at a later server': [
    {
      file: 'test/listener/parser-faults.test.ts',
      title: 'header names with underscores replace neither framing nor credentials',
    },
  ],
  'another server impersonates the upstream': [
    { file: 'test/upstream/connecting.test.ts', title: 'with a certificate for another name is refused' },
    {
      file: 'test/upstream/connecting.test.ts',
      title: 'with a trusted certificate %s is refused, and never tried again',
    },
    { file: 'test/config/rules/rules.test.ts', title: 'http: URLs' },
  ],
  'a broken or hostile upstream: truncated bodies, contradicting lengths, garbage, silence': [
    { file: 'test/exchange/relaying.test.ts', title: 'what is no HTTP at all is a reply of the sidecar’s own' },
    { file: 'test/upstream/faults.test.ts', title: 'within the response body' },
    {
      file: 'test/exchange/deadlines.test.ts',
      title: 'that falls silent within its body is cut off after upstream.bodyIdleTimeoutMs',
    },
    {
      file: 'test/exchange/broken-off.test.ts',
      title: 'ends a response that it cuts with a reset, also for a client that takes nothing',
    },
  ],
  'an unsolicited response is taken for the next one (response splitting)': [
    { file: 'test/hostile/responses.test.ts', title: 'an unsolicited response on an idle connection is discarded' },
  ],
  'a repeated call is carried out twice': [
    {
      file: 'test/exchange/retries.test.ts',
      title: 'invariant 6: after the first byte of a response is never retried, not even for a GET',
    },
  ],
  'a call that was carried out is reported as not carried out, and is then repeated': [
    {
      file: 'test/exchange/last-result.test.ts',
      title: 'is what the client gets, after any earlier result and however the request ends',
    },
    {
      file: 'test/chaos/unknown-outcomes.test.ts',
      title:
        'no POST that was carried out is reported as not carried out, or without the word unknown, and none is sent twice: seed %i',
    },
  ],
  'a killed sidecar leaves no trace of a call that may have been carried out': [
    {
      file: 'test/chaos/killed-sidecars.test.ts',
      title: 'every call that reached the upstream has a response, or is open in the file of unknown calls',
    },
    {
      file: 'test/composition/unknown-calls.test.ts',
      title:
        'is refused before its first byte, on an open connection and on a new one, which serve on; its permit is not spent',
    },
  ],
  'connections that break anywhere, at any byte': [
    {
      file: 'test/chaos/byte-offsets.test.ts',
      title: 'wherever an exchange breaks: it ends in time, no body passes falsely for complete, no POST is sent twice',
    },
    {
      file: 'test/chaos/keep-alive-race.test.ts',
      title: 'no idempotent request notices that the upstream closes idle connections, and no POST is sent twice',
    },
  ],
  'an unreachable upstream blocks all callers': [
    {
      file: 'test/upstream/outage.test.ts',
      title: 'keeps the first callers waiting, and 1000 later ones not: one probe per interval goes out for all',
    },
  ],
  'a hostile token endpoint': [
    {
      file: 'test/token/endpoint/real-responses.test.ts',
      title: 'sends a generated token byte for byte, or nothing at all',
    },
    { file: 'test/token/endpoint/token-endpoint.test.ts', title: 'a redirect is not followed' },
  ],
  'an upstream states invalid limits, or many of them': [
    {
      file: 'test/throttle/signals/rate-limit-signal.test.ts',
      title: 'never throws, and every number is finite and not negative',
    },
    { file: 'test/exchange/response-classifier.test.ts', title: 'are at most 24' },
  ],
  'secrets or tokens in logs, metrics, status, replies': [
    { file: 'test/exchange/requests.test.ts', title: 'and appears in no event, metric, status or reply' },
    { file: 'test/composition/texts-from-outside.test.ts', title: '%s shows no secret in any form' },
    { file: 'test/telemetry/log/log.test.ts', title: 'secrets' },
    {
      file: 'test/token/endpoint/echo-filter.test.ts',
      title: 'shows neither the secret nor the token in any output, status %s',
    },
    { file: 'test/token/endpoint/echo-filter.test.ts', title: 'shows it in no event, state or fault' },
    { file: 'test/tools/leaks.test.ts', title: 'findLeaks' },
  ],
  'NODE_TLS_REJECT_UNAUTHORIZED=0, inherited': [
    { file: 'test/e2e/inherited-environment.test.ts', title: 'the token endpoint is refused, and calls fail' },
    { file: 'test/e2e/inherited-environment.test.ts', title: '%s is refused' },
  ],
  'debug output of Node.js or a library (NODE_DEBUG, DEBUG)': [
    { file: 'test/e2e/process.test.ts', title: 'of DEBUG=* and NODE_DEBUG=%s shows no token and no secret' },
  ],
  'a debugger opened by a signal': [
    { file: 'test/e2e/process.test.ts', title: 'opens no debugger on SIGUSR1, and goes on' },
  ],
  'a diagnostic report': [{ file: 'test/e2e/process.test.ts', title: 'puts no secret into a diagnostic report' }],
  'a secret among the arguments, which every user of the machine can read': [
    { file: 'test/e2e/process.test.ts', title: '%j is refused, and its value not repeated' },
  ],
  'the state file with the learned limit': [
    {
      file: 'test/throttle/state-file.test.ts',
      title: 'is restored after a restart, from a file that only its owner can read',
    },
    { file: 'test/throttle/state-file.test.ts', title: 'replaces a symbolic link and not its target' },
    {
      file: 'test/throttle/learned-state.test.ts',
      title: 'of any other JSON value is unusable, and parsing never throws',
    },
  ],
  'a token of the platform that is meant for another receiver is sent to the authorization server': [
    {
      file: 'test/token/client/assertion-claims.test.ts',
      title: 'every audience but the expected one, character by character',
    },
    { file: 'test/token/client/assertion-file.test.ts', title: "the cluster's default token is refused" },
    {
      file: 'test/token/endpoint/file-assertion.test.ts',
      title: 'nothing is sent, not even a request for metadata, with',
    },
  ],
  'a secret in a configuration error': [
    { file: 'test/config/schema/formats/credentials.test.ts', title: '%s %j is refused without being shown' },
    {
      file: 'test/token/client/secret-file.test.ts',
      title: 'the fault of %s names key and path, and shows no contents',
    },
  ],
  'forged log lines, control of terminals by foreign texts': [
    { file: 'test/e2e/process.test.ts', title: 'takes no line and no colour from the input of a client' },
    { file: 'test/e2e/process.test.ts', title: 'takes none from the responses of the two servers' },
    { file: 'test/e2e/process.test.ts', title: 'cannot write a line of its own or steer a terminal' },
  ],
  'more connections than the process can hold': [
    { file: 'test/listener/crowds.test.ts', title: 'listen.maxConnections' },
  ],
  'clients that send their head slowly, or never begin': [
    { file: 'test/listener/crowds.test.ts', title: 'a client that sends its request head slowly' },
    { file: 'test/e2e/resources.test.ts', title: 'of idle and dripping connections lets a normal client through' },
  ],
  'clients that stall their body, or read slowly': [
    { file: 'test/exchange/deadlines.test.ts', title: 'a client that stops sending within its body' },
    {
      file: 'test/exchange/request-body/stalled-uploads.test.ts',
      title:
        'requests without a body, and with one that is here, pass uploads that have begun (%s); others wait a second at most',
    },
    {
      file: 'test/exchange/stalled-responses.test.ts',
      title: 'with maxInFlight given: none yields, and after 30 s the one that has stalled longest is broken off',
    },
    { file: 'test/e2e/resources.test.ts', title: 'of slow readers is given its bodies whole, in bounded memory' },
  ],
  'bodies and queues that fill the memory': [
    {
      file: 'test/exchange/request-body/replay-body.test.ts',
      title: 'are bounded: past the total a body streams once, and is replayable again when memory has come back',
    },
    { file: 'test/composition/residue.test.ts', title: '10 000 sequential requests do not grow the heap' },
  ],
  'clients that leave and keep their place in the queue': [
    { file: 'test/exchange/client-left.test.ts', title: 'in the queue frees its place, and no permit is spent on it' },
    { file: 'test/e2e/resources.test.ts', title: 'while it is %s frees its slot' },
  ],
  'one request ends the process': [
    { file: 'test/listener/parser-faults.test.ts', title: 'a client that resets its connection' },
    {
      file: 'test/peers/http-proxy-3.test.ts',
      title: 'not here: each such target gets a response, and the next request is served',
    },
  ],
  'a log destination that does not read': [
    { file: 'test/telemetry/log/blocked-stdout.test.ts', title: 'drops and counts lines when nothing reads from %s' },
  ],
};
